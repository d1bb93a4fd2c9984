"""The state of nvidia-persistenced, from systemd and the probe."""

from gpuready.model.state import NodeState

PERSISTENCED = "nvidia-persistenced.service"


def persistence(state: NodeState) -> str:
    """Return systemd's state of nvidia-persistenced, or what it lacks: its new file, or its socket."""
    unit = state.unit(PERSISTENCED)
    if unit.load == "not-found":
        return "not installed"
    if unit.active == "active" and state.leftovers.persistenced_old:
        return "of before the update"
    return "without its socket" if unit.active == "active" and state.leftovers.persistenced_no_socket else unit.active
