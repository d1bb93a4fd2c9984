"""Compare the expected state of a node with the actual one, for plan, apply and verify alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuready.core import owners
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable
from gpuready.core.ignored_containers import counted
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown
from gpuready.state.readiness import not_yet


@dataclass(frozen=True)
class Comparison:
    """The comparison of one component on one node. ``error``: why it cannot be compared, or must not be changed."""

    name: str
    applies: bool
    reason: str = ""
    diff: tuple[Change, ...] = ()
    disruption: Disruption = Disruption.none
    hits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""


def compare(component: Component, spec: NodeSpec, state: NodeState, *, original: bool = False) -> Comparison:
    """Compare one component. ``original``: compare with the state before gpuready's first change, not with the spec."""
    name = component.name
    remarks: tuple[str, ...] = ()
    try:
        if original:
            expected = component.original(spec, state)
            applies = Applies(bool(expected), "gpuready changed it" if expected else "gpuready changed nothing here")
        else:
            applies = component.applies(spec, state)
            if applies.yes and component.part and (other := owners.observed(component.part, spec, state, name)):
                applies = Applies(False, other)
            else:
                remarks = component.remarks(spec, state)
            expected = component.expected(spec, state) if applies.yes else {}
    except NotComparable as e:
        return Comparison(name, True, error=str(e))
    if not applies.yes:
        return Comparison(name, False, applies.reason, notes=remarks)
    if early := not_yet(state.units, component.unit):
        return Comparison(name, True, applies.reason, error=early.unknown)
    actual = component.actual(spec, state)
    diff = tuple(Change(key, actual.get(key), want) for key, want in expected.items() if actual.get(key) != want)
    blind = [f"{c.key}: {c.actual.unknown}" for c in diff if isinstance(c.actual, Unknown)]
    return Comparison(
        name,
        True,
        applies.reason,
        diff,
        component.disruption(diff, state) if diff and not blind else Disruption.none,
        component.hits(diff, counted(spec, state)) if diff and not blind else (),
        (component.notes(diff, spec, state) if diff and not blind else ()) + remarks,
        "; ".join(dict.fromkeys(blind)),
    )


def unselected(
    back: Iterable[Component], spec: NodeSpec, state: NodeState, selected: frozenset[str] | None
) -> dict[Component, Comparison]:
    """For ``remove``: compare the components that were not selected, to see what is still left of them.

    ``back``: the components in the order in which they are removed; empty for the other verbs.
    """
    left = (item for item in back if selected is not None and item.name not in selected)
    return {item: compare(item, spec, state, original=True) for item in left}
