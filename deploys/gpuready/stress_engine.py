"""Run ``gpuready verify --level stress``: verify each host, then load its GPUs; at the end, compare all of them.

The engine holds the lock of a node while its GPUs are loaded, so that no other run changes or measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyinfra.api.host import Host

from gpuready.engine import Engine, Options, Progress
from gpuready.gpu.diag import Diagnosis, chosen_level, judge
from gpuready.gpu.stress import Fleet, Node, summary
from gpuready.inventory.hosts import HostEntry
from gpuready.operations import lock
from gpuready.operations.diag import run_diag
from gpuready.operations.stress import has_torch, run_stress
from gpuready.report.run import Run


class StressEngine(Engine):
    """The engine of ``gpuready verify --level stress``. ``seconds``: how long each GPU is under load."""

    def __init__(self, entries: Sequence[HostEntry], options: Options, progress: Progress, seconds: int) -> None:
        super().__init__(entries, options, progress)
        self._seconds = seconds
        self._nodes: dict[str, Node] = {}
        self._diagnosed: dict[str, Diagnosis] = {}

    def verify(self) -> Run:
        """Verify and load each host, then compare all of them."""
        try:
            return super().verify()
        finally:
            fleet = Fleet(self._nodes)
            for run in self.run.hosts:
                if run.name in self._nodes:
                    run.stress = tuple(self._nodes[run.name].gpus)
                    run.notes += filter(None, [summary(self._nodes[run.name])])
                    spec = self.entries[run.name].spec
                    run.checks += fleet.judge(run.name, spec, date.today())
                    run.checks.append(judge(run.name, spec, self._diagnosed.get(run.name), date.today()))

    def _examine(self, host: Host) -> None:
        super()._examine(host)
        spec = self.entries[host.name].spec
        if spec.hardware.without_gpus:
            self._nodes[host.name] = Node(skipped="hardware.gpus: none")
            self._diagnosed[host.name] = Diagnosis(skipped="hardware.gpus: none")
        elif not self._runs[host.name].reason:
            level = chosen_level(spec, self.options.selected)
            if has_torch(spec) or level:
                lock.hold(host)
            if level and not spec.verify.torch:  # the image may be one without PyTorch, for the smoke test
                self._nodes[host.name] = Node(skipped="verify.torch is not set; dcgm.diag tests the GPUs instead")
            else:
                self._nodes[host.name] = run_stress(host, spec, self._seconds)
            if level:
                self._diagnosed[host.name] = Diagnosis(unknown="the diagnostic did not end")  # if the connection breaks
                self._diagnosed[host.name] = run_diag(host, spec, level)
            elif spec.dcgm.diag:
                self._diagnosed[host.name] = Diagnosis(skipped="dcgm was not chosen")
            lock.release(host)
