"""Questions: what the active checks ask a node, beyond the probe, by one more exec.

A component declares them beside its checks: a function of spec and state returns the questions to this node. Each is a
part of one script, ``templates/NAME/ask-WHAT.sh.j2``; templates/probe/active.sh.j2 begins that script. The answers
become ``state.active``, and checks parse them (:func:`gpuready.contract.need.answer`).

The script calls functions of templates/probe/active.sh.j2, each with the name of the answer: ``limited`` runs a program
with a time limit, ``asked`` a function of the shell, ``failed`` says why a question cannot be put, and ``unasked`` that
something hangs.
"""

from collections.abc import Callable, Iterable, Mapping

from gpuready.base.facts import Answer, Unknown
from gpuready.base.records import Records
from gpuready.base.step import Script
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_GRACE = 10
_UNASKED = "not asked, because "


class Question(Script):
    """A part of the script of the active checks.

    ``limits``: what the part calls, most often the name of the answer -> seconds. After that time, the part abandons
    the call, so that the other questions are still asked. The size of an answer is limited as that of a probe's.
    """

    limits: Mapping[str, int]

    @property
    def longest(self) -> int:
        """Return the longest time that the part can take, in seconds."""
        return sum(self.limits.values()) + _GRACE * len(self.limits)


Questions = Callable[[NodeSpec, NodeState], Iterable[Question]]


def answers(records: Records) -> dict[str, Answer | Unknown]:
    """Return each answer by name, or why there is none."""
    return {
        name: Unknown(unknown=out.strip()) if rc and out.startswith(_UNASKED) else Answer(rc=rc, out=out)
        for name, (rc, out) in records.runs.items()
    }
