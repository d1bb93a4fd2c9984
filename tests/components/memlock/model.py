"""systemd and prlimit: limits of locked memory."""

from gpuready.components.memlock.component import SetLimits, drop_in
from gpuready.model.state import NodeState
from tests.components.closing import Closed, units_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """A daemon-reload loads the drop-ins; prlimit tells the process that runs."""
    args = steps.args(SetLimits)
    units = units_of(state)
    for name, unit in units.items():
        update = {"process_memlock": "unlimited"} if name in args.services else {}
        if args.reload and drop_in(name.removesuffix(".service")) in state.files:
            update["limit_memlock"] = "infinity"
        units[name] = unit.model_copy(update=update)
    return state.model_copy(update={"units": units})
