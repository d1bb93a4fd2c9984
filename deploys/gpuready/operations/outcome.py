"""What became of each component on a host, kept beside its connection for the engine to read."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api.host import Host

from gpuready.core.compare import Comparison
from gpuready.core.errors import GpureadyError

_KEY = "gpuready.outcomes"


@dataclass
class ComponentOutcome:
    """One component: what was found, whether a step changed something, what it waits for, what failed.

    ``touched``: a step that could change something began, whatever came of it. ``reboot``: it takes one, and may.
    """

    found: Comparison
    changed: bool = False
    touched: bool = False
    reboot: bool = False
    pending: str = ""
    error: GpureadyError | None = None


@dataclass(frozen=True)
class Reboot:
    """That a host was rebooted: its boot_id before and after, and how long it took, in seconds."""

    before: str
    after: str
    seconds: float


def rebooted(host: Host) -> list[Reboot]:
    """The reboots of the host in this run."""
    found: list[Reboot] = host.connector_data.setdefault("gpuready.reboots", [])
    return found


def outcomes(host: Host) -> dict[str, ComponentOutcome]:
    """The host's outcomes by component name, in the order in which they ran."""
    found: dict[str, ComponentOutcome] = host.connector_data.setdefault(_KEY, {})
    return found
