"""How an operation of ours tells pyinfra that it failed: what comes after it on that host is then left out."""

from __future__ import annotations

from typing import Any

from pyinfra.api.command import PyinfraCommand

from gpuready.core.errors import GpureadyError
from gpuready.report.mask import mask_text
from gpuready.report.text import printable


class Failed(PyinfraCommand):
    """Makes the operation fail in pyinfra's eyes; the reason stands in the outcome."""

    def __init__(self, error: GpureadyError) -> None:
        super().__init__()
        self.error = error

    def __repr__(self) -> str:
        return f"Failed({self.error})"

    def execute(self, state: Any, host: Any, connector_arguments: Any) -> bool:
        """Always False."""
        host.log_styled(printable(mask_text(f"{self.error}")), fg="red")
        return False
