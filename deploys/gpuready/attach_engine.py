"""Giving a device to a container on a host: one exec that looks, a step that moves, and one exec that looks again.

No component of a node's spec: what is attached follows a container, not an inventory. All else is the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from gpuready.core import resources
from gpuready.core.compare import Comparison
from gpuready.core.component import Disruption
from gpuready.core.errors import ConvergeError, GpureadyError, RefusedError
from gpuready.core.step import Step
from gpuready.engine import Engine, Options, Progress
from gpuready.inventory.hosts import HostEntry
from gpuready.operations.step import Pending, StepCommand
from gpuready.operations.transport import run_script
from gpuready.report.run import ComponentRun, HostRun, Run
from gpuready.tools.attach.decide import attach
from gpuready.tools.attach.detach import detach, nothing_on_record
from gpuready.tools.attach.facts import Look, read
from gpuready.tools.attach.move_plan import Asked, Deed
from gpuready.tools.attach.netdev import SYSCTLS
from gpuready.tools.attach.status import attached

TIMEOUT = 60
#: What the kernel says of a driver that has no way to take a device from its users (rxe and siw have none).
_UNMOVABLE = "Operation not supported"


class Attaching(Engine):
    """A run of ``gpuready rdma attach | detach | list``."""

    def __init__(self, entries: Sequence[HostEntry], options: Options, progress: Progress, asked: Asked) -> None:
        super().__init__(entries, options, progress)
        self.asked = asked

    def act(self) -> Run:
        """All hosts at once; each is judged before anything is moved on it."""
        return self._timed(lambda: self._each(self._work, self._hosts(self.entries)))

    def _work(self, host: Host) -> None:
        run = self._runs[host.name]
        self._connect(host)
        look = self._facts(host, run)
        run.outcome = "ok"
        if self.asked.verb == "list":
            return
        deeds = self._deeds(look)
        item = ComponentRun(_comparison(self.asked.verb, deeds))
        run.components = [item]
        if not deeds:
            nothing_on_record(look, self.asked)
        elif not item.found.diff:
            run.notes += item.found.notes
        elif self.options.verb == "plan":
            run.outcome = "would_change"
        else:
            self._do(host, run, item, deeds)

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
        look = read(run_script(host, script, TIMEOUT))
        run.attached = attached(look, self.entries[host.name].spec.nccl)
        return look

    def _deeds(self, look: Look) -> tuple[Deed, ...]:
        return (attach(look, self.asked),) if self.asked.verb == "attach" else detach(look, self.asked)

    def _do(self, host: Host, run: HostRun, item: ComponentRun, deeds: Sequence[Deed]) -> None:
        try:
            for deed in deeds:
                if deed.diff:
                    _step(host, self.asked, deed)
                    item.changed = True
            again = _comparison(self.asked.verb, self._deeds(self._facts(host, run)))
            if again.diff:
                keys = ", ".join(f"{c.key} is {c.actual!r}" for c in again.diff[:4])
                raise ConvergeError(f"{self.asked.verb} ended well, and still {keys}", remedy="run again")
        except GpureadyError as e:
            item.error = e if isinstance(e, ConvergeError) else None
            raise
        run.outcome = "changed"


def _comparison(verb: str, deeds: Sequence[Deed]) -> Comparison:
    hits = tuple(dict.fromkeys(name for deed in deeds for name in deed.hits))
    return Comparison(
        verb,
        True,
        diff=tuple(change for deed in deeds for change in deed.diff),
        disruption=Disruption.recreate if hits else Disruption.none,
        hits=hits,
        notes=tuple(dict.fromkeys(note for deed in deeds for note in deed.notes)),
    )


def _step(host: Host, asked: Asked, deed: Deed) -> None:
    values = deed.values
    script = (
        resources.script("tools/attach/attach", **values)
        if asked.verb == "attach"
        else resources.script("tools/attach/detach", **values)
    )
    command = StepCommand(Step(asked.verb, script, summary=f"{asked.verb} {asked.device or asked.netdev}".strip()))
    command.execute(None, host, None)
    if isinstance(command.error, Pending):
        raise ConvergeError(f"{asked.verb} waits {command.error}")
    if isinstance(command.error, ConvergeError) and f"rdma dev set {asked.device} netns" in command.error.message:
        raise _unmovable(asked.device, command.error)
    if command.error is not None:
        raise command.error


def _unmovable(device: str, error: ConvergeError) -> ConvergeError:
    """The kernel's refusal in words; what else it says goes through as it is."""
    if _UNMOVABLE not in error.message:
        return error
    return RefusedError(
        f"the driver of {device} cannot move it to another network namespace ({error.message})",
        remedy="only a driver that can take a device from its users can (mlx5, irdma; not rxe, siw); containers get "
        "this one in shared mode: rdma: {netns_mode: shared}",
    )


def execute(entries: Sequence[HostEntry], options: Options, progress: Progress, asked: Asked) -> Run:
    """Run it over the hosts; ``options.verb`` is ``plan`` where it is only to be shown."""
    return Attaching(entries, options, progress, asked).act()
