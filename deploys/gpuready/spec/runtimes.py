"""The spec of the container engines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import WithJsonSchema

from gpuready.core.fields import Allowed, ShmSize
from gpuready.core.section import Section

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


class DockerSpec(Section):
    """Docker is required on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime, even for containers that do not request a GPU."""
    live_restore: Literal["auto"] | bool = "auto"
    """Keep containers running while dockerd restarts: auto turns it on if the node's configuration permits it."""
    shm_size: ShmSize | None = None
    """The size of /dev/shm in new containers, such as 8g or a number of bytes; unchanged by default."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in Docker (25.0 to 28.1 need a restart; 28.2 enables them by default); auto changes nothing."""
    install: Literal[False, "distro"] = False
    """Install Docker if it is missing: distro installs the distribution's docker.io."""


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


class CrioSpec(Section):
    """CRI-O is required on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime."""


class Runtimes(Section):
    """The engines: auto configures an engine if it exists, absent ignores it, a mapping requires it."""

    docker: Literal["auto", "absent"] | DockerSpec = "auto"
    """Docker."""
    containerd: Literal["auto", "absent"] | ContainerdSpec = "auto"
    """containerd, as Kubernetes uses it."""
    crio: Literal["auto", "absent"] | CrioSpec = "auto"
    """CRI-O."""
    podman: Literal["auto", "absent"] = "auto"
    """Podman."""

    @property
    def required_docker(self) -> DockerSpec | None:
        """Docker's settings, or None if the spec does not require Docker."""
        return self.docker if isinstance(self.docker, DockerSpec) else None

    @property
    def required_containerd(self) -> ContainerdSpec | None:
        """containerd's settings, or None if the spec does not require containerd."""
        return self.containerd if isinstance(self.containerd, ContainerdSpec) else None

    @property
    def required_crio(self) -> CrioSpec | None:
        """CRI-O's settings, or None if the spec does not require CRI-O."""
        return self.crio if isinstance(self.crio, CrioSpec) else None
