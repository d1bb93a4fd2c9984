"""What can be asked of the run on the node itself."""

from __future__ import annotations

from typing import Literal

from gpuready.core.fields import (
    Off,
)
from gpuready.core.section import Section


class Reconverge(Section):
    """What happens on the node itself."""

    on_driver_change: Literal["report", "mend"] | Off = "report"
    """After a driver update: report what became stale, mend it (never a restart or reboot), or nothing."""
