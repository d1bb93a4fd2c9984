"""The spec of containerd."""

from typing import Annotated, Literal

from pydantic import WithJsonSchema

from gpuready.base.fields import Allowed
from gpuready.base.section import Section

ContainerdUnit = Annotated[
    Literal["containerd"],
    WithJsonSchema({"enum": ["containerd"]}),
    Allowed("containerd (other units are not supported yet)"),
]
ContainerdFile = Annotated[
    Literal["/etc/containerd/config.toml"],
    WithJsonSchema({"enum": ["/etc/containerd/config.toml"]}),
    Allowed("/etc/containerd/config.toml (other files are not supported yet)"),
]


class ContainerdSpec(Section):
    """containerd is required on this node, with these settings."""

    service: ContainerdUnit = "containerd"
    """The systemd unit; other units are not supported yet."""
    config: ContainerdFile = "/etc/containerd/config.toml"
    """Its configuration file; other files are not supported yet."""
    default_runtime: bool = False
    """Make nvidia the default runtime."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in containerd (enable_cdi): auto changes nothing."""
