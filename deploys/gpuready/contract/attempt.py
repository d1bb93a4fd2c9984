"""What an operation did with the difference of one component."""

from dataclasses import dataclass

from gpuready.base.errors import GpureadyError
from gpuready.contract.compare import Comparison


@dataclass
class Attempt:
    """One component's turn on a node; ``comparison``: what it found before.

    ``changed``: a step changed something. ``pending``: what the rest waits for. ``closed``: the keys that were closed
    nevertheless. ``touched``: a step that could change something started. ``reboot``: it needs a reboot and has
    permission.
    """

    comparison: Comparison
    changed: bool = False
    pending: str = ""
    error: GpureadyError | None = None
    closed: frozenset[str] = frozenset()
    touched: bool = False
    reboot: bool = False
