"""What a check or a component needs to know of a node: returned, or the check or comparison ends."""

from typing import TypeVar

from gpuready.base.facts import Answer
from gpuready.contract.check import EndCheck, skip, unknown
from gpuready.contract.component import NotComparable
from gpuready.model.state import NodeState, Unknown

T = TypeVar("T")


def value(found: T | Unknown) -> T:
    """Return the value. If it could not be read, a check is unknown and a component blocked, with the reason."""
    if isinstance(found, Unknown):
        raise NotComparable(found.unknown)
    return found


def answer(state: NodeState, question: str, otherwise: str = "not checked") -> Answer:
    """Return what the second exec printed for a question. Without it, the check is unknown (``otherwise``: why)."""
    found = state.active.get(question, Unknown(unknown=otherwise))
    if isinstance(found, Unknown):
        raise EndCheck(unknown(found.unknown))
    return found


def driver(state: NodeState) -> str:
    """Return the version of the loaded driver. Without one, the check is skipped."""
    if not state.driver.loaded:
        raise EndCheck(skip("no nvidia module is loaded"))
    return state.driver.loaded
