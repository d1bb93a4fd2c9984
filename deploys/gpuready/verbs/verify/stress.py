"""What ``gpuready verify --level stress`` does on hosts: verify each, load its GPUs; at the end, compare all of them.

The lock of a node is held while its GPUs are loaded, so that no other run changes or measures it.
"""

from datetime import date

from pyinfra.api.host import Host

from gpuready.components.dcgm import diag
from gpuready.components.dcgm.diag import Diagnosis
from gpuready.gpu import stress
from gpuready.model.spec import NodeSpec
from gpuready.operations import lock
from gpuready.operations.node_state import node_state
from gpuready.operations.step import show
from gpuready.result.model import CheckResult, Run
from gpuready.run.converge import components, look, run_checks
from gpuready.run.fleet import Fleet
from gpuready.verbs.verify.nodes import has_torch, run_load, run_stress


def load(fleet: Fleet, *, seconds: int) -> Run:
    """Verify each host, load each of its GPUs for so long, then compare all of them."""
    measured = _Measured(seconds)

    def work(host: Host) -> None:
        look(fleet, "verify", node_state, components, host)
        run_checks(fleet, host)
        if not fleet.results[host.name].reason:
            measured.load(host, fleet.entries[host.name].spec, fleet.selected)

    def work_on_all(run: Run) -> None:
        try:
            fleet.each(work)
        finally:  # what was measured before an interrupt is judged, too
            measured.judge(fleet)

    fleet.remembers = lambda result: False
    return fleet.work("verify", work_on_all)


class _Measured:
    """The load of each node, and what it gave."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._nodes: dict[str, stress.Node] = {}
        self._diagnosed: dict[str, Diagnosis] = {}

    def load(self, host: Host, spec: NodeSpec, selected: frozenset[str] | None) -> None:
        """Load the GPUs of one node, and run DCGM's diagnostic, as its spec says."""
        if spec.hardware.without_gpus:
            self._nodes[host.name] = stress.Node(skipped="hardware.gpus: none")
            self._diagnosed[host.name] = Diagnosis(skipped="hardware.gpus: none")
            return
        level = diag.chosen_level(spec, selected)
        if has_torch(spec) or level:
            lock.hold(host)
        if level and not spec.verify.torch:  # the image may be one without PyTorch, for the smoke test
            self._nodes[host.name] = stress.Node(skipped="verify.torch is not set; dcgm.diag tests the GPUs instead")
        else:
            self._nodes[host.name] = run_stress(host, spec, self._seconds)
        if level:
            self._diagnosed[host.name] = Diagnosis(unknown="the diagnostic did not end")  # if the connection breaks
            show(host, f"dcgmi diag -r {level}")
            runs = run_load(host, diag.script(spec, level), "dcgmi diag", diag.LIMITS[level])
            self._diagnosed[host.name] = diag.diagnosis(runs)
        elif spec.dcgm.diag:
            self._diagnosed[host.name] = Diagnosis(skipped="dcgm was not chosen")
        lock.release(host)

    def judge(self, fleet: Fleet) -> None:
        """Compare the GPUs of all nodes, and add the checks to their results."""
        together = stress.Nodes(self._nodes)
        for name, node in self._nodes.items():
            result, spec = fleet.results[name], fleet.entries[name].spec
            said = spec.verify.model_dump(mode="json", exclude_defaults=True)
            result.parts |= {"stress": tuple(node.gpus), "verify": said}
            result.notes += filter(None, [stress.summary(node)])
            diagnosed = diag.judge(name, spec, self._diagnosed.get(name), date.today())
            result.checks += map(CheckResult.of, [*together.judge(name, spec, date.today()), diagnosed])
