"""Checks of containerd through CRI, as Kubernetes uses it: the running configuration, and a new pod.

They never use ``ctr``, which ignores the configuration of runtimes. Sources: CRI's api.proto, crictl's documentation.
"""

from gpuready.components.containerd import files, keys
from gpuready.components.containerd.component import LOADED, RUNNING, Containerd
from gpuready.components.containerd.files import UNIT
from gpuready.contract import need, owners
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.contract.smoke import gpus_seen, not_run
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def _runtime(spec: NodeSpec, state: NodeState) -> Verdict:
    component = Containerd()
    applies = component.applies(spec, state)
    if not applies.yes:
        return skip(applies.reason)
    found, actual = files.readable(state), component.actual(spec, state)
    whose = owners.observed("runtime", spec, state, "containerd")
    remedy = f"change it there: {whose}" if whose else ""
    if "nvidia" not in found.runtimes:
        if whose:
            return skip(f"{whose}, and containerd has no runtime nvidia")
        return fail(f"containerd has no runtime nvidia; its runtimes: {', '.join(sorted(found.runtimes)) or 'none'}")
    if found.default_runtime not in found.runtimes:
        told = f"containerd serves no CRI: its default runtime {found.default_runtime} is not defined"
        return fail(told, remedy)
    if state.unit(UNIT).active != "active":
        return skip(f"{whose}, and {UNIT} does not run") if whose else unknown(f"{UNIT} does not run")
    running = need.value(actual[RUNNING])
    if running != LOADED:
        told = f"containerd runs with an older configuration: {running}"
        return warn(told, remedy) if whose else fail(told)
    extra = ", the default" if found.default_runtime == "nvidia" else ""
    what = f"nvidia ({actual.get('containerd.runtimes.nvidia.options.BinaryName')}{extra})"
    if state.cri is None:
        return passed(
            f"containerd's files name {what}, and did not change since its start (crictl is missing, so CRI was not "
            "checked)"
        )
    return passed(f"containerd runs with {what}, as CRI confirms")


def _pod(spec: NodeSpec, state: NodeState) -> Verdict:
    applies = Containerd().applies(spec, state)
    if not applies.yes:
        return skip(applies.reason)
    if not spec.verify.image:
        return skip("verify.image is not set, and gpuready pulls no image by itself")
    whose = owners.observed("runtime", spec, state, "containerd")
    found = files.known(state)
    if whose and (found is None or "nvidia" not in found.runtimes):
        return skip(f"{whose}, and containerd has no runtime nvidia")
    if "pod" not in state.active:
        return skip("there is no crictl on the node to start a pod with")
    answer = need.answer(state, "pod")
    out = answer.out.strip()
    if answer.rc:
        return not_run(f"a pod of {spec.verify.image} under the runtime nvidia", answer.rc, out)
    return gpus_seen(spec, state, out, "a pod")


class AskPod(Question, template="containerd/ask-pod"):
    """Start a new pod under nvidia through CRI and look into it."""

    image: str
    pause: str
    hardened: bool
    slice: str


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    found, image = files.known(state), spec.verify.image
    runs = state.unit(UNIT).active == "active" and Containerd().applies(spec, state).yes
    if not image or spec.verify.level == "config" or not runs or found is None or not found.sandbox_image:
        return ()
    # The cgroup parent that a pod under nvidia needs; empty if containerd's default works.
    slice = "system.slice" if keys.by_systemd(found.runtimes.get("nvidia", {})) else ""
    return (AskPod({"pod": 120, "unpod": 60}, image, found.sandbox_image, spec.toolkit.hardened, slice),)


CHECKS = (
    Check(
        "containerd.runtime",
        "containerd knows the runtime nvidia",
        Level.effective,
        "config.toml names the runtime, but containerd has not read it. Or an imported file or a deprecated table "
        "(default_runtime) overrides it.",
        "crictl info | grep -i -A20 runtimes; containerd config dump | grep -A20 runtimes.nvidia",
        "gpuready apply; or systemctl restart containerd, and read its journal",
        _runtime,
        component="containerd",
    ),
    Check(
        "containerd.smoke",
        "a new pod sees the GPUs",
        Level.smoke,
        "A pod under the runtime nvidia does not start, or has no GPU: containerd has not read its configuration, the "
        "cgroup driver differs, a CDI spec is stale, or device nodes are missing.",
        "crictl runp --runtime=nvidia POD.json; journalctl -u containerd -n 50",
        "read the error: it comes from containerd or nvidia-container-runtime",
        _pod,
        component="containerd",
        active=True,
        after=("containerd.runtime", "driver.loaded"),
    ),
)
