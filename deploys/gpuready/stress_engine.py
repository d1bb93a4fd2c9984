"""Run ``gpuready verify --level stress``: verify each host, then load its GPUs; at the end, compare all of them.

The engine holds the lock of a node while its GPUs are loaded, so that no other run changes or measures it.
"""

from datetime import date

from pyinfra.api.host import Host

from gpuready.engine import Engine
from gpuready.gpu.diag import Diagnosis, chosen_level, judge
from gpuready.gpu.stress import Fleet, Node, summary
from gpuready.operations import lock
from gpuready.operations.stress import has_torch, run_diag, run_stress
from gpuready.report.run import Run


class StressEngine(Engine):
    """The engine of ``gpuready verify --level stress``."""

    _seconds: int
    _nodes: dict[str, Node]
    _diagnosed: dict[str, Diagnosis]

    def load(self, seconds: int) -> Run:
        """Verify each host, load each of its GPUs for so long, then compare all of them."""
        self._seconds, self._nodes, self._diagnosed = seconds, {}, {}
        try:
            return self.verify()
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
