"""The outcome of each component on a host, in its connector data for the engine; and how pyinfra learns of an error."""

from dataclasses import dataclass
from typing import Any

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.host import Host

from gpuready.base.errors import GpureadyError
from gpuready.report.mask import mask_text
from gpuready.report.run import ComponentRun
from gpuready.report.text import printable

_KEY = "gpuready.outcomes"


@dataclass(frozen=True)
class Reboot:
    """A reboot of a host: its boot_id before and after, and the time it took, in seconds."""

    before: str
    after: str
    seconds: float


def rebooted(host: Host) -> list[Reboot]:
    found: list[Reboot] = host.connector_data.setdefault("gpuready.reboots", [])
    return found


def outcomes(host: Host) -> dict[str, ComponentRun]:
    """Return the host's outcomes by component name, in the order in which they ran."""
    found: dict[str, ComponentRun] = host.connector_data.setdefault(_KEY, {})
    return found


class Failed(PyinfraCommand):
    """A command that always fails, so that pyinfra skips the rest for that host. The outcome holds the reason."""

    def __init__(self, error: GpureadyError) -> None:
        super().__init__()
        self.error = error

    def execute(self, state: Any, host: Any, connector_arguments: Any) -> bool:
        host.log_styled(printable(mask_text(f"{self.error}")), fg="red")
        return False
