"""pip and its environments, and gpuready's records of them."""

import json

from gpuready.components.wheels.component import CopyWheel, FetchWheel, InstallWheel, RemoveWheel
from gpuready.components.wheels.record import WHEELS
from gpuready.components.wheels.state import Installed
from gpuready.model.state import File, NodeState
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    """A wheel that is installed has been copied; then the copy is gone."""
    copied: set[str] = set()
    for step in steps.steps:
        if isinstance(step.args, CopyWheel):
            assert step.sends and not step.survives
            copied.add(step.args.sha256)
        elif isinstance(step.args, FetchWheel):
            assert step.survives and not step.sends
            copied.add(step.args.sha256)
        elif isinstance(step.args, InstallWheel):
            state = _installed(state, step.args, copied)
        else:
            assert isinstance(step.args, RemoveWheel)
            state = _removed(state, step.args)
    assert not copied, "a copy stays behind"
    return state


def _installed(state: NodeState, args: InstallWheel, copied: set[str]) -> NodeState:
    seen = state.environments[args.env]
    version = json.loads(args.said)["version"]
    info = f"{args.places[0]}/{args.dist}-{version}.dist-info"
    if args.pip:
        assert args.sha256 in copied and args.file.startswith(f"{WHEELS}/{args.sha256}/")
        there = {**seen.installed, args.dist: Installed(version=version, sha256=args.sha256)}
        seen = seen.model_copy(update={"installed": there})
        if not args.keep:
            copied.remove(args.sha256)
    assert seen.installed[args.dist].sha256 == args.sha256
    file = File(text=f"{info}\n{args.said}\n", mode=0o644, uid=0, gid=0, mtime=state.clock)
    return state.model_copy(
        update={
            "environments": {**state.environments, args.env: seen},
            "files": {**state.files, args.record: file},
            "wheels": {**state.wheels, info: args.sha256} if isinstance(state.wheels, dict) else {},
        }
    )


def _removed(state: NodeState, args: RemoveWheel) -> NodeState:
    info = state.files[args.record].text.partition("\n")[0]
    files = {path: file for path, file in state.files.items() if path != args.record}
    wheels = dict(state.wheels) if isinstance(state.wheels, dict) else {}
    if args.uninstall:
        wheels.pop(info, None)
    return state.model_copy(update={"files": files, "wheels": wheels})
