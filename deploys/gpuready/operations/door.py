"""The plain door: hosts for ``pyinfra -y inventories/x.py deploys/converge.py`` from our YAML inventory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from gpuready.catalogue import BY_ID
from gpuready.core.errors import GpureadyError
from gpuready.inventory.hosts import load
from gpuready.operations.connection import host_data
from gpuready.operations.node_state import SPEC
from gpuready.report.human import skipped_lines
from gpuready.report.run import Run
from gpuready.report.text import Painter, printable


def hosts(inventory: str | Path) -> list[tuple[str, dict[str, Any]]]:
    """pyinfra's (name, data) for every chosen host of a YAML inventory; an error ends the program with its message.

    The skipped hosts go to stderr.
    """
    try:
        found = load([str(inventory)], check_ids=BY_ID)
    except GpureadyError as e:
        sys.exit(printable(f"{e}"))
    run = Run("converge")
    run.leave_alone(found.skipped)
    for line in skipped_lines(run, Painter(False)):
        print(printable(line), file=sys.stderr)
    return [(entry.name, host_data(entry.connection) | {SPEC: entry.spec}) for entry in found.chosen]
