"""plan and verify of recorded states: the same comparison and the same checks, without a connection.

Nothing here imports pyinfra, so an answer takes a fraction of a second.
"""

import time
import traceback
from collections.abc import Mapping

from gpuready.base.errors import BugError
from gpuready.cli.request import Request
from gpuready.cli.sink import say
from gpuready.cli.states import read_states
from gpuready.contract.compare import Plan
from gpuready.inventory.hosts import HostEntry
from gpuready.model.state import NodeState
from gpuready.node import NODE
from gpuready.result.model import HostResult, Run
from gpuready.run.evaluate import fill_checks, fill_components, plan_batches


def offline(wanted: Request, path: str) -> Run:
    """Compare and judge every host of the inventory whose state is in the file; the others are not attempted."""
    began = time.monotonic()
    states = read_states(path, [entry.name for entry in wanted.entries]) if wanted.entries else {}  # an empty shard
    run = Run(wanted.verb, [_host(entry, states, wanted) for entry in wanted.entries])
    plan_batches(run, {entry.name: entry for entry in wanted.entries}, wanted.batch, wanted.share)
    wanted.complete(run)
    run.recorded = True
    run.source = f"{run.source}, states from {path}"
    run.seconds = time.monotonic() - began
    return run


def _host(entry: HostEntry, states: Mapping[str, NodeState], wanted: Request) -> HostResult:
    result, state = HostResult(entry.name, notes=list(entry.notes)), states.get(entry.name)
    if state is None:
        result.notes.append("the file has no state of this host")
        return result
    try:
        result.saw(state, entry.spec)
        plan = Plan(NODE, entry.spec, state, wanted.selected)
        fill_components(result, plan, wanted.allowed, verb=wanted.verb)
        fill_checks(result, plan)
    except Exception as e:  # a host's surprise is that host's outcome, never the run's
        say(traceback.format_exc().rstrip(), err=True)
        result.fail(BugError(f"bug in gpuready: {type(e).__name__}: {e}"))
    return result
