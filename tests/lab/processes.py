"""Processes of the lab, found by arguments that only they have: a recorded pid could by now mean a stranger."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.lab import scale
from tests.lab.host import LabError


def matching(test: Callable[[list[str]], bool]) -> list[int]:
    """The processes of this host whose argument list passes the test."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            argv = (path / "cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
        except OSError:
            continue
        if test(argv):
            found.append(int(path.name))
    return found


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_gone(pids: Iterable[int], seconds: float) -> None:
    """Wait until none of them runs any more."""
    limit = scale.Limit(seconds)
    while left := [pid for pid in pids if not _gone(pid)]:
        if limit.over():
            raise LabError(f"processes {left} are still there after {seconds:.0f} s")
        time.sleep(0.01)


def _gone(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # collects it where it is a child of this very process
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
