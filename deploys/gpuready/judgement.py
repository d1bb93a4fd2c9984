"""One host against its spec: the comparison and the checks, for the engine and for recorded states alike. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from gpuready.checks import CATALOGUE
from gpuready.checks.base import run_checks
from gpuready.components.base import compare
from gpuready.errors import ConvergeError
from gpuready.node import BACK, NODE
from gpuready.report.run import ComponentRun, HostRun
from gpuready.spec.model import NodeSpec


def compared(run: HostRun, spec: NodeSpec, selected: frozenset[str] | None = None, *, back: bool = False) -> None:
    """Fill in the components and the outcome; ``back`` asks for what was there before gpuready."""
    assert run.state is not None
    chosen = [item for item in (BACK if back else NODE) if selected is None or item.name in selected]
    run.components = [ComponentRun(compare(item, spec, run.state, original=back)) for item in chosen]
    for item in run.components:
        item.error = ConvergeError(item.found.error) if item.found.error else None
    if any(item.found.diff and item.error is None for item in run.components):
        run.outcome = "would_change"
    else:
        run.outcome = "failed" if any(item.error for item in run.components) else "ok"


def judged(run: HostRun, spec: NodeSpec, selected: frozenset[str] | None = None, *, back: bool = False) -> None:
    """Fill in the checks; none on the way back, because they ask for what is being taken away."""
    assert run.state is not None
    if not back:
        left_out = [item.name for item in NODE if selected is not None and item.name not in selected]
        active, today = bool(run.state.active), date.today()
        run.checks = list(
            run_checks(CATALOGUE, spec, run.state, run.name, active=active, today=today, left_out=left_out)
        )


def look_back(run: HostRun, spec: NodeSpec, touched: Sequence[ComponentRun], *, back: bool = False) -> None:
    """What the steps came to: one that failed may have changed something, one that ended well must have."""
    assert run.state is not None
    by_name = {item.name: item for item in (BACK if back else NODE)}
    for item in touched:
        again = compare(by_name[item.found.name], spec, run.state, original=back)
        if item.error is not None or item.pending:
            item.changed = item.changed or again.diff != item.found.diff
        elif again.diff or again.error:
            keys = ", ".join(f"{c.key} is {c.actual!r}" for c in again.diff[:4])
            item.error = ConvergeError(f"{item.found.name} still differs after its steps: {again.error or keys}")
