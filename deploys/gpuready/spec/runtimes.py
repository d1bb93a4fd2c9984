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

    def requires(self, engine: Literal["docker", "containerd", "crio"]) -> bool:
        return not isinstance(getattr(self, engine), str)

    # The settings of an engine: the defaults if the spec does not name it.

    @property
    def docker_settings(self) -> DockerSpec:
        return self.docker if isinstance(self.docker, DockerSpec) else DockerSpec.model_construct()

    @property
    def containerd_settings(self) -> ContainerdSpec:
        return self.containerd if isinstance(self.containerd, ContainerdSpec) else ContainerdSpec.model_construct()

    @property
    def crio_settings(self) -> CrioSpec:
        return self.crio if isinstance(self.crio, CrioSpec) else CrioSpec.model_construct()

    @property
    def installs_docker(self) -> bool:
        return self.docker_settings.install == "distro"
