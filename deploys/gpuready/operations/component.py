"""The one pyinfra operation: bring one component of a host to what its spec says.

It is called for every component on every host, in the same order, because pyinfra 3.10 takes an operation's identity
from its place in the source; a host without a difference costs nothing but the comparison.
"""

from __future__ import annotations

from collections.abc import Generator

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import operation
from pyinfra.context import host
from pyinfra.context import state as run

from gpuready.core.check import undecided
from gpuready.core.compare import compare, unselected
from gpuready.core.component import Change, Component, Disruption
from gpuready.core.consent import policy_for, rule, rulings, users
from gpuready.core.errors import ConvergeError, GpureadyError
from gpuready.operations import drain
from gpuready.operations.failed import Failed
from gpuready.operations.node_state import SELECTED, SPEC, forget, node_state, settled_state
from gpuready.operations.outcome import ComponentOutcome, outcomes
from gpuready.operations.step import Pending, StepCommand
from gpuready.spec.model import NodeSpec

ALLOWED = "gpuready_allowed"


@operation()
def component(
    item: Component, order: tuple[Component, ...], original: bool = False
) -> Generator[PyinfraCommand, None, None]:
    """Compare, and converge where there is a difference that may be closed now; ``original`` is the way back.

    ``order`` are all components of this run, ``item`` among them.
    """
    selected = host.data.get(SELECTED)
    if selected is not None and item.name not in selected:
        host.noop(f"{item.name} is not selected")
        return
    try:
        spec, state = host.data.get(SPEC), settled_state(host)
    except GpureadyError as e:
        yield Failed(e)
        return
    if not original and (reason := undecided(spec, state)):
        host.noop(f"{item.name}: {reason}")
        return
    found = compare(item, spec, state, original=original)
    outcome = ComponentOutcome(found)
    if run.is_executing:  # pyinfra begins this generator once before, to see whether it yields anything
        outcomes(host)[item.name] = outcome
    if found.error:
        outcome.error = ConvergeError(f"{item.name}: {found.error}")
    elif not found.diff:
        host.noop(f"{item.name} is as it should be")
    else:
        permitted = yield from _permitted(item, order, found.diff, outcome, original)
        if permitted:
            yield from _close(item, permitted, spec, outcome)
        if outcome.reboot and not (outcome.pending or outcome.error):
            outcome.pending = "for the reboot at the end of the run"
        if outcome.pending:
            host.log_styled(f"{item.name} waits {outcome.pending}", fg="yellow")
    if drain.is_drained(host) and (outcome.error or not (_reboots() or _disturbs_later(item, order, original))):
        stays = yield from drain.end(host, spec.maintenance)
        if stays:
            told = f"{outcome.error}; {stays}" if outcome.error else stays
            outcome.error = ConvergeError(told, remedy="let the work back by hand, and run again")
    if outcome.error:
        yield Failed(outcome.error)


def _allowed() -> Disruption:
    allowed = host.data.get(ALLOWED)  # the plain door has no command line to say it
    return Disruption.reboot if allowed is None else allowed


def _permitted(
    item: Component, order: tuple[Component, ...], diff: tuple[Change, ...], outcome: ComponentOutcome, original: bool
) -> Generator[PyinfraCommand, None, tuple[Change, ...]]:
    """What of the difference may be closed now; the node is drained for it where consent hangs on that."""
    spec, state = host.data.get(SPEC), node_state(host)
    needed = [done for name, done in outcomes(host).items() if original or name in item.requires]
    blocked = [done.found.name for done in needed if done.pending or (original and done.error)]
    blocked += users(item, unselected(order if original else (), spec, state, host.data.get(SELECTED)))
    ruling = rule(item, diff, spec, state, _allowed(), blocked)
    outcome.pending = ruling.waits
    if ruling.disturbs and policy_for(ruling.kind, spec) == "drained":
        trouble = yield from drain.begin(host, spec.maintenance)
        if trouble:
            outcome.pending = trouble
            ruling = rule(item, diff, spec, state, min(_allowed(), Disruption.reload), blocked)
    outcome.reboot = ruling.kind == Disruption.reboot
    return ruling.permitted


def _reboots() -> bool:
    """Does a reboot come yet?"""
    return any(outcome.reboot for outcome in outcomes(host).values())


def _disturbs_later(item: Component, order: tuple[Component, ...], original: bool) -> bool:
    """Will a component after this one disturb the node? It is drained once, not for each of them."""
    spec, state, selected = host.data.get(SPEC), node_state(host), host.data.get(SELECTED)
    found = {c: compare(c, spec, state, original=original) for c in order if selected is None or c.name in selected}
    ruled = rulings(found, spec, state, _allowed(), back=original)
    return any(c.name in ruled and ruled[c.name].disturbs for c in order[order.index(item) + 1 :])


def _close(
    item: Component, diff: tuple[Change, ...], spec: NodeSpec, outcome: ComponentOutcome
) -> Generator[PyinfraCommand, None, None]:
    steps = item.converge(diff, spec, node_state(host))
    reply = None
    try:
        while True:
            step = steps.send(reply) if reply is not None else next(steps)
            command = StepCommand(step)
            yield command
            changes = step.survives or step.alters
            outcome.touched = outcome.touched or (changes and command.begun)
            if command.error is not None:
                raise command.error
            reply = command.reply
            outcome.changed = outcome.changed or changes
    except StopIteration:
        if item.renews:
            forget(host)
    except Pending as e:
        outcome.pending, outcome.reboot = str(e), False
    except GpureadyError as e:
        outcome.error = e
    except Exception as e:  # a host's surprise is that host's outcome, never the run's
        outcome.error = GpureadyError(f"{item.name}: {type(e).__name__}: {e}")
