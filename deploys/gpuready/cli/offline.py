"""plan and verify of recorded states: the same comparison and the same checks, without a connection.

Nothing here imports the engine, so an answer takes a fraction of a second.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from datetime import date

from gpuready.checks import CATALOGUE
from gpuready.checks.base import run_checks
from gpuready.cli.options import Request
from gpuready.cli.states import read_states
from gpuready.components.base import compare
from gpuready.errors import ConvergeError, EngineError
from gpuready.node import NODE
from gpuready.report.run import ComponentRun, HostRun, Run
from gpuready.spec.inventory import HostEntry
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState


def offline(wanted: Request, path: str) -> Run:
    """Compare and judge every host of the inventory whose state is in the file; the others are not attempted."""
    began = time.monotonic()
    states = read_states(path, [entry.name for entry in wanted.entries])
    run = Run(wanted.verb, [_host(entry, states, wanted) for entry in wanted.entries])
    run.probed = f"{', '.join(wanted.sources)}, states from {path}"
    run.seconds = time.monotonic() - began
    return run


def _host(entry: HostEntry, states: Mapping[str, NodeState], wanted: Request) -> HostRun:
    run = HostRun(entry.name, notes=list(entry.notes), state=states.get(entry.name))
    if run.state is None:
        run.notes.append("the file has no state of this host")
        return run
    try:
        _look(run, run.state, entry.spec, wanted.selected)
    except Exception as e:  # a host's surprise is that host's outcome, never the run's
        traceback.print_exc()
        run.outcome, run.error = "failed", EngineError(f"bug in gpuready: {type(e).__name__}: {e}")
    return run


def _look(run: HostRun, state: NodeState, spec: NodeSpec, selected: frozenset[str] | None) -> None:
    left_out = [item.name for item in NODE if selected is not None and item.name not in selected]
    for item in NODE:
        if item.name not in left_out:
            found = compare(item, spec, state)
            run.components.append(ComponentRun(found, error=ConvergeError(found.error) if found.error else None))
    if any(item.found.diff and item.error is None for item in run.components):
        run.outcome = "would_change"
    else:
        run.outcome = "failed" if any(item.error for item in run.components) else "ok"
    active, today = bool(state.active), date.today()
    run.checks = list(run_checks(CATALOGUE, spec, state, run.name, active=active, today=today, left_out=left_out))
