"""What plan, apply, remove, verify, status and compat do with a fleet: probe, compare, converge, judge.

Only hosts with a difference enter pyinfra's operations. Components and checks are imported once a host answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyinfra.api.host import Host

from gpuready import __version__
from gpuready.base.errors import BugError, GpureadyError, UnreachableError
from gpuready.contract.compare import Plan
from gpuready.contract.component import Component
from gpuready.contract.node_record import outcome, record
from gpuready.contract.rollout import Rollout
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations import lock
from gpuready.operations.context import context
from gpuready.operations.node_state import forget, host_plan, node_state, settled_state
from gpuready.operations.watchdog import holding
from gpuready.result.model import ComponentResult, Error, HostResult, Run
from gpuready.run.evaluate import fill_attempts, fill_checks, fill_components, look_back, plan_batches
from gpuready.run.fleet import Fleet
from gpuready.run.follow import NOT_BEGUN, follow

if TYPE_CHECKING:  # most runs store nothing
    from gpuready.run.journal import Journal

Read = Callable[[Host], NodeState]
#: Loads the components of a run, or their removals, once a host answers.
Load = Callable[[], tuple[Component, ...]]
#: Asks a node once more, for the answers of active checks.
Ask = Callable[[Host, NodeState, NodeSpec], NodeState]


def components() -> tuple[Component, ...]:
    """Load the components."""
    from gpuready.node import NODE

    return NODE


def removals() -> tuple[Component, ...]:
    """Load the removals of the components, for ``remove``."""
    from gpuready.node import REMOVALS

    return REMOVALS


def plan(fleet: Fleet, *, verb: str = "plan", batch: str = "", removing: bool = False) -> Run:
    """Connect, probe, compare and judge every host. Nothing on a node changes.

    ``removing``: compare with the state before gpuready instead of the spec (``remove``). ``batch`` has the form of the
    command line (:mod:`gpuready.contract.rollout`).
    """

    def work(run: Run) -> None:
        _compare(fleet, run, removing)
        plan_batches(run, fleet.entries, batch, fleet.share)

    return fleet.work(verb, work)


def compare(fleet: Fleet, *, verb: str, removing: bool = False) -> Run:
    """Do what :func:`plan` does before it plans batches: the fleet is a part of a larger one."""
    return fleet.work(verb, lambda run: _compare(fleet, run, removing))


def _compare(fleet: Fleet, run: Run, removing: bool) -> None:
    fleet.remembers = lambda result: run.verb in ("record", "status")  # their answer is made of the states
    fleet.each(partial(look, fleet, run.verb, node_state, _load(removing)))


def verify(fleet: Fleet, *, passive: bool = False) -> Run:
    """Like :func:`plan`, and run the active checks unless ``passive``."""

    def examine(host: Host) -> None:
        look(fleet, "verify", node_state, components, host)
        if not passive:
            run_checks(fleet, host)

    fleet.remembers = lambda result: False
    return fleet.work("verify", lambda run: fleet.each(examine))


def read_images(fleet: Fleet) -> Run:
    """Like :func:`plan`, for ``compat``: also read the images in the engines of the nodes."""
    return fleet.work("compat", lambda run: fleet.each(partial(look_at_images, fleet)))


def apply(
    fleet: Fleet,
    *,
    batch: str = "",
    max_fail: str = "0",
    removing: bool = False,
    hook: str = "",
    journal: Journal | None = None,
) -> Run:
    """Converge every host with a difference, then judge it. Other hosts are only compared.

    ``max_fail``: how many hosts of a batch may fail, as on the command line. ``hook``: a command to run here after each
    batch. ``journal`` stores what becomes of each host. The others: see :func:`plan`.
    """
    fits = len(fleet.entries) <= fleet.room
    fleet.keeps = lambda result: fits and result.outcome == "would_change"
    if journal is not None:
        fleet.ended = journal.end

    def work(run: Run) -> None:
        _look_first(fleet, run, removing)
        members = plan_batches(run, fleet.entries, batch, fleet.share)
        if members:
            _prepare(fleet, [member.name for member in members], removing)
            rollout = Rollout(members, batch, max_fail, fleet.share)
            follow(rollout, run, fleet, lambda names: _change(fleet, names), hook=hook, journal=journal)

    return fleet.work("remove" if removing else "apply", work)


def look_first(fleet: Fleet, *, removing: bool = False) -> Run:
    """Do what :func:`apply` does before it changes a host."""
    return fleet.work("remove" if removing else "apply", lambda run: _look_first(fleet, run, removing))


def change(fleet: Fleet, *, removing: bool = False) -> Run:
    """Converge every host with a difference, all at once: the fleet is one batch of a larger rollout."""

    def work(run: Run) -> None:
        _look_first(fleet, run, removing)
        names = [host.name for host in run.hosts if host.outcome == "would_change"]
        if names:
            _prepare(fleet, names, removing)
            _change(fleet, names)

    return fleet.work("remove" if removing else "apply", work)


def _look_first(fleet: Fleet, run: Run, removing: bool) -> None:
    fleet.remembers = lambda result: result.outcome == "would_change"
    fleet.each(partial(look, fleet, run.verb, settled_state, _load(removing)))
    for host in run.hosts:
        if host.outcome == "failed" and host.error is None:
            host.error = _first_error(host)


def _prepare(fleet: Fleet, names: Sequence[str], removing: bool) -> None:
    from gpuready.run.operations import operations

    fleet.prepare(names, operations, _load(removing)())


def _load(removing: bool) -> Load:
    return removals if removing else components


def look(fleet: Fleet, verb: str, read: Read, load: Load, host: Host) -> None:
    """Connect, read the host's state, compare it, and judge it unless that is for ``status``."""
    result = fleet.results[host.name]
    fleet.connect(host)
    fleet.progress(host.name, "probe")
    plan = host_plan(host, read(host), load())
    result.saw(plan.state, plan.spec)
    with holding("comparing") as pause:
        fill_components(result, plan, fleet.allowed, verb=verb, pause=pause)
    if context(host).again and result.outcome in ("ok", "failed"):
        result.outcome = "would_change"  # its operations bring it back into service, and it is examined again
    if verb != "status":
        _judge(result, plan)


