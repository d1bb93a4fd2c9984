"""systemd: the unit of the service after a driver change, and its result."""

import json

from gpuready.components.reconverge.component import LINK, RESULT, InstallRun
from gpuready.model.state import NodeState
from tests.components.closing import Closed, file_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """systemctl makes the link for every boot, or takes it away."""
    files = {path: file for path, file in state.files.items() if path != LINK}
    if steps.args(InstallRun).run:
        files[LINK] = file_of("", state)
        files[RESULT] = file_of(json.dumps({"boot_id": state.boot_id, "driver": state.driver.loaded}), state)
    return state.model_copy(update={"files": files})
