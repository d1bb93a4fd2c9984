"""The state of nvidia-persistenced, from systemd and the probe."""

from gpuready.state.model import NodeState

PERSISTENCED = "nvidia-persistenced.service"


def persistence(state: NodeState) -> str:
    """Return systemd's state of nvidia-persistenced, or that it still runs from a replaced file."""
    unit = state.unit(PERSISTENCED)
    if unit.load == "not-found":
        return "not installed"
    old = unit.active == "active" and state.leftovers.persistenced_old
    return "of before the update" if old else unit.active
