"""Run the exec of the active checks. Its answers become ``state.active``, which the checks judge like other facts."""

from collections.abc import Sequence
from typing import Any

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.facts import Answer
from gpuready.base.records import Records
from gpuready.binaries import cuinit
from gpuready.components.containerd.component import pod_slice, sandbox_image
from gpuready.components.gate.component import SCRIPT as GATE
from gpuready.components.monitoring.component import scrape
from gpuready.model.active import IMAGE, LIMITS, TRACE, answers, longest
from gpuready.model.images import named
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown
from gpuready.operations.transport import run_script
from gpuready.operations.watchdog import holding
from gpuready.tools.compat.trace_facts import debug_log
from gpuready.tools.status.record import PATH

#: Seconds for an exec that only reads images, in addition to the time for each image.
_SHORT = 60
#: How the new container asks for all GPUs. A hardened toolkit ignores the variable and reads the mount.
ASK = {
    False: ("-e", "NVIDIA_VISIBLE_DEVICES=all"),
    True: ("-v", "/dev/null:/var/run/nvidia-container-devices/all"),
}


def run_active(host: Host, state: NodeState, spec: NodeSpec, record: str = "") -> NodeState:
    """Run one exec; return the state with ``active`` filled.

    ``record``: the text of the node's record, which the same exec writes. If it cannot, ``active`` has "record".
    """
    smi, runs = state.driver.smi, spec.verify.level != "config"
    values: dict[str, Any] = {
        "image": spec.verify.image or "" if runs else "",
        "cuinit": cuinit(state.machine),
        "torch": spec.verify.torch or "" if runs else "",
        "torch_smoke": resources.document("probe/torch-smoke.py"),
        "environments": [(one.env, one.name) for one in spec.torch_wheels] if runs else [],
        "wheel_smoke": resources.document("wheels/smoke.py"),
        "ask": ASK[spec.toolkit.hardened],
        "hardened": "1" if spec.toolkit.hardened else "",
        "pause": sandbox_image(spec, state),
        "slice": pod_slice(state),
        "limits": LIMITS,
        "hung": "1" if isinstance(smi, Unknown) and "no answer" in smi.unknown else "",
        "scrape": scrape(spec),
        "gate": (GATE,) if spec.gate else (),
        "initramfs": state.boots.older_initramfs,
        "images": [one.ref for one in named(spec.images)] if runs and state.driver.loaded else [],
        "record": record,
        "record_path": PATH,
    }
    limit = longest(len(values["environments"]), len(values["images"]))
    lines = run_script(host, resources.script("probe/active", **values), limit, "active checks")
    with holding("reading"):
        return state.model_copy(update={"active": {"done": Answer(), **answers(Records(lines))}})


def trace_images(host: Host, state: NodeState, spec: NodeSpec, images: Sequence[str]) -> NodeState:
    """Start a container of each image, and look at it; return the state with what was seen in ``active``."""
    script = resources.script(
        "tools/compat/trace",
        images=images,
        ask=ASK[spec.toolkit.hardened],
        cuinit=cuinit(state.machine),
        limits=LIMITS,
        debug=debug_log(state),
    )
    lines = run_script(host, script, _SHORT + TRACE * len(images), "trace images")
    with holding("reading"):
        return state.model_copy(update={"active": {**state.active, **answers(Records(lines))}})


def read_images(host: Host, state: NodeState, spec: NodeSpec) -> NodeState:
    """Read only the spec's images, in the node's engines. Without images, no exec runs."""
    images = [one.ref for one in named(spec.images)]
    if not images:
        return state
    script = resources.script("tools/compat/read-images", images=images)
    lines = run_script(host, script, _SHORT + IMAGE * len(images), "read images")
    with holding("reading"):
        return state.model_copy(update={"active": answers(Records(lines))})
