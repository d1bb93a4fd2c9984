"""The pyinfra operation that converges one component of a host.

It is called for every component on every host, in the same order, because pyinfra 3.10 identifies an operation by its
position in the source. If nothing differs, the comparison is the only cost.
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
    """Compare the component and close the part of the difference that is permitted now.

    ``order``: all components of this run. ``original``: restore the state before gpuready (``remove``).
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
    if run.is_executing:  # pyinfra also starts this generator once before the run, to see whether it yields anything
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
            message = f"{outcome.error}; {stays}" if outcome.error else stays
            outcome.error = ConvergeError(message, remedy="bring the node back into service, then run again")
    if outcome.error:
        yield Failed(outcome.error)


def _allowed() -> Disruption:
    allowed = host.data.get(ALLOWED)  # None for the plain door, which has no command line
    return Disruption.reboot if allowed is None else allowed


def _permitted(
    item: Component, order: tuple[Component, ...], diff: tuple[Change, ...], outcome: ComponentOutcome, original: bool
) -> Generator[PyinfraCommand, None, tuple[Change, ...]]:
    """Return the part of the difference that may be closed now; drain the node first if the spec requires it."""
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
    """Tell whether a reboot is still to come in this run."""
    return any(outcome.reboot for outcome in outcomes(host).values())


def _disturbs_later(item: Component, order: tuple[Component, ...], original: bool) -> bool:
    """Tell whether a later component will disturb the node. If so, the node stays drained until then."""
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
    except Exception as e:  # an unexpected error fails this host, never the whole run
        outcome.error = GpureadyError(f"{item.name}: {type(e).__name__}: {e}")
