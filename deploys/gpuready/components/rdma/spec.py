"""The spec of the RDMA stack: which network namespaces see a device, and the user space packages."""

from typing import Annotated, Literal

from pydantic import Field

from gpuready.base.fields import Allowed
from gpuready.base.section import Section

#: Prefixes of the allowed package names; the probe, which is the same for all hosts, lists only these.
FAMILIES = ("rdma", "librdma", "ib", "libib", "infiniband", "perftest", "mstflint", "opensm", "qperf", "ucx", "libucx")
PackageName = Annotated[
    str,
    Field(pattern=rf"^({'|'.join(FAMILIES)})[a-z0-9+.-]{{0,99}}$"),
    Allowed("a package of the RDMA user space, such as rdma-core, perftest, rdmacm-utils or infiniband-diags"),
]


class Rdma(Section):
    """The RDMA stack."""

    netns_mode: Literal["unmanaged", "shared", "exclusive"] = "unmanaged"
    """ib_core's netns_mode: unchanged, all network namespaces see all RDMA devices, or each device is in one."""
    packages: tuple[PackageName, ...] = Field(default=(), strict=False)
    """RDMA user space packages to install, in the distribution's version."""
