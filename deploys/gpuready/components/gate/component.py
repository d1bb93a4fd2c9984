"""The gate: a program on the node that tells a scheduler in one line and an exit code whether GPU jobs may start.

gpuready-verify is one POSIX sh script, so it needs neither a controller nor Python. It runs only the decisive checks,
with a time limit, under the names that ``verify`` uses. It changes nothing: Slurm or node-problem-detector act on its
exit code (``gpuready render slurm``, ``gpuready render node-problem-detector``).

A GPU that is gone from the bus leaves no trace, so the script contains the number of GPUs: from the spec, else the
largest number that the bus showed gpuready on this node (gpu/bus.py). What the fabric of the GPUs needs is from there,
too.
Sources: slurm.conf(5) and Slurm's guide to prologs; node-problem-detector's custom plugin monitor; nvidia-smi(1).
"""

import re

from gpuready.base import resources
from gpuready.base.step import Step, Steps
from gpuready.components.cdi import state as cdi
from gpuready.contract import ledger, owners
from gpuready.contract.component import Applies, Change, NotComparable, Value, Values
from gpuready.contract.removal import WholeFiles
from gpuready.gpu import bus
from gpuready.gpu.thresholds import FABRIC_COMPLETE, fatal_xids
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

SCRIPT = "/usr/local/sbin/gpuready-verify"
#: Seconds for all checks. An idle node with nvidia-persistenced needs less than 2.
LIMIT = 20
_MODE = 0o755
_PINNED = re.compile(r"^GPUS=([0-9]{1,4})$", re.M)


class Gate(WholeFiles):
    """The program on the node that tells a scheduler whether GPU jobs may start."""

    name = "gate"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.gate:
            return Applies(True, "gate: on")
        installed = bool(self.original(spec, state))
        return Applies(installed, "gate: off, but it is still installed" if installed else "gate: off")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        if not spec.gate:
            return self.original(spec, state)
        if _gpus(spec, state) is None:
            raise NotComparable(
                "gpuready never saw a GPU here, so the gate cannot miss one: set hardware: {gpus: NUMBER|none}"
            )
        return {"gate.script": "current"}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        return {"gate.script": _script(spec, state), **ledger.actual(self.name, state, [SCRIPT])}

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return (SCRIPT,)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if not spec.gate:
            yield from self.restore(diff, spec, state)
            return
        put = ledger.put(state, SCRIPT, wanted(spec, state))
        yield Step(self.name, ledger.WriteFiles((put,), program=SCRIPT), summary=f"write {SCRIPT}")


def wanted(spec: NodeSpec, state: NodeState) -> str:
    gpus = _gpus(spec, state) or 0
    makes_cdi = gpus and not owners.observed("toolkit", spec, state, "cdi")
    writer = cdi.writer(spec.toolkit.version, state.unit(cdi.UNIT), state.systemd)
    docker = spec.runtimes.docker != "absent" and not owners.observed("runtime", spec, state, "docker")
    return resources.script(
        "gate/verify",
        gpus=gpus,
        ports=spec.hardware.rdma.ports or 0,
        target=cdi.target(writer, state.text(cdi.ENVIRONMENT)) if makes_cdi else "",
        docker=docker,
        xids=" ".join(map(str, fatal_xids())),
        fabric=",".join(FABRIC_COMPLETE),
        units=" ".join(bus.fabric_services(state)),
        limit=LIMIT,
    )


def _gpus(spec: NodeSpec, state: NodeState) -> int | None:
    """Return how many GPUs the node must have; None if unknown."""
    if spec.hardware.without_gpus:
        return 0
    if spec.hardware.expected_gpus is not None:
        return spec.hardware.expected_gpus
    pinned = _PINNED.search(state.text(SCRIPT))
    return max(bus.expected(state), int(pinned[1]) if pinned else 0) or None


def _script(spec: NodeSpec, state: NodeState) -> Value:
    file = state.files.get(SCRIPT)
    if file is None:
        return None
    if file.text != wanted(spec, state):
        return "different"
    return "current" if (file.mode, file.uid) == (_MODE, 0) else "not executable"
