"""Run DCGM's diagnostic on one idle node (templates/dcgm/diag.sh.j2). Nothing on the node changes."""

from __future__ import annotations

from pyinfra.api.host import Host

from gpuready.core import resources
from gpuready.core.ignored_containers import words
from gpuready.core.records import Records
from gpuready.gpu.diag import LIMITS, Diagnosis, diagnosis
from gpuready.operations.step import show
from gpuready.operations.transport import Session, count_exec
from gpuready.spec.model import NodeSpec

#: Seconds for the idle check, nvidia-smi and discovery, and for a diagnostic that must be stopped.
_AROUND = 240


def run_diag(host: Host, spec: NodeSpec, level: int) -> Diagnosis:
    """Run ``dcgmi diag`` at a level, if nothing uses the GPUs. Closing the session ends it."""
    slurm, *ignored = words(spec)
    script = resources.script("dcgm/diag", level=level, limit=LIMITS[level], node=slurm, ignore=ignored)
    count_exec(host)
    show(host, f"dcgmi diag -r {level}")
    with Session(host, script, "dcgmi diag") as session:
        session.hear("begin", limit=LIMITS[level] + _AROUND)
        records = Records(session.records(60))
        session.linger()
        return diagnosis(records.runs)
