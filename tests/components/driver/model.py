"""apt-mark: the driver's packages."""

from gpuready.components.driver.component import Hold
from gpuready.model.state import NodeState
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-mark holds and lets go."""
    args = steps.args(Hold)
    held = dict.fromkeys(args.hold, True) | dict.fromkeys(args.unhold, False)
    packages = {name: p.model_copy(update={"held": held.get(name, p.held)}) for name, p in state.installed.items()}
    return state.model_copy(update={"packages": packages})
