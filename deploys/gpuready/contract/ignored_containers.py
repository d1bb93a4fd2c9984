"""Leave out containers that do not count as work: those of the images in ``maintenance.ignore``."""

from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, NodeState


def counted(spec: NodeSpec, state: NodeState) -> NodeState:
    """Return the state without the ignored containers."""
    if not spec.maintenance.ignore or not isinstance(state.docker, Docker):
        return state
    kept = tuple(c for c in state.docker.containers if not _ignored(c.image, spec.maintenance.ignore))
    return state.model_copy(update={"docker": state.docker.model_copy(update={"containers": kept})})


def words(spec: NodeSpec) -> tuple[str, ...]:
    """Return the arguments of ``idle`` in templates/lib/idle.sh.j2: the node's name, and the ignored images."""
    return (spec.maintenance.node or "", *spec.maintenance.ignore)


def _ignored(image: str, ignore: tuple[str, ...]) -> bool:
    """Match an image. A name without a tag matches all tags, as in templates/lib/idle.sh.j2 on the node."""
    whole = image.partition("@")[0]
    head, slash, tail = whole.rpartition("/")
    return bool({image, whole, head + slash + tail.partition(":")[0]} & set(ignore))
