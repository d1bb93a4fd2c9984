"""nvidia-ctk: the CDI spec that it makes."""

import json
import re

from gpuready.base.facts import KEPT
from gpuready.components.cdi.component import CdiGenerate
from gpuready.model.state import File, NodeState
from tests.components.closing import Closed, file_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """nvidia-ctk makes a spec of the driver that is loaded and the GPUs that nvidia-smi names; old ones go aside."""
    if not any(isinstance(step.args, CdiGenerate) for step in steps.steps):  # the way back
        return state
    args = steps.args(CdiGenerate)
    files = dict(state.files)
    if args.make:
        version = state.driver.proc_version or state.driver.module_version
        smi = state.driver.smi if isinstance(state.driver.smi, str) else ""
        names = [name for n, uuid in enumerate(re.findall(r"<uuid>(GPU-.*?)<", smi)) for name in (str(n), uuid)]
        names += re.findall(r"<index>(\d+)</index>", smi) and ["0:0", "0:1", "MIG-1"]
        spec = {
            "cdiVersion": "0.5.0",
            "kind": "nvidia.com/gpu",
            "devices": [{"name": name, "containerEdits": {}} for name in [*names, "all"]],
            "containerEdits": {"mounts": [{"hostPath": f"/usr/lib/libcuda.so.{version}"}]},
        }
        _keeps(files, args.target, state)
        files[args.target] = file_of(json.dumps(spec), state)
        files[f"{KEPT}{args.target}.ours"] = file_of(files[args.target].sha256, state)
    for word in args.shadows:
        sha, _, path = word.partition(":")
        _keeps(files, path, state)
        assert files.pop(path).sha256 == sha
        files[f"{KEPT}{path}.ours"] = file_of("absent", state)
    return state.model_copy(update={"files": files, "cdi_missing": ()})


def _keeps(files: dict[str, File], path: str, state: NodeState) -> None:
    """The first copy of a file is its original."""
    if f"{KEPT}{path}.ours" not in files:
        kind = "original" if path in files else "absent"
        files[f"{KEPT}{path}.{kind}"] = files.get(path) or file_of("", state)
