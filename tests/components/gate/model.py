"""The gate's program, which the step makes executable."""

from gpuready.components.gate.component import SCRIPT
from gpuready.model.state import NodeState
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    if SCRIPT not in steps.writes:
        return state
    program = state.files[SCRIPT].model_copy(update={"mode": 0o755})
    return state.model_copy(update={"files": {**state.files, SCRIPT: program}})
