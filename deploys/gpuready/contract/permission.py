"""Decide what is done now, and what waits for what. ``maintenance`` and the command line must both permit it. Pure.

How disruptive a change is, and what it affects, the component says (``disruption``, ``affected``).

Whether the node is idle is only a forecast here, from the probe. Each disruptive step checks again on the node
(templates/lib/idle.sh.j2, exit code ``PENDING_EXIT``). Outside of ``maintenance.window``, no restart, reboot or drain
begins.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from gpuready.base.window import opening
from gpuready.contract.compare import Plan
from gpuready.contract.component import Change, Component, Disruption
from gpuready.contract.ignored_containers import counted
from gpuready.model.spec import NodeSpec

#: In a reason to wait for the window.
FOR_WINDOW = "for the maintenance window, which opens"
_MOST_KEYS = 4


@dataclass(frozen=True)
class Permission:
    """The permitted part of a difference and its disruption. ``pending``: what the rest waits for."""

    diff: tuple[Change, ...] = ()
    disruption: Disruption = Disruption.none
    pending: str = ""

    @property
    def disruptive(self) -> bool:
        """Whether the permitted part may affect running work."""
        return self.disruption >= Disruption.recreate

    def forecast(self, whole: tuple[Change, ...]) -> str:
        """Return what the difference ``whole`` waits for, with the keys that wait if the others do not."""
        waiting = [change.key for change in whole if change not in self.diff]
        if not self.pending or len(waiting) == len(whole):
            return self.pending
        more = f" and {len(waiting) - _MOST_KEYS} more" if len(waiting) > _MOST_KEYS else ""
        return f"only {', '.join(waiting[:_MOST_KEYS])}{more}: {self.pending}"

    def drains(self, spec: NodeSpec) -> bool:
        """Tell whether the node must be drained first."""
        return self.disruptive and _policy(self.disruption, spec) == "drained"


def permission(
    item: Component, plan: Plan, allowed: Disruption, now: datetime | None, unfinished: Collection[str] = ()
) -> Permission:
    """Decide on one component. ``unfinished``: earlier ones that failed or wait. ``allowed``: --allow-disruption.

    Without ``now``, the maintenance window is open.
    """
    blocked = [name for name in unfinished if name in item.requires] + _users(item, plan)
    if blocked:
        return Permission(pending=f"for {', '.join(blocked)}")
    found = Permission()
    for group in item.groups(plan[item].diff):
        wider = found.diff + group
        disruption = item.disruption(wider, plan.state)
        affected = item.affected(wider, counted(plan.spec, plan.state))
        if pending := _pending(disruption, affected, plan.spec, allowed, now):
            return replace(found, pending=pending)
        found = Permission(wider, disruption)
    return found


def permissions(plan: Plan, allowed: Disruption, now: datetime | None) -> dict[str, Permission]:
    """Decide on all selected components with a difference; return the permissions by name, in order."""
    found: dict[str, Permission] = {}
    for item in plan.chosen:
        if plan[item].diff and not plan[item].error:
            unfinished = [name for name, given in found.items() if given.pending]
            found[item.name] = permission(item, plan, allowed, now, unfinished)
    return found


def _users(item: Component, plan: Plan) -> list[str]:
    """Name the unselected components that still need ``item``."""
    others = [other for other in plan.left_out if other.name in item.users]
    return [f"{other.name} (not selected)" for other in others if plan[other].diff or plan[other].error]


def _policy(disruption: Disruption, spec: NodeSpec) -> str:
    """Return the setting in ``maintenance`` for a disruption: idle, never or drained."""
    return spec.maintenance.reboot if disruption == Disruption.reboot else spec.maintenance.restart


def _pending(
    disruption: Disruption, affected: tuple[str, ...], spec: NodeSpec, allowed: Disruption, now: datetime | None
) -> str:
    """Return why this must wait and how to permit it; empty if it may be done now."""
    if disruption == Disruption.reboot and (needs := _reboot_needs(spec, allowed)):
        return f"for permission to reboot: set {needs}"
    if disruption > allowed:
        return (
            f"for permission: class {disruption.name}, and --allow-disruption is {allowed.name}; "
            f"use --allow-disruption {disruption.name}"
        )
    if disruption == Disruption.restart and spec.maintenance.restart == "never":
        return "for permission: maintenance.restart is never; set it to idle or drained"
    drains = disruption >= Disruption.recreate and _policy(disruption, spec) == "drained"
    if now and (drains or disruption >= Disruption.restart) and (closed := outside(spec, now)):
        return closed
    if affected and disruption >= Disruption.recreate and not drains:
        change = f"this change (class {disruption.name})"
        return f"until idle: {change} would affect {', '.join(affected)}; run again afterwards"
    return ""


def outside(spec: NodeSpec, now: datetime) -> str:
    """Return what a disruption waits for outside of the maintenance windows; empty inside of one."""
    opens = opening(spec.maintenance.window, now)
    return f"{FOR_WINDOW} {opens} (maintenance.window)" if opens else ""


def _reboot_needs(spec: NodeSpec, allowed: Disruption) -> str:
    """Return which permissions for a reboot are missing. By default, both are."""
    word = "maintenance: {reboot: idle} (or drained) in the spec" if spec.maintenance.reboot == "never" else ""
    flag = "--allow-disruption reboot on the command line" if allowed < Disruption.reboot else ""
    return " and ".join(part for part in (word, flag) if part)
