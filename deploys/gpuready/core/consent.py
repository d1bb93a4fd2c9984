"""Decide what may be disturbed now. Both the spec's ``maintenance`` and the command line must allow it. Pure.

Whether the node is idle is only a forecast here, from the probe. Each disruptive step checks again on the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gpuready.core.compare import Comparison
from gpuready.core.component import Change, Component, Disruption
from gpuready.core.ignored_containers import counted
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState


@dataclass(frozen=True)
class Ruling:
    """The part of a difference that may be closed now, its class, and what the rest waits for."""

    permitted: tuple[Change, ...] = ()
    kind: Disruption = Disruption.none
    waits: str = ""

    @property
    def disturbs(self) -> bool:
        """Whether closing the permitted part needs permission."""
        return self.kind >= Disruption.recreate


def rule(
    item: Component,
    diff: tuple[Change, ...],
    spec: NodeSpec,
    state: NodeState,
    allowed: Disruption,
    blocked: Sequence[str] = (),
) -> Ruling:
    """Decide on one component. ``blocked``: earlier components that wait. ``allowed``: --allow-disruption."""
    if blocked:
        return Ruling(waits=f"for {', '.join(blocked)}")
    found = Ruling()
    for group in item.groups(diff):
        wider = found.permitted + group
        kind = item.disruption(wider, state)
        waits = _waits(kind, item.hits(wider, counted(spec, state)), spec, allowed)
        if waits:
            return Ruling(found.permitted, found.kind, waits)
        found = Ruling(wider, kind)
    return found


def rulings(
    compared: Mapping[Component, Comparison],
    spec: NodeSpec,
    state: NodeState,
    allowed: Disruption,
    *,
    back: bool,
    others: Mapping[Component, Comparison] = MappingProxyType({}),
) -> dict[str, Ruling]:
    """Decide on all components with a difference; return the rulings by name, in order.

    ``back``: each component requires all that come before it. ``others``: the components that were not selected.
    """
    found: dict[str, Ruling] = {}
    for item, comparison in compared.items():
        if comparison.diff and not comparison.error:
            blocked = [name for name, ruling in found.items() if ruling.waits and (back or name in item.requires)]
            found[item.name] = rule(item, comparison.diff, spec, state, allowed, [*blocked, *users(item, others)])
    return found


def users(item: Component, others: Mapping[Component, Comparison]) -> list[str]:
    """Name the unselected components that still need what ``item`` would remove."""
    return [
        f"{other.name} (not selected)"
        for other, comparison in others.items()
        if item.name in other.requires and (comparison.diff or comparison.error)
    ]


def policy_for(kind: Disruption, spec: NodeSpec) -> str:
    """Return the setting in ``maintenance`` for a class: idle, never or drained."""
    return spec.maintenance.reboot if kind == Disruption.reboot else spec.maintenance.restart


def _waits(kind: Disruption, hits: tuple[str, ...], spec: NodeSpec, allowed: Disruption) -> str:
    """Return why this must wait and how to permit it; empty if it may be done now."""
    if kind == Disruption.reboot and (needs := _reboot_needs(spec, allowed)):
        return f"for permission to reboot: set {needs}"
    if kind > allowed:
        return (
            f"for permission: class {kind.name}, and --allow-disruption is {allowed.name}; "
            f"use --allow-disruption {kind.name}"
        )
    if kind == Disruption.restart and spec.maintenance.restart == "never":
        return "for permission: maintenance.restart is never; set it to idle or drained"
    if hits and kind >= Disruption.recreate and policy_for(kind, spec) != "drained":
        return f"until idle: class {kind.name} would affect {', '.join(hits)}; run again afterwards"
    return ""


def _reboot_needs(spec: NodeSpec, allowed: Disruption) -> str:
    """Return which permissions for a reboot are missing. By default, both are."""
    word = "maintenance: {reboot: idle} (or drained) in the spec" if spec.maintenance.reboot == "never" else ""
    flag = "--allow-disruption reboot on the command line" if allowed < Disruption.reboot else ""
    return " and ".join(part for part in (word, flag) if part)
