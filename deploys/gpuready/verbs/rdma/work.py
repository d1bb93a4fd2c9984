"""What ``gpuready rdma`` does on hosts: one exec reads the node, a step moves the device, one exec confirms it.

This is not a component: an attachment follows a container, not the inventory.
"""

from collections.abc import Sequence
from functools import partial

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.errors import ConvergeError, GpureadyError, RefusedError
from gpuready.base.step import Step
from gpuready.contract.attempt import Attempt
from gpuready.contract.compare import Comparison
from gpuready.contract.component import Disruption
from gpuready.operations.context import context
from gpuready.operations.step import Pending, StepCommand
from gpuready.operations.transport import run_script
from gpuready.result.model import ComponentResult, Run
from gpuready.run.fleet import Fleet
from gpuready.verbs.rdma.decide import attach
from gpuready.verbs.rdma.detach import detach, nothing_on_record
from gpuready.verbs.rdma.facts import Look, read
from gpuready.verbs.rdma.move_plan import Asked, AttachArgs, DetachArgs, MovePlan
from gpuready.verbs.rdma.netdev import SYSCTLS
from gpuready.verbs.rdma.status import attached

_Plan = MovePlan[AttachArgs | DetachArgs]
TIMEOUT = 60
#: The kernel's error for a driver that cannot take a device from its users (rxe and siw cannot).
_UNMOVABLE = "Operation not supported"


def act(fleet: Fleet, *, asked: Asked, dry_run: bool = False) -> Run:
    """Attach, detach or list on all hosts at once. A host is checked before anything moves on it.

    ``dry_run``: only show the moves.
    """
    verb = "plan" if dry_run else f"rdma {asked.verb}"
    return fleet.work(verb, lambda run: fleet.each(partial(_work, fleet, asked, dry_run)))


def _work(fleet: Fleet, asked: Asked, dry_run: bool, host: Host) -> None:
    run = fleet.results[host.name]
    fleet.connect(host)
    look = _facts(fleet, asked, host)
    run.outcome = "ok"
    if asked.verb == "list":
        return
    plans = _plans(asked, look)
    item = Attempt(_comparison(asked.verb, plans))
    run.components = [ComponentResult.of(item)]
    if not plans:
        nothing_on_record(look, asked)
    elif not item.comparison.diff:
        run.notes += item.comparison.notes
    elif dry_run:
        run.outcome = "would_change"
    else:
        _move(fleet, asked, host, item, plans)


def _facts(fleet: Fleet, asked: Asked, host: Host) -> Look:
    fleet.progress(host.name, "look")
    script = resources.script(
        "verbs/rdma/look",
        container=asked.container,
        engine=asked.engine,
        device=asked.device,
        netdev=asked.netdev,
        sysctls=SYSCTLS,
    )
    look = read(run_script(host, script, max(TIMEOUT, fleet.probe_timeout), "read containers"))
    fleet.results[host.name].parts["attached"] = attached(look, context(host).spec.nccl)
    return look


def _plans(asked: Asked, look: Look) -> tuple[_Plan, ...]:
    return (attach(look, asked),) if asked.verb == "attach" else detach(look, asked)


def _move(fleet: Fleet, asked: Asked, host: Host, item: Attempt, plans: Sequence[_Plan]) -> None:
    try:
        for plan in plans:
            if plan.diff:
                _step(host, asked, plan.args)
                item.changed = True
        again = _comparison(asked.verb, _plans(asked, _facts(fleet, asked, host)))
        if again.diff:
            keys = ", ".join(f"{c.key} is {c.actual!r}" for c in again.diff[:4])
            raise ConvergeError(f"{asked.verb} succeeded, but {keys}", remedy="run again")
    except GpureadyError as e:
        item.error = e if isinstance(e, ConvergeError) else None
        raise
    finally:
        fleet.results[host.name].components = [ComponentResult.of(item)]
    fleet.results[host.name].outcome = "changed"


def _comparison(verb: str, plans: Sequence[_Plan]) -> Comparison:
    affected = tuple(dict.fromkeys(name for plan in plans for name in plan.affected))
    return Comparison(
        verb,
        True,
        diff=tuple(change for plan in plans for change in plan.diff),
        disruption=Disruption.recreate if affected else Disruption.none,
        affected=affected,
        notes=tuple(dict.fromkeys(note for plan in plans for note in plan.notes)),
    )


def _step(host: Host, asked: Asked, args: AttachArgs | DetachArgs) -> None:
    command = StepCommand(Step(asked.verb, args, summary=f"{asked.verb} {asked.device or asked.netdev}".strip()))
    command.execute(None, host, None)
    if isinstance(command.error, Pending):
        raise ConvergeError(f"{asked.verb} waits {command.error}")
    text = command.error.message if isinstance(command.error, ConvergeError) else ""
    if f"rdma dev set {asked.device} netns" in text and _UNMOVABLE in text:
        raise RefusedError(
            f"the driver of {asked.device} cannot move it to another network namespace ({text})",
            remedy="mlx5 and irdma can, rxe and siw cannot; to give containers this device, use shared mode: "
            "rdma: {netns_mode: shared}",
        )
    if command.error is not None:
        raise command.error
