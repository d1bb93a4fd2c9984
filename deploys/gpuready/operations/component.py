"""The pyinfra operation that converges one component of a host.

It is called for every component on every host, in the same order, because pyinfra 3.10 identifies an operation by its
position in the source. If nothing differs, the comparison is the only cost.
"""

from collections.abc import Generator

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import operation
from pyinfra.context import host
from pyinfra.context import state as run

from gpuready.base import window
from gpuready.base.errors import ConvergeError, GpureadyError
from gpuready.contract.attempt import Attempt
from gpuready.contract.compare import Plan
from gpuready.contract.component import Change, Component, Disruption
from gpuready.contract.permission import outside, permission, permissions
from gpuready.operations import drain
from gpuready.operations.context import context
from gpuready.operations.interrupts import LATER
from gpuready.operations.node_state import forget, forget_outdated, host_plan, node_state, settled_state
from gpuready.operations.step import Failed, Pending, StepCommand


@operation()
def component(item: Component, order: tuple[Component, ...]) -> Generator[PyinfraCommand, None, None]:
    """Compare the component and close the part of the difference that is permitted now.

    ``order``: all components of this run, or all removals.
    """
    forget_outdated(host)
    node = context(host)
    if node.selected is not None and item.name not in node.selected:
        host.noop(f"{item.name} is not selected")
        return
    if node.stop.asked:
        host.noop(f"{item.name} waits {LATER}")
        return
    try:
        plan = host_plan(host, settled_state(host), order)
    except GpureadyError as e:
        yield Failed(e)
        return
    if plan.undecided:
        host.noop(f"{item.name}: {plan.undecided}")
        return
    found = plan[item]
    outcome = Attempt(found)
    if run.is_executing:  # pyinfra also starts this generator once before the run, to see whether it yields anything
        node.outcomes[item.name] = outcome
    if found.error:
        outcome.error = ConvergeError(f"{item.name}: {found.error}")
    elif not found.diff:
        host.noop(f"{item.name} is as it should be")
    elif node.stop.asked:  # while the node was probed
        outcome.pending = LATER
    else:
        if run.is_executing:
            node.stop.busy.add(host.name)
        permitted = yield from _permitted(item, plan, outcome)
        if permitted:
            yield from _close(item, permitted, plan, outcome)
        if outcome.reboot and not (outcome.pending or outcome.error):
            outcome.pending = "for the reboot at the end of the run"
        if outcome.pending:
            host.log_styled(f"{item.name} waits {outcome.pending}", fg="yellow")
    drained = drain.may_be_drained(host, plan.spec.maintenance)
    disrupted = drained and not outcome.error and _is_disrupted_later(item, plan)
    if drained and (not disrupted or node.stop.asked):
        if run.is_executing:
            node.stop.busy.add(host.name)
        stays = yield from drain.end(host, plan.spec.maintenance)
        if stays:
            message = f"{outcome.error}; {stays}" if outcome.error else stays
            outcome.error = ConvergeError(message, remedy="bring the node back into service, then run again")
    if outcome.error:
        yield Failed(outcome.error)


def _permitted(item: Component, plan: Plan, outcome: Attempt) -> Generator[PyinfraCommand, None, tuple[Change, ...]]:
    """Return the part of the difference that may be closed now; drain the node first if the spec requires it."""
    node = context(host)
    unfinished = [name for name, done in node.outcomes.items() if done.pending or done.error]
    permitted = permission(item, plan, node.allowed, window.now(), unfinished)
    outcome.pending = permitted.pending
    if permitted.drains(plan.spec):
        trouble = yield from drain.begin(host, plan.spec.maintenance)
        trouble = trouble or outside(plan.spec, window.now())  # the drain may have taken days
        if node.stop.asked:
            outcome.pending = trouble or LATER
            return ()
        if trouble:
            outcome.pending = trouble
            permitted = permission(item, plan, min(node.allowed, Disruption.reload), window.now(), unfinished)
    outcome.reboot = permitted.disruption == Disruption.reboot
    return permitted.diff


def _is_disrupted_later(item: Component, plan: Plan) -> bool:
    """Tell whether a reboot or a later component will disrupt the node. If so, it stays drained until then."""
    node = context(host)
    if any(outcome.reboot for outcome in node.outcomes.values()):
        return True
    permitted = permissions(host_plan(host, node_state(host), plan.order), node.allowed, window.now())
    later = plan.order[plan.order.index(item) + 1 :]
    return any(each.name in permitted and permitted[each.name].disruptive for each in later)


def _close(
    item: Component, diff: tuple[Change, ...], plan: Plan, outcome: Attempt
) -> Generator[PyinfraCommand, None, None]:
    steps = item.converge(diff, plan.spec, plan.state)
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
