"""What counts as work on a node: containers, but for those of images that ``maintenance.ignore`` names."""

from __future__ import annotations

from gpuready.spec.model import NodeSpec
from gpuready.state.model import Docker, NodeState


def counted(spec: NodeSpec, state: NodeState) -> NodeState:
    """The state without the containers that do not count."""
    if not spec.maintenance.ignore or not isinstance(state.docker, Docker):
        return state
    kept = tuple(c for c in state.docker.containers if not _ignored(c.image, spec.maintenance.ignore))
    return state.model_copy(update={"docker": state.docker.model_copy(update={"containers": kept})})


def words(spec: NodeSpec) -> tuple[str, ...]:
    """What ``idle`` of templates/lib/idle.sh.j2 has to be told: the node's name, and the images that do not count."""
    return (spec.maintenance.node or "", *spec.maintenance.ignore)


def _ignored(image: str, ignore: tuple[str, ...]) -> bool:
    """A name without a tag stands for all of its tags (templates/lib/idle.sh.j2 judges the same on the node)."""
    whole = image.partition("@")[0]
    head, slash, tail = whole.rpartition("/")
    return bool({image, whole, head + slash + tail.partition(":")[0]} & set(ignore))
