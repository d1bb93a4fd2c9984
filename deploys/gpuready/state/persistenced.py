"""nvidia-persistenced, as systemd and the probe see it."""

from __future__ import annotations

from gpuready.state.model import NodeState, Unknown

PERSISTENCED = "nvidia-persistenced.service"


def persistence(state: NodeState) -> str:
    """What nvidia-persistenced does: systemd's word, or that it is the one from before an update."""
    unit = None if isinstance(state.units, Unknown) else state.units.get(PERSISTENCED)
    if unit is None:
        return "not installed"
    old = unit.active == "active" and state.leftovers.persistenced_old
    return "of before the update" if old else unit.active
