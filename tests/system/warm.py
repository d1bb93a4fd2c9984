"""Runs of the console script without its imports: a process that has done them forks for every run.

Importing is most of a run's CPU time, and the system tests make a good thousand runs. What forks is a process of its
own, so nothing of pytest is in a run; it has imported the project and nothing of it was called. The child executes
the installed console script itself and ends as a Python of its own would. What starting, signals and terminals are
about goes through the real executable (:meth:`Gpuready.start`), whose hash seed is its own, too.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

_MOST = 200_000
"""Bytes of a request; what a socket takes as one message by default (net.core.wmem_default)."""
LIMITS = "GPUREADY_LAB_LIMITS"
"""In a run's environment: constants that are limits of time, with other values: ``model.probe.PATIENCE=3 ...``."""


class Warm:
    """The client's side; a context manager, as long as which the process lives."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is pytest's
            )

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.wait()

    def start(self, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Forked:
        """Begin a run of ``words`` (a Python script's path and its arguments), with /dev/null as its stdin."""
        request = json.dumps({"words": [*words], "cwd": str(cwd), "env": {**env}}).encode()
        ours, theirs = socket.socketpair()
        out, err = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._control, [request], [theirs.fileno(), out[1], err[1]])
        finally:
            theirs.close()
            os.close(out[1])
            os.close(err[1])
        return Forked(ours, out[0], err[0])


class Forked:
    """A run, as far as one needs it as a Popen: its output, its end, its exit code."""

    def __init__(self, status: socket.socket, out: int, err: int) -> None:
        self._status, self._streams = status, (out, err)
        self.returncode: int | None = None

    def communicate(self, timeout: float) -> tuple[str, str]:
        """stdout and stderr, when the run and whatever else holds them has ended; TimeoutError."""
        with ThreadPoolExecutor(2) as pool:
            out, err = (pool.submit(os.fdopen(stream, encoding="utf-8").read) for stream in self._streams)
            try:
                text = out.result(timeout), err.result(timeout)
            except BaseException:
                self.kill()  # else the threads would read on
                raise
        told = self._status.recv(16)
        assert told, "the process that forks has ended"
        self.returncode = int(told)
        return text

    def kill(self) -> None:
        """End it, if it has not ended."""
        self._status.close()


class _Runs:
    """The server's side: forks for every request, and tells its sender how the run ended."""

    def __init__(self, control: socket.socket) -> None:
        self.control, self.poll = control, select.poll()
        self.ends: dict[int, tuple[int, socket.socket]] = {}  # by pidfd: pid, and whom to tell
        self.senders: dict[int, int] = {}  # by the fd of whom to tell: pidfd
        self.poll.register(control, select.POLLIN)
        # gevent is about to replace these, and its own would begin a hub
        self.fork, self.wait, self.socket = os.fork, os.waitpid, socket.socket

    def serve(self) -> list[str] | None:
        """None when there is no client any more; in a child, what it shall run."""
        while True:
            for number, _ in self.poll.poll():
                if number == self.control.fileno():
                    request, fds, _, _ = socket.recv_fds(self.control, _MOST, 3)
                    if not request:
                        for each in self.senders.values():
                            signal.pidfd_send_signal(each, signal.SIGKILL)
                        return None
                    if words := self._begin(json.loads(request), fds):
                        return words
                elif number in self.ends:
                    self._end(number)
                elif number in self.senders:
                    signal.pidfd_send_signal(self.senders.pop(number), signal.SIGKILL)
                    self.poll.unregister(number)

    def _begin(self, request: dict[str, Any], fds: list[int]) -> list[str]:
        sender, out, err = fds
        pid = self.fork()
        if pid == 0:
            for standard, given in ((1, out), (2, err)):
                os.dup2(given, standard)
            for each in (self.control, *(whom for _, whom in self.ends.values())):
                each.close()
            for each in (*fds, *self.ends):
                os.close(each)
            os.chdir(request["cwd"])
            os.environ.clear()
            os.environ.update(request["env"])
            words: list[str] = request["words"]
            return words
        os.close(out)
        os.close(err)
        pidfd = os.pidfd_open(pid)
        self.ends[pidfd], self.senders[sender] = (pid, self.socket(fileno=sender)), pidfd
        self.poll.register(pidfd, select.POLLIN)
        self.poll.register(sender, select.POLLHUP)
        return []

    def _end(self, pidfd: int) -> None:
        pid, sender = self.ends.pop(pidfd)
        code = os.waitstatus_to_exitcode(self.wait(pid, 0)[1])
        self.poll.unregister(pidfd)
        os.close(pidfd)
        if self.senders.pop(sender.fileno(), None) is not None:
            self.poll.unregister(sender)
            with suppress(BrokenPipeError):  # who asked has just given up
                sender.sendall(str(code).encode())
        sender.close()


def _serve(fd: int) -> None:
    os.set_inheritable(fd, False)
    runs = _Runs(socket.socket(fileno=fd))  # before gevent changes what sockets and polls are
    verbs = importlib.import_module("gpuready.result.verbs").VERBS
    needed = ("run.fleet", "run.converge", "operations.active", "run.operations", "cli.main")
    for name in (*needed, *(f"verbs.{verb.replace('-', '_')}.command" for verb in verbs)):
        importlib.import_module(f"gpuready.{name}")
    from gevent._hub_local import get_hub_if_exists

    assert get_hub_if_exists() is None and threading.active_count() == 1, "no fork bears what an import has begun"
    gc.freeze()  # what is there stays shared
    if words := runs.serve():
        for each in os.environ.pop(LIMITS, "").split():
            place, _, number = each.partition("=")
            module, _, name = place.rpartition(".")
            limited = importlib.import_module(f"gpuready.{module}")
            assert isinstance(getattr(limited, name), int), place
            setattr(limited, name, int(number))
        sys.argv[:] = words
        sys.path[0] = str(Path(words[0]).parent)  # as Python sets it for a script
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
