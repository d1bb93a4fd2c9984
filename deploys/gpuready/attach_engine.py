"""Run ``gpuready rdma`` on hosts: one exec reads the node, a step moves the device, one exec confirms it.

This is not a component: an attachment follows a container, not the inventory.
"""

from collections.abc import Sequence

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.errors import ConvergeError, GpureadyError, RefusedError
from gpuready.base.step import Step
from gpuready.contract.compare import Comparison
from gpuready.contract.component import Disruption
from gpuready.engine import Engine
from gpuready.operations.step import Pending, StepCommand
from gpuready.operations.transport import run_script
from gpuready.report.run import ComponentRun, HostRun, Run
from gpuready.tools.attach.decide import attach
from gpuready.tools.attach.detach import detach, nothing_on_record
from gpuready.tools.attach.facts import Look, read
from gpuready.tools.attach.move_plan import Asked, AttachArgs, DetachArgs, MovePlan
from gpuready.tools.attach.netdev import SYSCTLS
from gpuready.tools.attach.status import attached

_Plan = MovePlan[AttachArgs | DetachArgs]
TIMEOUT = 60
#: The kernel's error for a driver that cannot take a device from its users (rxe and siw cannot).
_UNMOVABLE = "Operation not supported"


class AttachEngine(Engine):
    """The engine of ``gpuready rdma attach | detach | list``. With ``options.verb`` plan, it only shows the moves."""

    asked: Asked

    def act(self, asked: Asked) -> Run:
        """Run on all hosts at once. A host is checked before anything moves on it."""
        self.asked = asked
        return self._timed(lambda: self._each(self._work, self._hosts(self.entries)))

    def _work(self, host: Host) -> None:
        run = self._runs[host.name]
        self._connect(host)
        look = self._facts(host, run)
        run.outcome = "ok"
        if self.asked.verb == "list":
            return
        plans = self._plans(look)
        item = ComponentRun(_comparison(self.asked.verb, plans))
        run.components = [item]
        if not plans:
            nothing_on_record(look, self.asked)
        elif not item.found.diff:
            run.notes += item.found.notes
        elif self.options.verb == "plan":
            run.outcome = "would_change"
        else:
            self._move(host, run, item, plans)

    def _facts(self, host: Host, run: HostRun) -> Look:
        self.progress(host.name, "look")
        asked = self.asked
        script = resources.script(
            "tools/attach/look",
            container=asked.container,
            engine=asked.engine,
            device=asked.device,
            netdev=asked.netdev,
            sysctls=SYSCTLS,
        )
        look = read(run_script(host, script, max(TIMEOUT, self.options.probe_timeout), "read containers"))
        run.attached = attached(look, self.entries[host.name].spec.nccl)
        return look

    def _plans(self, look: Look) -> tuple[_Plan, ...]:
        return (attach(look, self.asked),) if self.asked.verb == "attach" else detach(look, self.asked)

    def _move(self, host: Host, run: HostRun, item: ComponentRun, plans: Sequence[_Plan]) -> None:
        try:
            for plan in plans:
                if plan.diff:
                    _step(host, self.asked, plan.args)
                    item.changed = True
            again = _comparison(self.asked.verb, self._plans(self._facts(host, run)))
            if again.diff:
                keys = ", ".join(f"{c.key} is {c.actual!r}" for c in again.diff[:4])
                raise ConvergeError(f"{self.asked.verb} succeeded, but {keys}", remedy="run again")
        except GpureadyError as e:
            item.error = e if isinstance(e, ConvergeError) else None
            raise
        run.outcome = "changed"


def _comparison(verb: str, plans: Sequence[_Plan]) -> Comparison:
    affected = tuple(dict.fromkeys(name for plan in plans for name in plan.affected))
    return Comparison(
        verb,
        True,
        diff=tuple(change for plan in plans for change in plan.diff),
        disruption=Disruption.recreate if affected else Disruption.none,
        hits=affected,
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
