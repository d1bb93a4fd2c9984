"""CRI-O: a restart reads all of its files."""

import tomlkit

from gpuready.base.facts import KEPT
from gpuready.base.nvidia_ctk import Configure
from gpuready.base.step import Script, Step
from gpuready.components.crio import files as criofiles
from gpuready.components.crio.component import UNIT, CrioInstall
from gpuready.components.crio.files import DROP_IN
from gpuready.components.toolkit_config.state import RUNTIME_PATH
from gpuready.model.state import Cri, NodeState, Unknown
from tests.components.closing import Closed, text_of, without


def answer(step: Step, state: NodeState, steps: Closed) -> str:
    return _staged(step.args.given.decode()) if isinstance(step.args, Configure) else ""


def _staged(given: str) -> str:
    """What nvidia-ctk makes of a crio.conf: the default runtime's table under its own name, with its own path."""
    runtime = tomlkit.parse(given).unwrap().get("crio", {}).get("runtime", {})
    table = runtime.get("runtimes", {}).get(runtime.get("default_runtime"), {})
    nvidia = {**table, "runtime_path": RUNTIME_PATH, "runtime_type": "oci"}
    return tomlkit.dumps({"crio": {"runtime": {"runtimes": {"nvidia": nvidia}}}})


def wrote(args: Script, steps: Closed) -> None:
    if isinstance(args, CrioInstall) and args.content:
        steps.writes[args.path] = text_of(args.content)
    elif isinstance(args, CrioInstall) and args.restores and not args.has_original:
        steps.removes.append(args.path)


def closed(state: NodeState, steps: Closed) -> NodeState:
    """A restart reads all files; systemd knows when that was."""
    if steps.args(CrioInstall).restores:
        original = state.files.get(f"{KEPT}{DROP_IN}.original")
        state = without(state, f"{KEPT}{DROP_IN}.")
        if original:
            state = state.model_copy(update={"files": {**state.files, DROP_IN: original}})
    if not steps.args(CrioInstall).restart or isinstance(state.units, Unknown):
        return state
    unit = state.units[UNIT].model_copy(update={"started_us": (state.uptime + 20) * 10**6})
    files = criofiles.effective(state)
    tables = {name: {"runtime_type": "oci", **table} for name, table in files.runtimes.items()}
    running = state.crio and Cri(default_runtime=files.default or "crun", runtimes=tables)
    return state.model_copy(update={"units": {**state.units, UNIT: unit}, "crio": running})
