"""Compare and check hosts against their specs, for connected hosts and for recorded states alike. Pure.

``pause`` is called before each component and each check, so that the caller can serve other hosts in between.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date

from gpuready.base import window
from gpuready.base.errors import ConvergeError
from gpuready.contract import ledger
from gpuready.contract.attempt import Attempt
from gpuready.contract.check import concerning, run_checks
from gpuready.contract.compare import Plan
from gpuready.contract.component import Disruption
from gpuready.contract.config_checks import matches
from gpuready.contract.permission import permissions
from gpuready.contract.rollout import NO_SHARE, WHOLE, Member, Share, batches, reasons
from gpuready.inventory.hosts import HostEntry
from gpuready.model.spec import DrainByKubectl, DrainCommands
from gpuready.result.model import CheckResult, ComponentResult, HostResult, Run

#: One result for equal verdicts: most hosts of a fleet have the same hundred, and memory for each adds up.
_result = functools.lru_cache(maxsize=1 << 15)(CheckResult.of)


def fill_components(
    result: HostResult, plan: Plan, allowed: Disruption, *, verb: str = "plan", pause: Callable[[], None] = lambda: None
) -> None:
    """Fill in the components, what each waits for, and the outcome.

    A node that may not be a GPU node is not compared: plan and apply skip it, and verify runs one check, ``gpu.count``.
    """
    spec = plan.spec
    result.reason = plan.undecided
    if result.reason:
        result.outcome = "skipped" if verb in ("plan", "apply") else "ok"
        return
    if not plan.removes:  # for remove, a damaged ledger is an error of the component
        result.notes += ledger.damaged(plan.state)
    found = []
    for component in plan.chosen:
        pause()
        found.append(plan[component])
    permitted = permissions(plan, allowed, window.now())
    # A plan shows the batches and drains of the maintenance window, also before it opens.
    then = permissions(plan, allowed, None) if verb == "plan" and spec.maintenance.window else permitted
    result.disturbed = any(each.disruptive for each in then.values())
    if any(each.drains(spec) for each in then.values()):
        now = any(each.drains(spec) for each in permitted.values())
        when = "" if now else ", when its maintenance window opens"
        lacks = spec.maintenance.drain == "slurm" and plan.state.slurm is None
        missing = ", but no slurmd runs on this node, or scontrol is missing" if lacks else ""
        result.notes.append(f"the node is drained first, by {_drainer(spec.maintenance.drain)}{when}{missing}")
    result.components = [
        ComponentResult.of(
            Attempt(each, error=ConvergeError(each.error) if each.error else None),
            permitted[each.name].forecast(each.diff) if each.name in permitted else "",
        )
        for each in found
    ]
    if any(item.diff and item.error is None for item in result.components):
        result.outcome = "would_change"
    else:
        result.outcome = "failed" if any(item.error for item in result.components) else "ok"


def _drainer(drain: str | DrainCommands | DrainByKubectl) -> str:
    if isinstance(drain, DrainByKubectl):
        return "kubectl"
    return drain if isinstance(drain, str) else "maintenance.drain.before"


def fill_checks(result: HostResult, plan: Plan, pause: Callable[[], None] = lambda: None) -> None:
    """Fill in the checks of the node, if there are any (:attr:`Plan.judges`), and what hosts are compared by."""
    from gpuready.catalogue import CATALOGUE  # a run that reaches no host does not need it
    from gpuready.gpu import imex

    assert result.state is not None
    if plan.judges and result.outcome != "skipped":
        verdicts = run_checks(
            concerning(CATALOGUE, plan.spec, result.state),
            plan.spec,
            result.state,
            result.name,
            active=bool(result.state.active),
            today=date.today(),
            left_out=[item.name for item in plan.left_out],
            known={} if result.reason else {f"{item.name}.config": matches(plan[item]) for item in plan.chosen},
            pause=pause,
        )
        result.checks = list(map(_result, verdicts))
        result.member = imex.member(plan.spec, result.state)


def fill_attempts(result: HostResult, attempts: Mapping[str, Attempt]) -> None:
    """Fill in what the operations did. Components whose turn never came keep their comparison."""
    for number, item in enumerate(result.components):
        item.attempted = item.name in attempts
        if item.attempted:  # its comparison differs from the plan's if the node was probed again meanwhile
            result.components[number] = ComponentResult.of(attempts[item.name])


def judge_racks(results: Iterable[HostResult], entries: Mapping[str, HostEntry]) -> None:
    """Fill in the checks that only several hosts together show: the racks of the run, and IMEX's nodes in them."""
    members, of_host = {}, {}
    for result in results:
        if result.member is not None:
            spread = entries[result.name].spread
            members[result.name] = replace(result.member, rack=spread[1] if spread else "")
            of_host[result.name] = result
    if members:
        from gpuready.gpu import imex

        for name, verdicts in imex.judge(members, {name: entries[name].spec for name in members}, date.today()).items():
            of_host[name].checks += map(CheckResult.of, verdicts)


def look_back(plan: Plan, touched: Sequence[Attempt]) -> None:
    """Compare the result of the steps. A failed step may have changed something; a successful one must have."""
    by_name = {item.name: item for item in plan.order}
    for item in touched:
        again = plan[by_name[item.comparison.name]]
        if item.error is not None or item.pending:
            item.changed = item.changed or again.diff != item.comparison.diff
            if item.pending and not again.error:
                item.closed = frozenset(c.key for c in item.comparison.diff) - {c.key for c in again.diff}
        elif again.diff or again.error:
            keys = ", ".join(f"{c.key} is {c.actual!r}" for c in again.diff[:4])
            item.error = ConvergeError(
                f"{item.comparison.name} still differs after its steps: {again.error or keys}",
                remedy="run again; if it still differs, another program writes these settings or restarts the service",
            )


def plan_batches(run: Run, entries: Mapping[str, HostEntry], given: str, share: Share = WHOLE) -> list[Member]:
    """Return the hosts to change, and store their batches in the run. A plan names the hosts that are in none."""
    members = []
    for host in run.hosts:
        if host.outcome == "would_change":
            sizes = entries[host.name].spec.maintenance.batch or ""
            members.append(Member(host.name, host.disturbed, sizes, entries[host.name].spread))
    run.batches, run.why_batches = list(batches(members, given, share)), reasons(members, given)
    begun = {name for batch in run.batches for name in batch}
    for host in run.hosts if run.verb == "plan" else ():
        if host.outcome == "would_change" and host.name not in begun:
            host.notes.append(NO_SHARE)
    return members


def failing(result: HostResult) -> set[str]:
    return {check.id for check in result.checks if check.status == "fail"}


def went_wrong(result: HostResult, failed_before: Set[str]) -> bool:
    """Tell whether apply made this host worse, so that the rollout must stop. Faults from before do not count."""
    errors = [item for item in result.components if item.error is not None]
    if any(not item.blocked for item in errors) or failing(result) - failed_before:
        return True
    return result.outcome == "unreachable" or (result.outcome == "failed" and not errors)
