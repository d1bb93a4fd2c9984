"""Limits of tests, in seconds of an idle machine: where others work, too, everything may take longer.

A limit only says when a test gives up, so a long one costs nothing where all is well.
"""

import os
import time
from pathlib import Path

#: On a machine that is busier than this the tests have other troubles than their limits.
MOST = 10.0


def factor() -> float:
    """How much longer things take now than alone: processes that want to run, for each processor; 1 to :data:`MOST`.

    The load average lags behind by half a minute, and what runs at this moment is noise: the larger of the two.
    """
    now = Path("/proc/loadavg")
    running = int(now.read_text().split()[3].partition("/")[0]) - 1 if now.exists() else 0  # without this process
    return min(MOST, max(1.0, max(os.getloadavg()[0], running) / (os.cpu_count() or 1)))


def seconds(idle: float) -> float:
    """A limit that is ``idle`` seconds where nothing else runs."""
    return idle * factor()


class Limit:
    """The same for a loop that waits: it grows when the machine gets busier meanwhile."""

    def __init__(self, idle: float) -> None:
        self._idle, self._began, self._factor = idle, time.monotonic(), 1.0

    def over(self) -> bool:
        """Whether it is time to give up."""
        self._factor = max(self._factor, factor())
        return time.monotonic() - self._began > self._idle * self._factor