def run_checks(fleet: Fleet, host: Host) -> None:
    """Run the active checks of a host that :func:`look` has read, unless its spec leaves it undecided."""
    from gpuready.catalogue import QUESTIONS
    from gpuready.operations.active import run_active

    if not fleet.results[host.name].reason:
        _ask(fleet, host, partial(run_active, questions=QUESTIONS))


def look_at_images(fleet: Fleet, host: Host) -> None:
    """Read the state of a host, and the images in its engines."""
    from gpuready.operations.images import read_images

    look(fleet, "compat", node_state, components, host)
    _ask(fleet, host, read_images, "read images")


def _ask(fleet: Fleet, host: Host, ask: Ask, step: str = "check") -> None:
    result = fleet.results[host.name]
    if result.state is not None:
        fleet.progress(host.name, step)
        result.read(ask(host, result.state, context(host).spec))
        _judge(result, host_plan(host, node_state(host)))


def _judge(result: HostResult, plan: Plan) -> None:
    import gpuready.catalogue  # noqa: F401  # once, before the clock starts

    with holding("judging") as pause:
        fill_checks(result, plan, pause)


def _change(fleet: Fleet, names: Sequence[str]) -> None:
    """Converge these hosts, then look again."""
    for first in range(0, len(names), fleet.room):
        part = names[first : first + fleet.room]
        if fleet.stopping:
            for name in part:
                fleet.results[name].leave_out(NOT_BEGUN)
            continue
        with fleet.keeping(part):
            there = fleet.reconnect(part)
            fleet.operate(there)
        fleet.each(partial(_confirm, fleet), there)


def _confirm(fleet: Fleet, host: Host) -> None:
    """Copy the outcomes of the operations. If something changed, probe again and run the active checks.

    Unless the node was rebooted, its lock is still held: no other run changes it before the record is written.
    """
    try:
        _conclude(fleet, host)
    finally:
        fleet.stop.busy.discard(host.name)


def _conclude(fleet: Fleet, host: Host) -> None:
    result, done, again = fleet.results[host.name], context(host).outcomes, host.name in fleet.again
    for boot in context(host).reboots:
        result.saw_reboot(boot.before, boot.after, boot.seconds)
    result.notes += context(host).notes
    fill_attempts(result, done)
    failed = _first_error(result)
    touched = any(each.touched for each in done.values())
    waits = any(map(_waits, result.components)) or context(host).again  # it may still be drained
    if fleet.stopping and waits and host.name not in fleet.stop.busy and not any(each.error for each in done.values()):
        result.leave_out(NOT_BEGUN)
        return
    if (again or touched) and not _unreachable(failed):
        try:
            _look_again(fleet, host)
        except GpureadyError as e:  # an earlier failure is the cause
            failed = failed or Error.of(e)
        failed = failed or _first_error(result)
    elif not done and failed is None and not fleet.stopping:
        failed = Error.of(BugError("no operation ran on this host"))
    if failed is not None:
        result.outcome, result.error = ("unreachable" if _unreachable(failed) else "failed"), failed
    elif any(map(_waits, result.components)):
        result.outcome = "pending"
    else:
        unchanged = again and not any(item.changed for item in result.components)
        result.outcome = "ok" if unchanged else "changed"


def _first_error(result: HostResult) -> Error | None:
    return next((item.error for item in result.components if item.error is not None), None)


def _unreachable(error: Error | None) -> bool:
    return error is not None and error.kind == UnreachableError.kind


def _look_again(fleet: Fleet, host: Host) -> None:
    """Probe a changed node, compare what its steps left, run the active checks, and write its record."""
    from gpuready.catalogue import QUESTIONS
    from gpuready.operations.active import run_active

    result, done = fleet.results[host.name], context(host).outcomes
    fleet.progress(host.name, "check")
    forget(host)
    plan = host_plan(host, settled_state(host))
    result.read(plan.state)
    with holding("comparing"):
        look_back(plan, [each for each in done.values() if each.touched])
    fill_attempts(result, done)
    state = plan.state
    if plan.judges:
        converged = fleet.selected is None and not any(item.error or _waits(item) for item in result.components)
        state = run_active(host, state, plan.spec, QUESTIONS, _record(fleet, result, plan), converged=converged)
        result.read(state)
    _judge(result, plan)
    if "record" in state.active:
        result.notes.append("the record of this apply could not be written: is /var full or read-only?")


def _record(fleet: Fleet, result: HostResult, plan: Plan) -> str:
    """Return the record that this apply leaves on the node."""
    results = [
        (
            item.name,
            outcome(item.applies, changed=item.changed, pending=_waits(item), failed=item.error is not None),
        )
        for item in result.components
    ]
    return record(
        plan.spec, plan.state, results, by=lock.controller(), gpuready=__version__, partial=fleet.selected is not None
    )


def _waits(item: ComponentResult) -> bool:
    """Tell whether a difference stays: it waits, or the operation was dropped after another one failed."""
    return item.pending or (bool(item.diff) and not item.attempted)
