"""What pyinfra itself is given to run: the hosts of gpuready's inventory, and operations."""

import sys
from collections.abc import Generator
from datetime import date
from pathlib import Path
from typing import Any

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import operation
from pyinfra.context import host
from pyinfra.context import state as run

from gpuready.base.errors import ConvergeError, GpureadyError
from gpuready.catalogue import BY_ID, CATALOGUE, QUESTIONS
from gpuready.components.ledger.component import Ledger
from gpuready.contract.check import concerning, run_checks
from gpuready.contract.component import Component
from gpuready.inventory.hosts import load
from gpuready.node import NODE
from gpuready.operations.active import run_active
from gpuready.operations.component import component
from gpuready.operations.connection import host_data
from gpuready.operations.context import context
from gpuready.operations.node_state import forget, settled_state
from gpuready.operations.reboot import reboot
from gpuready.operations.step import Failed
from gpuready.result.human import skipped_lines
from gpuready.result.model import Run
from gpuready.result.text import Painter, printable


def hosts(inventory: str | Path) -> list[tuple[str, dict[str, Any]]]:
    """Return pyinfra's (name, data) for every chosen host of a YAML inventory; print the skipped hosts to stderr.

    An error ends the program with its message.
    """
    try:
        found = load([str(inventory)], check_ids=lambda: BY_ID)
    except GpureadyError as e:
        sys.exit(printable(f"{e}"))
    skipped = Run("converge")
    skipped.leave_alone(found.skipped)
    for line in skipped_lines(skipped, Painter(False)):
        print(printable(line), file=sys.stderr)
    return [(entry.name, host_data(entry.connection) | {"gpuready": entry.spec}) for entry in found.chosen]


def converge(order: tuple[Component, ...] = NODE) -> None:
    """Converge these components of the host, or their removals: one pyinfra operation for each."""
    early = [item for item in order if item.name != Ledger.name]
    for item in early:
        component(item=item, order=order, name=item.name)
    reboot(name="reboot")
    for item in order[len(early) :]:  # it deletes gpuready's records, so everything else must be restored first
        component(item=item, order=order, name=item.name)


@operation()
def judge() -> Generator[PyinfraCommand, None, None]:
    """Judge the host by a new probe, with two execs. The error lists each failed or unknown check."""
    if not run.is_executing:  # pyinfra detects changes; this makes none
        return
    spec = context(host).spec
    forget(host)
    try:
        state = settled_state(host)
        concerned = concerning(CATALOGUE, spec, state)
        if any(check.active for check in concerned):
            state = run_active(host, state, spec, QUESTIONS)
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
