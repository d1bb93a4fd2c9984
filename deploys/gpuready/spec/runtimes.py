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

    # The settings of an engine that the spec requires, else None.

    @property
    def required_docker(self) -> DockerSpec | None:
        return self.docker if isinstance(self.docker, DockerSpec) else None

    @property
    def required_containerd(self) -> ContainerdSpec | None:
        return self.containerd if isinstance(self.containerd, ContainerdSpec) else None

    @property
    def required_crio(self) -> CrioSpec | None:
        return self.crio if isinstance(self.crio, CrioSpec) else None

    @property
    def installs_docker(self) -> bool:
        return self.required_docker is not None and self.required_docker.install == "distro"
