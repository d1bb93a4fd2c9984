"""What one command costs this machine: wall time, CPU time and memory of all its processes.

Processes that outlive the command (ssh's ControlMaster, for one) become children of the process that measures, are
ended here, and count, too.
"""

import ctypes
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.lab import scale
from tests.lab.host import LabError

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)
#: A look at the memory takes time; the next one follows after this many times as long.
_PAUSE = 20


class Cost(NamedTuple):
    """Seconds, and bytes; ``output`` is what the command printed.

    ``memory``: the peak of all its processes together. ``first``, ``largest``: the peak of the process that was
    started, and of the largest one of those that it started.
    """

    wall: float
    cpu: float
    memory: int
    output: str
    first: int
    largest: int


def measured(words: Sequence[str | Path], environment: Mapping[str, str], directory: Path, limit: float) -> Cost:
    """Run a command to its end. Raises LabError if it fails or takes longer than ``limit`` seconds."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1)
    others = _children()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            list(map(str, words)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={**environment},
        )
        memory = _Memory(others, process.pid)
        memory.start()
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        wall = time.monotonic() - began
        memory.stop()
        _end(others)
        output.seek(0)
        text = output.read()
    if code != 0:
        how = f"takes longer than {limit:.0f} s" if code is None else f"exit {code}"
        raise LabError(f"{' '.join(map(str, words))[:300]}: {how}\n{text[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, memory.peak, text, *memory.peaks)


class _Memory(threading.Thread):
    """Keeps the highest sum of the processes' memory; a page that several of them share counts once.

    ``peaks``: of the first process, and of the largest other one.
    """

    def __init__(self, others: set[int], first: int) -> None:
        super().__init__(daemon=True)
        self._others, self._first, self._ended, self.peak, self.peaks = others, first, threading.Event(), 0, (0, 0)

    def run(self) -> None:
        while True:
            ended, began = self._ended.is_set(), time.monotonic()
            sizes = {pid: _memory(pid) for pid in _descendants(self._others)}
            self.peak = max(self.peak, sum(sizes.values()))
            first = sizes.pop(self._first, 0)
            self.peaks = max(self.peaks[0], first), max(self.peaks[1], *sizes.values(), 0)
            if ended:
                return
            self._ended.wait(max(0.02, _PAUSE * (time.monotonic() - began)))

    def stop(self) -> None:
        """Look once more, and end."""
        self._ended.set()
        self.join()


def _memory(pid: int) -> int:
    """A process's proportional set size in bytes (proc(5), smaps_rollup)."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _parents() -> dict[int, int]:
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                found[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def _children() -> set[int]:
    return {pid for pid, parent in _parents().items() if parent == os.getpid()}


def _descendants(others: set[int]) -> set[int]:
    """The processes below this one, but for ``others`` and what is below them."""
    parents = _parents()
    found, left = set[int](), {os.getpid()}
    while left:
        left = {pid for pid, parent in parents.items() if parent in left and pid not in others}
        found |= left
    return found


def _end(others: set[int]) -> None:
    """End all that the command left behind."""
    while left := _descendants(others):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in _children() - others:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def await_port(port: int, server: str) -> None:
    """Return once ``server`` takes connections on this loopback port."""
    limit = scale.Limit(10)
    while not limit.over():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise LabError(f"{server} does not answer")
