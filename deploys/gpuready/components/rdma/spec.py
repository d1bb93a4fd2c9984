"""The spec of the RDMA stack: who may see a device, and the packages of its user space."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gpuready.core.fields import Allowed
from gpuready.core.section import Section

#: How the names of these packages begin; the probe, which is the same for all hosts, asks for no others.
FAMILIES = ("rdma", "librdma", "ib", "libib", "infiniband", "perftest", "mstflint", "opensm", "qperf", "ucx", "libucx")
PackageName = Annotated[
    str,
    Field(pattern=rf"^({'|'.join(FAMILIES)})[a-z0-9+.-]{{0,99}}$"),
    Allowed("a package of the RDMA user space, such as rdma-core, perftest, rdmacm-utils or infiniband-diags"),
]


class Rdma(Section):
    """The RDMA stack."""

    netns_mode: Literal["unmanaged", "shared", "exclusive"] = "unmanaged"
    """ib_core's netns_mode: left alone, all network namespaces see all RDMA devices, or each device is in one."""
    packages: tuple[PackageName, ...] = Field(default=(), strict=False)
    """Packages of the RDMA user space; the distribution's version."""
