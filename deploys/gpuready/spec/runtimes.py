"""The spec of the container engines."""

from __future__ import annotations

from typing import Literal

from gpuready.components.containerd.spec import ContainerdSpec
from gpuready.components.crio.spec import CrioSpec
from gpuready.components.docker.spec import DockerSpec
from gpuready.core.section import Section


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

    @property
    def installs_docker(self) -> bool:
        """Whether gpuready installs Docker if it is missing."""
        return isinstance(self.docker, DockerSpec) and self.docker.install == "distro"
