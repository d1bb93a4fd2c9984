"""containerd as Kubernetes sees it: the runtime in the configuration that runs, and a new pod under it, through CRI.

Never through ``ctr``, which passes by the configuration of runtimes. Sources: CRI's api.proto, crictl's documentation.
"""

from __future__ import annotations

from collections.abc import Collection

from gpuready.components.containerd.component import RUNNING, TAKEN_OVER, Containerd
from gpuready.components.containerd.state import effective
from gpuready.components.containerd.unit import UNIT, unit
from gpuready.core import owners
from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown, unread, warn
from gpuready.core.component import NotComparable
from gpuready.core.smoke import gpus_seen, not_run
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown


def _runtime(spec: NodeSpec, state: NodeState) -> Verdict:
    component = Containerd()
    applies = component.applies(spec, state)
    if not applies.yes:
        return skip(applies.reason)
    if isinstance(state.containerd, Unknown):
        return unread(state.containerd)
    try:
        found, actual = effective(state.containerd or ""), component.actual(spec, state)
    except (ValueError, NotComparable) as e:
        return unknown(str(e))
    whose = owners.observed("runtime", spec, state, "containerd")
    remedy = f"see to it there: {whose}" if whose else ""
    if "nvidia" not in found.runtimes:
        if whose:
            return skip(f"{whose}, which has given containerd no runtime nvidia")
        return fail(f"containerd's runtimes are {', '.join(sorted(found.runtimes)) or 'none'}, not nvidia")
    if found.default_runtime not in found.runtimes:
        told = f"containerd serves no CRI: its default runtime {found.default_runtime} is not defined"
        return fail(told, remedy)
    if unit(state).active != "active":
        return skip(f"{whose}, and {UNIT} does not run") if whose else unknown(f"{UNIT} does not run")
    running = actual[RUNNING]
    if isinstance(running, Unknown):
        return unread(running)
    if running != TAKEN_OVER:
        told = f"containerd runs with an older configuration: {running}"
        return warn(told, remedy) if whose else fail(told)
    extra = ", the default" if found.default_runtime == "nvidia" else ""
    what = f"nvidia ({actual.get('containerd.runtimes.nvidia.options.BinaryName')}{extra})"
    if state.cri is None:
        return passed(
            f"containerd's files name {what} and are older than its start; CRI was not asked, because crictl is missing"
        )
    return passed(f"containerd runs with {what}, as CRI confirms")


def _pod(spec: NodeSpec, state: NodeState) -> Verdict:
    applies = Containerd().applies(spec, state)
    if not applies.yes:
        return skip(applies.reason)
    if not spec.verify.image:
        return skip("verify.image is not set, and gpuready pulls no image by itself")
    whose = owners.observed("runtime", spec, state, "containerd")
    if whose and "nvidia" not in _runtimes(state):
        return skip(f"{whose}, which has given containerd no runtime nvidia")
    answer = state.active.get("pod")
    if answer is None:
        return skip("there is no crictl on the node to start a pod with")
    if "unknown" in answer:
        return unknown(answer["unknown"])
    out = answer.get("out", "").strip()
    if answer.get("rc"):
        return not_run(f"a pod of {spec.verify.image} under the runtime nvidia", answer["rc"], out)
    return gpus_seen(spec, state, out, "a pod")


def _runtimes(state: NodeState) -> Collection[str]:
    try:
        return effective(state.containerd).runtimes if isinstance(state.containerd, str) else ()
    except ValueError:
        return ()


CHECKS = (
    Check(
        "containerd.runtime",
        Level.effective,
        "config.toml names the runtime, but containerd never read it; or an imported file or a deprecated table "
        "(default_runtime) decides otherwise.",
        "crictl info | grep -i -A20 runtimes; containerd config dump | grep -A20 runtimes.nvidia",
        "apply; or systemctl restart containerd, and read its journal",
        _runtime,
    ),
    Check(
        "containerd.smoke",
        Level.smoke,
        "A pod under the runtime nvidia does not start, or has no GPU: containerd never read its configuration, the "
        "cgroup driver is another, a CDI spec is stale, or device nodes are missing.",
        "crictl runp --runtime=nvidia POD.json; journalctl -u containerd -n 50",
        "read the error, it is containerd's or nvidia-container-runtime's own",
        _pod,
        active=True,
        after=("containerd.runtime", "driver.loaded"),
    ),
)
