"""dockerd: what it reads from daemon.json at a reload and at a restart."""

import json
from typing import Any

from gpuready.base import json_document
from gpuready.base.facts import KEPT
from gpuready.base.nvidia_ctk import Configure
from gpuready.base.step import Script, Step
from gpuready.components.docker.keys import LOADED, OURS
from gpuready.components.docker.state import CONFIG
from gpuready.components.docker.transaction import DockerInstall
from gpuready.model.state import Docker, NodeState
from tests.components.closing import Closed, file_of, text_of, without

STAGED = '{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}'


def answer(step: Step, state: NodeState, steps: Closed) -> str:
    """nvidia-ctk's daemon.json."""
    return (steps.staged or STAGED) if isinstance(step.args, Configure) else ""


def wrote(args: Script, steps: Closed) -> None:
    """The file is loaded, then it gets its last content."""
    if not isinstance(args, DockerInstall):
        return
    if args.between:
        steps.records[args.ours] = args.between if args.forget and args.later else args.after
    if not args.content:
        return
    if args.last == "none":
        steps.removes.append(args.path)
    else:
        steps.writes[args.path] = text_of(args.final if args.last else args.content)


def closed(state: NodeState, steps: Closed) -> NodeState:
    """dockerd takes over what a reload takes over and forgets nothing; a restart begins anew."""
    args = steps.args(DockerInstall)
    if args.forget and not args.later:
        state = without(state, OURS, f"{KEPT}{CONFIG}.")
    if not isinstance(state.docker, Docker):
        return state
    document = json_document.read(args.content or (state.files[CONFIG].data if CONFIG in state.files else b""))
    runtimes = {name: entry.get("path", "") for name, entry in (document.get("runtimes") or {}).items()}
    if "runtimes" not in document and not args.restart:
        runtimes = state.docker.runtimes
    flags = json.dumps(state.dockerd_command)
    update: dict[str, Any] = {"runtimes": {"runc": "runc", **runtimes}}
    if "--default-runtime" not in flags:
        update["default_runtime"] = document.get(
            "default-runtime", "runc" if args.restart else state.docker.default_runtime
        )
    if "--live-restore" not in flags:
        update["live_restore"] = document.get("live-restore", False if args.restart else state.docker.live_restore)
    if "--add-runtime" in flags:
        update["runtimes"] = state.docker.runtimes
    if args.runtime_paths:  # the step waits until the engine names one of them
        assert update["runtimes"].get("nvidia") in args.runtime_paths
    if args.restart:
        update["cdi_spec_dirs"] = ("/etc/cdi",) if (document.get("features") or {}).get("cdi") else ()
    files = dict(state.files)
    if CONFIG in files:
        files[LOADED] = file_of(files[CONFIG].sha256, state)
    docker = state.docker.model_copy(update=update)
    return state.model_copy(update={"docker": docker, "files": files})
