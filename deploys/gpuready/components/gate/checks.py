"""The check of the gate: what the program on the node tells a scheduler now."""

from gpuready.components.gate.component import SCRIPT
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip
from gpuready.contract.question import Question
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_DRIVER = ("driver.loaded", "driver.match", "libcuda.ldcache")
_GPUS = ("gpu.answers", "gpu.count", "gpu.xid", "gpu.sxid", "gpu.fabric")
_OTHERS = ("docker.config", "containerd.config", "rdma.ports")


def _ready(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.gate:
        return skip("gate: off")
    answer = need.answer(state, "gate")
    line, code = " ".join(answer.out.split())[:400], answer.rc
    if code != 0:
        return fail(line or f"{SCRIPT} exits with {code} and prints nothing")
    return passed(line.removeprefix("gpuready: ok: "))


class AskGate(Question, template="gate/ask-gate"):
    """Run the gate's program, as a scheduler does."""

    program: str = SCRIPT


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskGate({"gate": 25}),) if spec.gate else ()


CHECKS = (
    Check(
        "gate.ready",
        "the gate lets GPU jobs start",
        Level.effective,
        "gpuready-verify, which a scheduler asks on the node, says that no GPU job may start here.",
        f"{SCRIPT}; echo $?",
        "gpuready explain with the id of the check in that line",
        _ready,
        component="gate",
        active=True,
        after=("gate.config", *_DRIVER, *_GPUS, "cdi.spec", "cdi.stale", *_OTHERS),
    ),
)
