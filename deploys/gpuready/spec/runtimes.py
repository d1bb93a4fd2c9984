"""The spec of the container engines."""

from __future__ import annotations

from typing import Literal

from gpuready.core.fields import Path, ShmSize, Unit
from gpuready.core.section import Section


class DockerSpec(Section):
    """Docker is wanted on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime, also of containers that ask for no GPU."""
    live_restore: Literal["auto"] | bool = "auto"
    """Keep containers running while dockerd restarts: auto turns it on where nothing speaks against it."""
    shm_size: ShmSize | None = None
    """The size of /dev/shm in new containers, such as 8g or a number of bytes; left alone unless given."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in Docker (25.0 to 28.1 need a restart for it; 28.2 has them by itself); auto changes nothing."""
    install: Literal[False, "distro"] = False
    """Install Docker where there is none: distro takes the distribution's docker.io."""


class ContainerdSpec(Section):
    """containerd is wanted on this node, with these settings."""

    service: Unit = "containerd"
    """The systemd unit."""
    config: Path = "/etc/containerd/config.toml"
    """Its configuration file."""
    default_runtime: bool = False
    """Make nvidia the default runtime."""
    cdi: Literal["auto"] | bool = "auto"
    """CDI devices in containerd (enable_cdi): auto leaves it as it is."""


class CrioSpec(Section):
    """CRI-O is wanted on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime."""


class Runtimes(Section):
    """The engines: auto takes one that is there, absent leaves it alone, a mapping requires it."""

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
