"""The one pyinfra operation: bring one component of a host to what its spec says.

It is called for every component on every host, in the same order, because pyinfra 3.10 takes an operation's identity
from its place in the source; a host without a difference costs nothing but the comparison.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import operation
from pyinfra.context import host
from pyinfra.context import state as run

from gpuready.components.base import Change, Component, Disruption, compare
from gpuready.errors import ConvergeError, GpureadyError
from gpuready.operations.node_state import node_state
from gpuready.operations.outcome import ComponentOutcome, outcomes
from gpuready.operations.step import Pending, StepCommand
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

SPEC = "gpuready_spec"
SELECTED = "gpuready_selected"
ALLOWED = "gpuready_allowed"


class Failed(PyinfraCommand):
    """Makes the operation fail in pyinfra's eyes; the reason stands in the outcome."""

    def __init__(self, error: GpureadyError) -> None:
        super().__init__()
        self.error = error

    def __repr__(self) -> str:
        return f"Failed({self.error})"

    def execute(self, state: Any, host: Any, connector_arguments: Any) -> bool:
        """Always False."""
        host.log_styled(f"{self.error}", fg="red")
        return False


@operation()
def component(item: Component, original: bool = False) -> Generator[PyinfraCommand, None, None]:
    """Compare, and converge where there is a difference that may be closed now; ``original`` is the way back."""
    selected = host.data.get(SELECTED)
    if selected is not None and item.name not in selected:
        host.noop(f"{item.name} is not selected")
        return
    try:
        spec, state = host.data.get(SPEC), node_state(host)
    except GpureadyError as e:
        yield Failed(e)
        return
    found = compare(item, spec, state, original=original)
    outcome = ComponentOutcome(found)
    if run.is_executing:  # pyinfra begins this generator once before, to see whether it yields anything
        outcomes(host)[item.name] = outcome
    if found.error:
        outcome.error = ConvergeError(f"{item.name}: {found.error}")
        yield Failed(outcome.error)
    elif not found.diff:
        host.noop(f"{item.name} is as it should be")
    else:
        permitted, outcome.pending = _permitted(item, found.diff, spec, state, original)
        if outcome.pending:
            host.log_styled(f"{item.name} waits {outcome.pending}", fg="yellow")
        if permitted:
            yield from _close(item, permitted, spec, outcome)


def _permitted(
    item: Component, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState, original: bool
) -> tuple[tuple[Change, ...], str]:
    """What of the difference may be closed now, and what the rest waits for."""
    needed = [done for name, done in outcomes(host).items() if original or name in item.requires]
    blocked = [done.found.name for done in needed if done.pending or (original and done.error)]
    if blocked:
        return (), f"for {', '.join(blocked)}"
    permitted: tuple[Change, ...] = ()
    for group in item.groups(diff):
        waits = _waits(item, permitted + group, spec, state)
        if waits:
            return permitted, waits
        permitted += group
    return permitted, ""


def _waits(item: Component, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> str:
    """Why this is not closed now, or nothing: the least of what the spec and the command line allow holds."""
    kind, hits = item.disruption(diff, state), item.hits(diff, state)
    allowed = host.data.get(ALLOWED)
    if allowed is not None and kind > allowed:
        return f"for consent: class {kind.name}, --allow-disruption is {allowed.name}"
    if kind == Disruption.restart and spec.maintenance.restart == "never":
        return "for consent: class restart, maintenance.restart is never"
    if hits and kind >= Disruption.recreate:
        return f"until idle: class {kind.name} would hit {', '.join(hits)}"
    return ""


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
        pass
    except Pending as e:
        outcome.pending = str(e)
    except GpureadyError as e:
        outcome.error = e
        yield Failed(e)
    except Exception as e:  # a host's surprise is that host's outcome, never the run's
        outcome.error = GpureadyError(f"{item.name}: {type(e).__name__}: {e}")
        yield Failed(outcome.error)
