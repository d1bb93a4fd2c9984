"""The spec of NCCL's environment on a node: which network is the fabric, and which NCCL is told about it.

Values end in /etc/nccl.conf, where NCCL trims nothing and knows no quotes, and on command lines. Sources: NCCL's user
guide (environment variables) and its src/misc/param.cc.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from gpuready.core.fields import Allowed
from gpuready.core.section import Section

#: From here on NCCL finds the GID by itself, and can be told the range of addresses.
AUTO_GID = (2, 21)


def _subnet(value: str) -> str:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError("no network") from None
    if "/" not in value:
        raise ValueError("the prefix length is missing")
    if str(network) != value:
        raise ValueError(f"the network is written {network}")
    if network.prefixlen == 0:
        raise ValueError("this is every address")
    return value


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _value(value: str) -> str:
    if not value or value != value.strip() or not value.isprintable() or len(value) > 1023:
        raise ValueError("NCCL trims nothing: 1 to 1023 printable characters without a blank at either end")
    if value[0] in "'\"" or value[-1] in "'\"":
        raise ValueError("NCCL knows no quotes: they would be part of the value")
    if " #" in value:
        raise ValueError("NCCL knows no comment behind a value: it would be part of it")
    return value


#: What gpuready works out itself; a value by hand would take precedence over what is found at each apply.
COMPUTED = {
    "NCCL_IB_HCA": "nccl.interfaces and nccl.subnets say which ports",
    "NCCL_IB_GID_INDEX": "it is found on each host, and written where nccl.version is older than 2.21",
    "NCCL_IB_ADDR_RANGE": "nccl.subnets says it",
    "NCCL_IB_ADDR_FAMILY": "it follows from the addresses of the ports",
    "NCCL_IB_ROCE_VERSION_NUM": "only RoCE v2 is used",
}
#: Of the chapter Debugging in NCCL's user guide those that only look, or take something away from every job here.
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
#: What NCCL_DEBUG may say in a system file.
QUIET = ("VERSION", "WARN")


def debugging(name: str, value: str) -> bool:
    """Is this for a single job that is being looked into, and wrong in a file that every job reads?"""
    return name in DEBUGGING and value != "0" and not (name == "NCCL_DEBUG" and value.upper() in QUIET)


_NAME = r"[A-Z][A-Z0-9_]{2,99}"


def _variables(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if why := _refused(name, value):
            raise PydanticCustomError("floor", "{why}", {"at": name, "why": why, "allowed": "leave it out"})
    return values


def _refused(name: str, value: str) -> str:
    if not re.fullmatch(_NAME, name):
        return "no name of a variable (capitals, digits and _)"
    if name in COMPUTED:
        return f"it is worked out: {COMPUTED[name]}"
    if debugging(name, value):
        return "it is for debugging: set it for the one job, not for all of the node"
    if name.startswith(("TORCH_", "PYTORCH_", "CUDA_", "LD_")) or name == "PATH":
        return "it is read before NCCL reads its file: it belongs in the environment of the job"
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
    BeforeValidator(_text),
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
    """NCCL's environment on this node; where anything is said here, it is written to /etc/nccl.conf."""

    subnets: tuple[Subnet, ...] = Field(default=(), strict=False)
    """The networks of the fabric in CIDR form; without them all but that of the default route and of SSH."""
    interfaces: tuple[Interface, ...] = Field(default=(), strict=False)
    """The network interfaces (or RDMA devices) of the fabric; without them all."""
    version: NcclVersion | None = None
    """The oldest NCCL that jobs bring along; without it 2.21 or newer is assumed."""
    extra: Variables = Field(default_factory=dict)
    """Further variables for /etc/nccl.conf."""

    @property
    def says_something(self) -> bool:
        """Is /etc/nccl.conf asked for?"""
        return self.names_ports or bool(self.extra)

    @property
    def names_ports(self) -> bool:
        """Are the ports of the fabric to be told to NCCL? Variables alone are only written."""
        return bool(self.subnets or self.interfaces or self.version)

    @property
    def finds_gid(self) -> bool:
        """Does the oldest NCCL find the GID by itself?"""
        return self.version is None or tuple(map(int, self.version.split(".")[:2])) >= AUTO_GID
