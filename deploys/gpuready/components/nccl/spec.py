"""The spec of NCCL's environment on a node: the network of the fabric, and further variables.

Values reach command lines and /etc/nccl.conf, where NCCL keeps blanks and quotes as part of a value. Sources: NCCL's
user guide (environment variables) and its src/misc/param.cc. Looked up on 2026-11-23.
"""

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from gpuready.base.fields import Allowed, number_as_text
from gpuready.base.section import Section
from gpuready.base.versions import numbers

#: From this version on, NCCL finds the GID itself and accepts a range of addresses.
AUTO_GID = (2, 21)


def _subnet(value: str) -> str:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError("not a network") from None
    if "/" not in value:
        raise ValueError("the prefix length is missing")
    if str(network) != value:
        raise ValueError(f"write the network as {network}")
    if network.prefixlen == 0:
        raise ValueError("this network contains every address")
    return value


def _value(value: str) -> str:
    if not value or value != value.strip() or not value.isprintable() or len(value) > 1023:
        raise ValueError("must be 1 to 1023 printable characters without a blank at either end")
    if value[0] in "'\"" or value[-1] in "'\"":
        raise ValueError("NCCL would read the quotes as part of the value")
    if " #" in value:
        raise ValueError("NCCL would read the comment as part of the value")
    return value


#: Variables that gpuready computes; a value here would override what each apply finds.
COMPUTED = {
    "NCCL_IB_HCA": "nccl.interfaces and nccl.subnets select the ports",
    "NCCL_IB_GID_INDEX": "each host has its own index; gpuready writes it if nccl.version is older than 2.21",
    "NCCL_IB_ADDR_RANGE": "nccl.subnets sets it",
    "NCCL_IB_ADDR_FAMILY": "it depends on the addresses of the ports",
    "NCCL_IB_ROCE_VERSION_NUM": "gpuready uses only RoCE v2",
}
#: Variables for debugging (NCCL's user guide, Debugging) that observe, or that slow down or restrict every job.
DEBUGGING = (
    "NCCL_ALGO",
    "NCCL_CHECKS_DISABLE",
    "NCCL_CHECK_MODE",
    "NCCL_CHECK_POINTERS",
    "NCCL_DEBUG",
    "NCCL_DEBUG_FILE",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_GRAPH_DUMP_FILE",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NCCL_TOPO_DUMP_FILE",
)
#: The values of NCCL_DEBUG that are fine for every job.
QUIET = ("VERSION", "WARN")


def debugging(name: str, value: str) -> bool:
    """Whether the variable is meant for debugging one job, and does not belong in a file that every job reads."""
    return name in DEBUGGING and value != "0" and not (name == "NCCL_DEBUG" and value.upper() in QUIET)


_NAME = r"[A-Z][A-Z0-9_]{2,99}"


def _variables(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if why := _refused(name, value):
            raise PydanticCustomError("floor", "{why}", {"at": name, "why": why, "allowed": "leave it out"})
    return values


def _refused(name: str, value: str) -> str:
    if not re.fullmatch(_NAME, name):
        return "not a variable name (capitals, digits and _)"
    if name in COMPUTED:
        return f"gpuready computes it: {COMPUTED[name]}"
    if debugging(name, value):
        return "for debugging only: set it for one job, not for the whole node"
    if name.startswith(("TORCH_", "PYTORCH_", "CUDA_", "LD_")) or name == "PATH":
        return "it takes effect before NCCL reads its file: set it in the environment of the job"
    return ""


Subnet = Annotated[
    str,
    AfterValidator(_subnet),
    Field(json_schema_extra={"pattern": "^[0-9a-fA-F.:]+/[0-9]{1,3}$"}),
    Allowed("a network in CIDR form, such as 10.100.0.0/16"),
]
Interface = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$"),
    Allowed("a network interface or RDMA device, such as ens1f0 or mlx5_0"),
]
NcclVersion = Annotated[
    str, Field(pattern=r"^2\.[0-9]{1,3}(\.[0-9]{1,3})?$"), Allowed("2.X or 2.X.Y, such as 2.18.5 (in quotes)")
]
Value = Annotated[
    str,
    BeforeValidator(number_as_text),
    AfterValidator(_value),
    WithJsonSchema({"type": ["string", "integer"]}),
    Allowed("one line of text without quotes"),
]
Variables = Annotated[
    dict[str, Value],
    AfterValidator(_variables),
    Field(json_schema_extra={"propertyNames": {"pattern": f"^{_NAME}$"}}),
]


class Nccl(Section):
    """NCCL's environment on this node; any setting here makes gpuready write /etc/nccl.conf."""

    subnets: tuple[Subnet, ...] = Field(default=(), strict=False)
    """The networks of the fabric in CIDR form; by default all but those of the default route and of SSH."""
    interfaces: tuple[Interface, ...] = Field(default=(), strict=False)
    """The network interfaces (or RDMA devices) of the fabric; by default all."""
    transport: Literal["auto", "tcp"] = "auto"
    """auto uses RDMA; tcp never does, and sets NCCL_IB_DISABLE on nodes with active RDMA ports."""
    version: NcclVersion | None = None
    """The oldest NCCL version of your jobs; by default gpuready assumes 2.21 or newer."""
    extra: Variables = Field(default_factory=dict)
    """Further variables for /etc/nccl.conf."""

    @property
    def says_something(self) -> bool:
        """Whether /etc/nccl.conf is to be written."""
        return self.names_ports or bool(self.extra)

    @property
    def names_ports(self) -> bool:
        """Whether gpuready writes the ports of the fabric; with extra alone it does not."""
        return bool(self.subnets or self.interfaces or self.version or self.transport == "tcp")

    @property
    def finds_gid(self) -> bool:
        """Whether the oldest NCCL version finds the GID itself."""
        return self.version is None or numbers(self.version)[:2] >= AUTO_GID
