"""The plain door: hosts for ``pyinfra -y inventories/x.py deploys/converge.py`` from our YAML inventory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from gpuready.errors import GpureadyError
from gpuready.operations.connection import host_data
from gpuready.operations.node_state import SPEC
from gpuready.report.text import printable
from gpuready.spec.inventory import load


def hosts(inventory: str | Path) -> list[tuple[str, dict[str, Any]]]:
    """pyinfra's (name, data) for every host of a YAML inventory; an error ends the program with its message."""
    try:
        entries = load([str(inventory)])
    except GpureadyError as e:
        sys.exit(printable(f"{e}"))
    return [(entry.name, host_data(entry.connection) | {SPEC: entry.spec}) for entry in entries]
