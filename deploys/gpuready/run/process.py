"""The process in which a worker of a cluster does its chunk of a run: a fleet of some hosts, and one function of it.

A worker (:mod:`gpuready.run.worker`) starts it: pyinfra and gevent change the whole process, so they cannot share one
with Dask. Stdin brings a pickled :class:`~gpuready.run.access.Chunk` behind a line with its length, and stays open: if
it ends, the worker is gone, and the work is aborted. Stdout brings a line of JSON for each step of a host, and
last the pickled result behind a line with its length.
"""

import gpuready.operations.startup  # noqa: F401

# isort: split
import contextlib
import json
import os
import pickle
import pkgutil
import signal
from dataclasses import replace
from typing import BinaryIO

import gevent
from gevent.socket import wait_read

from gpuready.base.errors import GpureadyError
from gpuready.inventory.secrets import resolve
from gpuready.operations.events import Event
from gpuready.result.model import HostResult, Run
from gpuready.run.access import Chunk
from gpuready.run.fleet import Fleet


def run(chunk: Chunk, tell: "Tell") -> Run:
    """Do the work of a chunk, and return its result without the states of the nodes."""
    try:
        for reference in chunk.secrets:
            resolve(reference, allow_exec=True)  # the controller has asked for permission
    except GpureadyError as e:
        hosts = list(map(HostResult, chunk.names))
        for host in hosts:
            host.fail(e)
        return Run("", hosts)
    observer = tell.event if chunk.traced else None
    fleet = Fleet(pickle.loads(chunk.entries), replace(chunk.access, observer=observer), tell.step)
    done: Run = pkgutil.resolve_name(chunk.work.function)(fleet, **chunk.work.options)
    for host in done.hosts:
        host.state = None
    return done


class Tell:
    """Writes the steps of the hosts to the worker."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def step(self, host: str, what: str) -> None:
        self._line({"host": host, "what": what})

    def event(self, event: Event) -> None:
        self._line({"event": [event.host, event.name, event.seconds, event.sent, event.received]})

    def result(self, run: Run) -> None:
        data = pickle.dumps(run)
        self._out.write(b"%d\n" % len(data) + data)
        self._out.flush()

    def _line(self, value: object) -> None:
        self._out.write(json.dumps(value).encode() + b"\n")
        self._out.flush()


def _end_with_the_worker() -> None:
    """Abort the work when stdin ends. It brings nothing after the chunk."""
    wait_read(0)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Read a chunk, do it, write its result."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts programs in the background with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not part of the result
    source = os.fdopen(0, "rb", buffering=0)  # nothing may be read ahead: stdin tells when the worker ends
    length = 0
    while (digit := source.read(1)) != b"\n":
        length = length * 10 + int(digit)
    data = b""
    while len(data) < length:
        part = source.read(length - len(data))
        if not part:
            raise SystemExit("the chunk is cut off")
        data += part
    chunk = pickle.loads(data)  # from the worker that started this process
    gevent.spawn(_end_with_the_worker)
    tell = Tell(out)
    try:
        result = run(chunk, tell)
    except KeyboardInterrupt:
        result = Run("", list(map(HostResult, chunk.names)))
        result.interrupt()
    for number in (signal.SIGINT, signal.SIGTERM):  # the result must not be cut off
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):
        tell.result(result)


if __name__ == "__main__":
    main()
