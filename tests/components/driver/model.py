"""apt-mark: the driver's packages."""

from gpuready.components.driver.component import BEFORE, Hold
from gpuready.model.state import NodeState
from tests.components.closing import Closed, file_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-mark holds and lets go; what was held before is on record."""
    args = steps.args(Hold)
    held = dict.fromkeys(args.hold, True) | dict.fromkeys(args.unhold, False)
    packages = {name: p.model_copy(update={"held": held.get(name, p.held)}) for name, p in state.installed.items()}
    files = {path: file for path, file in state.files.items() if path != BEFORE}
    if not args.files and not args.unhold:
        known = state.text(BEFORE)
        for name in args.hold:
            was = "hold" if state.installed[name].held else "free"
            known += "" if f"{name} " in known else f"{name} {was}\n"
        files[BEFORE] = file_of(known, state)
    return state.model_copy(update={"packages": packages, "files": files})
