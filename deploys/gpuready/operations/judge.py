"""The verify door as one pyinfra operation: probe, run the active checks, judge. It fails if a check fails."""

from __future__ import annotations

from collections.abc import Generator
from datetime import date

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from gpuready.core.check import Check, concerning, run_checks
from gpuready.core.errors import ConvergeError, GpureadyError
from gpuready.operations.active import run_active
from gpuready.operations.failed import Failed
from gpuready.operations.node_state import SPEC, node_state


@operation()
def judge(checks: tuple[Check, ...]) -> Generator[PyinfraCommand, None, None]:
    """Judge the host with two execs. The error lists each failed or unknown check."""
    spec = host.data.get(SPEC)
    try:
        state = node_state(host)
        concerned = concerning(checks, spec, state)
        if any(check.active for check in concerned):
            state = run_active(host, state, spec)
    except GpureadyError as e:
        yield Failed(e)
        return
    judged = run_checks(concerned, spec, state, host.name, active=True, today=date.today())
    bad = [j for j in judged if j.verdict.status in ("fail", "unknown")]
    if bad:
        lines = [f"{j.check.id}: {j.verdict.status}: {j.verdict.summary}" for j in bad]
        yield Failed(ConvergeError("; ".join(lines)))
    else:
        host.noop(f"{len(judged)} checks, none failed")
