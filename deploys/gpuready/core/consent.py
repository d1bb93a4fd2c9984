"""What may be disturbed now: the least of what the spec's ``maintenance`` and the command line allow. Pure.

Idleness is only forecast here, from the probe's answers; each step that disturbs looks again on the node itself.
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
    """What of a difference may be closed now, of what class that is, and what the rest waits for."""

    permitted: tuple[Change, ...] = ()
    kind: Disruption = Disruption.none
    waits: str = ""

    @property
    def disturbs(self) -> bool:
        """Is consent needed at all?"""
        return self.kind >= Disruption.recreate


def rule(
    item: Component,
    diff: tuple[Change, ...],
    spec: NodeSpec,
    state: NodeState,
    allowed: Disruption,
    blocked: Sequence[str] = (),
) -> Ruling:
    """The ruling on one component; ``blocked`` are those before it that wait, ``allowed`` is --allow-disruption."""
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
    """The rulings on all that differ on a node, by name, in their order; ``back``: each needs all before it.

    ``others`` are those that were not selected.
    """
    found: dict[str, Ruling] = {}
    for item, comparison in compared.items():
        if comparison.diff and not comparison.error:
            blocked = [name for name, ruling in found.items() if ruling.waits and (back or name in item.requires)]
            found[item.name] = rule(item, comparison.diff, spec, state, allowed, [*blocked, *users(item, others)])
    return found


def users(item: Component, others: Mapping[Component, Comparison]) -> list[str]:
    """Those that were not selected, and would be left with something of ours that needs what ``item`` takes away."""
    return [
        f"{other.name} (not selected)"
        for other, comparison in others.items()
        if item.name in other.requires and (comparison.diff or comparison.error)
    ]


def way(kind: Disruption, spec: NodeSpec) -> str:
    """The word of ``maintenance`` that rules a class: idle, never or drained."""
    return spec.maintenance.reboot if kind == Disruption.reboot else spec.maintenance.restart


def _waits(kind: Disruption, hits: tuple[str, ...], spec: NodeSpec, allowed: Disruption) -> str:
    """Why this is not done now and how to have it done, or nothing."""
    if kind == Disruption.reboot and (needs := _reboot_needs(spec, allowed)):
        return f"for permission to reboot: set {needs}"
    if kind > allowed:
        return (
            f"for permission: class {kind.name}, and --allow-disruption is {allowed.name}; "
            f"use --allow-disruption {kind.name}"
        )
    if kind == Disruption.restart and spec.maintenance.restart == "never":
        return "for permission: maintenance.restart is never; set it to idle or drained"
    if hits and kind >= Disruption.recreate and way(kind, spec) != "drained":
        return f"until idle: class {kind.name} would affect {', '.join(hits)}; run again afterwards"
    return ""


def _reboot_needs(spec: NodeSpec, allowed: Disruption) -> str:
    """What is missing for a reboot; the default is without, on both sides."""
    word = "maintenance: {reboot: idle} (or drained) in the spec" if spec.maintenance.reboot == "never" else ""
    flag = "--allow-disruption reboot on the command line" if allowed < Disruption.reboot else ""
    return " and ".join(part for part in (word, flag) if part)
