"""Which engines on the node refuse a CDI spec with the field additionalGids, which the toolkit writes since 1.19.1.

An engine reads a spec strictly: a field that it does not know makes it ignore the whole file.
Sources: the version of container-device-interface in the go.mod (Docker: vendor.mod) of each release; 0.7 has the
field. podman 4.3.1 and 5.4.2 were tried. Docker: moby/moby#47706, too. Looked up on 2026-11-24.
"""

from gpuready.base.versions import leading
from gpuready.components.docker.state import engine_version
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri, Docker, NodeState

_PODMAN, _DOCKER, _CONTAINERD = (5, 1), (26, 1), (1, 7, 16)


def without_gids_field(spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
    """Return the engines, with their versions, that use CDI devices and do not know additionalGids."""
    found = []
    if spec.runtimes.podman != "absent" and (old := _older(state, _PODMAN, "podman")):
        found.append(f"podman {old}")
    docker = state.docker if isinstance(state.docker, Docker) and spec.runtimes.docker != "absent" else None
    if docker and docker.cdi_spec_dirs and engine_version(state.docker, state.installed) < _DOCKER:
        found.append(f"Docker {docker.version}")
    pods = isinstance(state.cri, Cri) and state.cri.enable_cdi and spec.runtimes.containerd != "absent"
    if pods and (old := _older(state, _CONTAINERD, "containerd.io", "containerd")):
        found.append(f"containerd {old}")
    return tuple(found)


def _older(state: NodeState, since: tuple[int, ...], *names: str) -> str:
    """Return the version of the first of these packages if it is older than ``since``; otherwise nothing."""
    package = next((state.installed[name] for name in names if name in state.installed), None)
    version = package.version.rpartition(":")[2] if package else ""
    parts = leading(version, len(since))
    return version if parts and parts < since else ""
