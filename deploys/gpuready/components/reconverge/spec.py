"""The spec of the node's own actions after a driver update."""

from typing import Literal

from gpuready.base.fields import Off
from gpuready.base.section import Section


class Reconverge(Section):
    """Actions of the node itself."""

    on_driver_change: Literal["report", "mend"] | Off = "report"
    """After a driver update: report stale parts, repair them (without a restart or reboot), or do nothing."""
