"""What became of each component on a host, kept beside its connection for the engine to read."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api.host import Host

from gpuready.components.base import Comparison
from gpuready.errors import GpureadyError

_KEY = "gpuready.outcomes"


@dataclass
class ComponentOutcome:
    """One component: what was found, whether a step changed something, what it waits for, what failed.

    ``touched``: a step that could change something began, whatever came of it.
    """

    found: Comparison
    changed: bool = False
    touched: bool = False
    pending: str = ""
    error: GpureadyError | None = None


def outcomes(host: Host) -> dict[str, ComponentOutcome]:
    """The host's outcomes by component name, in the order in which they ran."""
    found: dict[str, ComponentOutcome] = host.connector_data.setdefault(_KEY, {})
    return found
