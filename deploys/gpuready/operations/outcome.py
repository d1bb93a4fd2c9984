"""The outcome of each component on a host. The engine reads it from the host's connector data."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api.host import Host

from gpuready.core.compare import Comparison
from gpuready.core.errors import GpureadyError

_KEY = "gpuready.outcomes"


@dataclass
class ComponentOutcome:
    """The outcome of one component: its comparison, whether a step changed something, what it waits for, what failed.

    ``touched``: a step that could change something started. ``reboot``: it needs a reboot and has permission.
    """

    found: Comparison
    changed: bool = False
    touched: bool = False
    reboot: bool = False
    pending: str = ""
    error: GpureadyError | None = None


@dataclass(frozen=True)
class Reboot:
    """A reboot of a host: its boot_id before and after, and the time it took, in seconds."""

    before: str
    after: str
    seconds: float


def rebooted(host: Host) -> list[Reboot]:
    found: list[Reboot] = host.connector_data.setdefault("gpuready.reboots", [])
    return found


def outcomes(host: Host) -> dict[str, ComponentOutcome]:
    """Return the host's outcomes by component name, in the order in which they ran."""
    found: dict[str, ComponentOutcome] = host.connector_data.setdefault(_KEY, {})
    return found
