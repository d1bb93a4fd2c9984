"""Judge a new container that an engine started: did it run, and does it have the node's GPUs?"""

import re

from gpuready.base.errors import brief
from gpuready.components.toolkit_config.state import RUNTIME
from gpuready.contract.check import Verdict, fail, has_gpu, passed
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

#: How a new container asks for all GPUs. A hardened toolkit ignores the variable and reads the mount.
ASK = {
    False: ("-e", "NVIDIA_VISIBLE_DEVICES=all"),
    True: ("-v", "/dev/null:/var/run/nvidia-container-devices/all"),
}
#: Seconds for Docker to look for the image, to run a container of it, and to remove that.
DOCKER_LIMITS = {"inspect": 20, "smoke": 120, "unmake": 60}
#: The last line that Docker prints after an error; it depends on the version.
_HELP = re.compile(r"^(See|Run) 'docker run --help'.*$", re.M)


def not_run(what: str, rc: int, out: str, remedy: str = "") -> Verdict:
    """Return the verdict on a container that did not run: the reason, and its whole output if that is longer."""
    why = brief(_HELP.sub("", out)) or f"exit {rc}"
    because = "gpu.count" if "nvml error" in out else ""
    return fail(f"{what}: {why}", remedy, "" if out in why else out[-4000:], because=because)


def gpus_seen(spec: NodeSpec, state: NodeState, out: str, what: str) -> Verdict:
    """Return the verdict on a container that ran: does it have the node's GPUs?"""
    m = re.search(r"gpus=(\d+)", out)
    seen = int(m[1]) if m else 0
    if has_gpu(state) and not spec.hardware.without_gpus:
        want = spec.hardware.expected_gpus or 1
        if seen < want:
            summary = f"{what} has {seen} of {want} GPU device nodes"
            return fail(summary, evidence=out.partition("\n")[0], because="gpu.count")
        return passed(f"{what} under {RUNTIME} sees GPUs: {seen}")
    return passed(f"{what} runs under the runtime nvidia (no GPU on this node)")
