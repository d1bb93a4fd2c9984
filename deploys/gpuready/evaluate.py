"""Compare and check one host against its spec, for the engine and for recorded states alike. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import date

from gpuready.catalogue import CATALOGUE
from gpuready.core import ledger
from gpuready.core.check import concerning, run_checks, undecided
from gpuready.core.compare import compare, unselected
from gpuready.core.component import Disruption
from gpuready.core.consent import policy_for, rulings
from gpuready.core.errors import ConvergeError
from gpuready.core.rollout import Member, batches
from gpuready.inventory.hosts import HostEntry
from gpuready.node import BACK, NODE
from gpuready.report.run import ComponentRun, HostRun, Run
from gpuready.spec.model import NodeSpec


def compared(
    run: HostRun,
    spec: NodeSpec,
    selected: frozenset[str] | None,
    allowed: Disruption,
    *,
    verb: str = "plan",
    back: bool = False,
) -> None:
    """Fill in the components, what each waits for, and the outcome. ``back``: compare with the state before gpuready.

    A node that may not be a GPU node is not compared: plan and apply skip it, and verify runs one check, ``gpu.count``.
    """
    assert run.state is not None
    run.reason = "" if back else undecided(spec, run.state)
    if run.reason:
        run.outcome = "skipped" if verb in ("plan", "apply") else "ok"
        return
    if not back:  # for remove, a damaged ledger is an error of the component
        run.notes += ledger.damaged(run.state)
    chosen = [item for item in (BACK if back else NODE) if selected is None or item.name in selected]
    found = {item: compare(item, spec, run.state, original=back) for item in chosen}
    run.components = [ComponentRun(each) for each in found.values()]
    ruled = rulings(
        found, spec, run.state, allowed, back=back, others=unselected(BACK if back else (), spec, run.state, selected)
    )
    run.disturbed = any(ruling.disturbs for ruling in ruled.values())
    if any(ruling.disturbs and policy_for(ruling.kind, spec) == "drained" for ruling in ruled.values()):
        by = spec.maintenance.drain if isinstance(spec.maintenance.drain, str) else "maintenance.drain.before"
        run.notes.append(f"the node is drained first, by {by}")
    for item in run.components:
        item.error = ConvergeError(item.found.error) if item.found.error else None
        item.forecast = ruled[item.found.name].waits if item.found.name in ruled else ""
    if any(item.found.diff and item.error is None for item in run.components):
        run.outcome = "would_change"
    else:
        run.outcome = "failed" if any(item.error for item in run.components) else "ok"


def judged(run: HostRun, spec: NodeSpec, selected: frozenset[str] | None = None, *, back: bool = False) -> None:
    """Fill in the checks. ``remove`` (``back``) has none, because they would ask for what it removes."""
    assert run.state is not None
    if not back and run.outcome != "skipped":
        left_out = [item.name for item in NODE if selected is not None and item.name not in selected]
        active, today = bool(run.state.active), date.today()
        run.checks = list(
            run_checks(
                concerning(CATALOGUE, spec, run.state),
                spec,
                run.state,
                run.name,
                active=active,
                today=today,
                left_out=left_out,
            )
        )


def look_back(run: HostRun, spec: NodeSpec, touched: Sequence[ComponentRun], *, back: bool = False) -> None:
    """Compare again after the steps. A failed step may have changed something; a successful one must have."""
    assert run.state is not None
    by_name = {item.name: item for item in (BACK if back else NODE)}
    for item in touched:
        again = compare(by_name[item.found.name], spec, run.state, original=back)
        if item.error is not None or item.pending:
            item.changed = item.changed or again.diff != item.found.diff
            if item.pending and not again.error:
                item.done = frozenset(c.key for c in item.found.diff) - {c.key for c in again.diff}
        elif again.diff or again.error:
            keys = ", ".join(f"{c.key} is {c.actual!r}" for c in again.diff[:4])
            item.error = ConvergeError(f"{item.found.name} still differs after its steps: {again.error or keys}")


def plan_batches(run: Run, entries: Mapping[str, HostEntry], given: str) -> list[Member]:
    """Return the hosts to change, and store their batches in the run."""
    members = []
    for host in run.hosts:
        if host.outcome == "would_change":
            sizes = entries[host.name].spec.maintenance.batch or ""
            members.append(Member(host.name, host.disturbed, sizes, entries[host.name].spread))
    run.batches = list(batches(members, given))
    return members


def failing(run: HostRun) -> set[str]:
    """Return the ids of the failed checks."""
    return {judged.check.id for judged in run.checks if judged.verdict.status == "fail"}


def went_wrong(run: HostRun, failed_before: Set[str]) -> bool:
    """Tell whether apply made this host worse, so that the rollout must stop. Faults from before do not count."""
    errors = [item for item in run.components if item.error is not None]
    if any(not item.found.error for item in errors) or failing(run) - failed_before:
        return True
    return run.outcome == "unreachable" or (run.outcome == "failed" and not errors)
