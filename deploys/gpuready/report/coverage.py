"""How deep a run looked, and how many of its checks really saw a GPU. Without the second number "OK" says little."""

from __future__ import annotations

from gpuready.core.check import Judged, Level
from gpuready.report.run import HostRun, Run

#: A verdict that came from looking; skip and unknown did not.
LOOKED = ("pass", "warn", "fail")


def gpu_checks(host: HostRun) -> int:
    """How many GPU checks really ran on this host."""
    return sum(judged.check.gpu and _looked(judged) for judged in host.checks)


def level(host: HostRun) -> Level | None:
    """The deepest level at which something was judged; None if nothing was."""
    return max((judged.check.level for judged in host.checks if _looked(judged)), default=None)


def run_level(run: Run) -> Level | None:
    """The level that every judged host reached: the lowest of theirs."""
    reached = [found for host in run.hosts if (found := level(host)) is not None]
    return min(reached, default=None)


def _looked(judged: Judged) -> bool:
    return judged.verdict.status in LOOKED
