"""containerd: its dump of the files that are there, and CRI's answer."""

from gpuready.base.facts import KEPT
from gpuready.base.nvidia_ctk import Configure
from gpuready.base.step import Script, Step
from gpuready.components.containerd.component import ContainerdInstall, ContainerdValidate
from gpuready.components.containerd.state import effective
from gpuready.model.state import Cri, NodeState
from tests.components.closing import Closed, file_of, text_of, without
from tests.components.containerd import containerdmodel

STAGED = """version = 2

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
options = {BinaryName = "/usr/bin/nvidia-container-runtime"}
"""


def answer(step: Step, state: NodeState, steps: Closed) -> str:
    """nvidia-ctk's configuration, and containerd's dump of the new one."""
    match step.args:
        case Configure():
            return STAGED
        case ContainerdValidate(path=path, content=content):
            return _dumped(state, {path: text_of(content)})
        case _:
            return ""


def wrote(args: Script, steps: Closed) -> None:
    if not isinstance(args, ContainerdInstall):
        return
    if args.write or args.remove:
        steps.records[args.ours] = args.after
    if args.write:
        steps.writes[args.path] = text_of(args.content)
    if args.remove:
        steps.removes.append(args.path)


def closed(state: NodeState, steps: Closed) -> NodeState:
    """The dump is of what lies there now; a restart takes it over."""
    args = steps.args(ContainerdInstall)
    ours = {f"{KEPT}{path}.ours": file_of(f"{state.files[path].sha256}\n", state) for path in steps.writes}
    state = state.model_copy(update={"files": state.files | ours})
    if args.forget:
        state = without(state, *(f"{KEPT}{path}." for path in (*steps.writes, *steps.removes)))
    unloaded = () if args.restart else (*state.unloaded, *steps.writes)
    dump, running = _dumped(state, {}), state.cri
    if args.restart and running is not None:
        running = Cri.model_validate(containerdmodel.cri(dump))
    return state.model_copy(update={"containerd": dump, "unloaded": unloaded, "cri": running})


def _dumped(state: NodeState, changed: dict[str, str | None]) -> str:
    """What containerd would report with these files; its version is that of the recorded dump."""
    now = effective(str(state.containerd))
    version = "2.1" if now.version >= 3 else "1.7" if "enable_cdi" in now.cri else "1.6"
    files: dict[str, str | None] = {path: file.text for path, file in state.files.items()}
    return containerdmodel.dump(version, {path: text for path, text in (files | changed).items() if text is not None})
