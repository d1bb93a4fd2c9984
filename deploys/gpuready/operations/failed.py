"""Tell pyinfra that an operation failed. pyinfra then skips the rest for that host."""

from __future__ import annotations

from typing import Any

from pyinfra.api.command import PyinfraCommand

from gpuready.core.errors import GpureadyError
from gpuready.report.mask import mask_text
from gpuready.report.text import printable


class Failed(PyinfraCommand):
    """A command that always fails. The outcome holds the reason."""

    def __init__(self, error: GpureadyError) -> None:
        super().__init__()
        self.error = error

    def __repr__(self) -> str:
        return f"Failed({self.error})"

    def execute(self, state: Any, host: Any, connector_arguments: Any) -> bool:
        host.log_styled(printable(mask_text(f"{self.error}")), fg="red")
        return False
