"""nvidia-ctk: the CDI spec that it makes."""

import json
import re

from gpuready.components.cdi.component import CdiGenerate
from gpuready.model.state import NodeState
from tests.components.closing import Closed, file_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """nvidia-ctk makes a spec of the driver that is loaded and the GPUs that nvidia-smi names; old ones go aside."""
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
        files[args.target] = file_of(json.dumps(spec), state)
    for word in args.shadows:
        sha, _, path = word.partition(":")
        assert files.pop(path).sha256 == sha
    return state.model_copy(update={"files": files, "cdi_missing": ()})
