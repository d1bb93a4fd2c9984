"""A watchdog for the event loop: end the work on an answer that would keep all other hosts waiting.

One greenlet runs at a time, and no other greenlet can stop it. So the kernel counts the CPU time of this process and
sends a signal, whose handler raises the error in the work itself. The work is parsing, comparing and judging: nothing
that could be left half done. It is measured in CPU time, so a busy machine fails no honest host, whose answer takes
some milliseconds. A thread that is not the main one gets no signals; there the limit applies only at each pause.

A long answer costs the most, so it is read last: once gpuready works on no other host.
"""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from gpuready.base.records import ProbeError

#: Seconds of CPU time for one block of work.
LIMIT = 2.0
#: Seconds of CPU time between two signals after the limit: the work may catch the first error.
_AGAIN = 0.1
#: After a part of the work that took more than ``_SHORT`` seconds, its host waits ``_FAIR`` times as long. Such hosts
#: wait one after another, so all of them together take at most a quarter of the time, however many they are.
_SHORT, _FAIR = 0.05, 4
_LANE = Semaphore()
#: Seconds of CPU time without a pause: a pause costs as much as a short part of the work.
_SLICE = 0.002
#: Characters of an answer from which on it is long. That of a node with an H200 has a tenth of it.
LONG = 1 << 20


class _Busy:
    """How many hosts gpuready works on, without those whose long answer waits."""

    hosts = 0
    changed = Event()

    @classmethod
    def add(cls, number: int) -> None:
        cls.hosts += number
        cls.changed.set()


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Count the host that this greenlet works on."""
    _Busy.add(1)
    try:
        yield
    finally:
        _Busy.add(-1)


def stand_aside() -> None:
    """Wait with a long answer until gpuready works on no other host. Call it within :func:`working`."""
    _Busy.add(-1)
    try:
        while _Busy.hosts > 0:
            _Busy.changed.clear()
            _Busy.changed.wait()
    finally:
        _Busy.add(1)


@contextlib.contextmanager
def holding(doing: str) -> Iterator[Callable[[], None]]:
    """Raise :class:`ProbeError` in a block that takes more than ``LIMIT`` seconds of CPU time for one host's answer.

    The block should call the yielded function from time to time: it lets other hosts run.
    """
    work = _Work(doing)
    work.begin()
    try:
        yield work.pause
    finally:
        work.end()


class _Work:
    """The CPU time that a block has taken so far."""

    watched: "_Work | None" = None
    """The work that runs now."""

    def __init__(self, doing: str) -> None:
        self._doing, self._spent, self._began, self._resumed = doing, 0.0, 0.0, 0.0
        self._greenlet, self._yielded = gevent.getcurrent(), False

    def begin(self) -> None:
        """Start the clock."""
        self._began, self._resumed, self._yielded = time.thread_time(), time.monotonic(), False
        gevent.get_hub().loop.run_callback(self._notice)  # it runs only if the block itself gives up control
        _Work.watched = self
        if _handle_signal():
            signal.setitimer(signal.ITIMER_PROF, max(LIMIT - self._spent, _AGAIN), _AGAIN)

    def end(self) -> float:
        """Stop the clock; return the seconds since it started."""
        if _Work.watched is not self:
            return 0.0
        signal.setitimer(signal.ITIMER_PROF, 0)
        _Work.watched = None
        took = 0.0 if self._yielded else time.thread_time() - self._began
        self._spent += took
        return took

    def pause(self) -> None:
        """Let other hosts run, unless they just did; after a long part of the work, let them run for longer."""
        if time.monotonic() - self._resumed < _SLICE:  # then so was its CPU time, which costs more to ask for
            return
        if self._running() and time.thread_time() - self._began < _SLICE:
            return
        took = self.end()
        self.check()
        if took > _SHORT:
            with _LANE:
                gevent.sleep(_FAIR * took)
        else:
            gevent.sleep(0)
        self.begin()

    def check(self) -> None:
        """Raise ProbeError if the limit is exceeded. After the block gave up control, its time is unknown."""
        if self._spent + (time.thread_time() - self._began if self._running() else 0.0) >= LIMIT:
            raise ProbeError(
                f"{self._doing} the node's answer took more than {LIMIT:.0f} s of CPU time; gpuready stopped for the "
                "sake of the other hosts",
                remedy="look at the node: an honest answer takes milliseconds",
            )

    def _running(self) -> bool:
        """Tell whether this work has had the thread to itself since its clock started."""
        return _Work.watched is self and gevent.getcurrent() is self._greenlet and not self._yielded

    def _notice(self) -> None:
        self._yielded = True


def _handle_signal() -> bool:
    """Install the handler of SIGPROF once. False if another one is there, or this is not the main thread."""
    handler = signal.getsignal(signal.SIGPROF)
    if handler is signal.SIG_DFL:
        try:
            signal.signal(signal.SIGPROF, _expired)
        except ValueError:
            return False
    return handler in (signal.SIG_DFL, _expired)


def _expired(number: int, frame: FrameType | None) -> None:
    if _Work.watched is not None:
        _Work.watched.check()
