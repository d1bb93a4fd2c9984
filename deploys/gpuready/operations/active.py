"""Run the exec of the active checks. Its answers become ``state.active``, which the checks judge like other facts."""

from collections.abc import Iterable

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.facts import Answer, Unknown
from gpuready.base.records import Records
from gpuready.binaries import cuinit
from gpuready.contract import image_boot
from gpuready.contract.node_record import PATH
from gpuready.contract.question import Question, Questions, answers
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations.transport import run_script
from gpuready.operations.watchdog import holding

#: Seconds for the exec, in addition to the time for its questions.
_SHORT = 60


def script(
    asked: Iterable[Question], *, cuinit: str = "", hung: bool = False, record: str = "", converged: bool = False
) -> str:
    """Return the script of the active checks: its beginning, the part of each question, and its end."""
    left = image_boot.FILES if converged else ()
    begin = resources.script("probe/active", cuinit=cuinit, hung=hung, record=record, record_path=PATH, image_boot=left)
    return "".join((begin, *(question.render() for question in asked), 'end "$N"\n'))


def run_active(
    host: Host,
    state: NodeState,
    spec: NodeSpec,
    questions: Iterable[Questions],
    record: str = "",
    *,
    converged: bool = False,
) -> NodeState:
    """Run one exec; return the state with ``active`` filled.

    ``record``: the text of the node's record, which the same exec writes. If it cannot, ``active`` has "record".
    ``converged``: an apply did all that the spec says, so the exec removes what an image left for its first boot.
    """
    smi = state.driver.smi
    hung = isinstance(smi, Unknown) and "no answer" in smi.unknown
    asked = [question for ask in questions for question in ask(spec, state)]
    text = script(asked, cuinit=cuinit(state.machine), hung=hung, record=record, converged=converged)
    found = answers_of(host, text, sum(question.longest for question in asked), "active checks")
    return state.model_copy(update={"active": {"done": Answer(), **found}})


def answers_of(host: Host, text: str, seconds: int, name: str) -> dict[str, Answer | Unknown]:
    """Run a script of questions, which may take ``seconds``; return its answers. ``name``: of the exec."""
    lines = run_script(host, text, _SHORT + seconds, name)
    with holding("reading"):
        return answers(Records(lines))
