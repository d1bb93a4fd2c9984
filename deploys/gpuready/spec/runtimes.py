"""The spec of the container engines."""

from __future__ import annotations

from typing import Literal

from gpuready.components.containerd.spec import ContainerdSpec
from gpuready.components.crio.spec import CrioSpec
from gpuready.components.docker.spec import DockerSpec
from gpuready.core.section import Section


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
    def installs_docker(self) -> bool:
        """Is Docker to be installed where there is none?"""
        return isinstance(self.docker, DockerSpec) and self.docker.install == "distro"
