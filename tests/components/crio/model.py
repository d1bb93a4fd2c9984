"""CRI-O: a reload reads all of its files."""

import tomlkit

from gpuready.base.nvidia_ctk import Configure
from gpuready.base.step import Script, Step
from gpuready.components.crio import files as criofiles
from gpuready.components.crio.component import UNIT, CrioInstall
from gpuready.components.toolkit_config.state import RUNTIME_PATH
from gpuready.model.state import Cri, NodeState, Unknown
from tests.components.closing import Closed, text_of


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


def closed(state: NodeState, steps: Closed) -> NodeState:
    """A reload reads all files; systemd knows when that was."""
    if not steps.args(CrioInstall).reload or isinstance(state.units, Unknown):
        return state
    unit = state.units[UNIT].model_copy(update={"changed_us": (state.uptime + 20) * 10**6})
    files = criofiles.effective(state)
    tables = {name: {"runtime_type": "oci", **table} for name, table in files.runtimes.items()}
    running = state.crio and Cri(default_runtime=files.default or "crun", runtimes=tables)
    return state.model_copy(update={"units": {**state.units, UNIT: unit}, "crio": running})
