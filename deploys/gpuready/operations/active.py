"""The active checks' exec: what it answers becomes ``state.active``; the checks judge it like all else."""

from __future__ import annotations

from pyinfra.api.host import Host

from gpuready import resources
from gpuready.components.containerd import sandbox_image
from gpuready.components.monitoring import scrape
from gpuready.operations.transport import run_script
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState
from gpuready.state.records import Records

TIMEOUT = 240
#: How the new container asks for all GPUs: the second way is the one that a hardened toolkit still hears.
_ASK = {
    False: ("-e", "NVIDIA_VISIBLE_DEVICES=all"),
    True: ("-v", "/dev/null:/var/run/nvidia-container-devices/all"),
}


def run_active(host: Host, state: NodeState, spec: NodeSpec) -> NodeState:
    """One exec; returns the state with ``active`` filled (name -> {"rc", "out"})."""
    image = spec.verify.image or "" if spec.verify.level != "config" else ""
    values = {
        "image": image,
        "ask": _ASK[spec.toolkit.hardened],
        "hardened": "1" if spec.toolkit.hardened else "",
        "pause": sandbox_image(spec, state),
        "scrape": scrape(spec),
    }
    records = Records(run_script(host, resources.script("active", **values), TIMEOUT))
    answers = {name: {"rc": rc, "out": out} for name, (rc, out) in records.runs.items()}
    return state.model_copy(update={"active": {"done": True, **answers}})
