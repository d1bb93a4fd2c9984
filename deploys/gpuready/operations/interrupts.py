"""The signals that end a run. The first one lets hosts finish what has begun there; the next one aborts at once.

The main greenlet waits for all others, so an abort is raised there: in the greenlet that runs at that moment, it could
get lost. SIGTERM never waits, because the systems that send it kill the process seconds later. A second SIGHUP does not
abort: a shell that loses its terminal sends another one after the kernel's.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

import gevent

#: What a change waits for if the run was interrupted before it.
LATER = "for the next run: this one was interrupted"


@dataclass
class Stop:
    """Whether a run is to stop. ``busy``: the hosts whose change or drain has begun and is not verified yet.

    ``asked``: no other host and no other component begins.
    """

    asked: bool = False
    busy: set[str] = field(default_factory=set)


@contextlib.contextmanager
def signals_to_main(stop: Stop, tell: Callable[[], None]) -> Iterator[None]:
    """Raise KeyboardInterrupt in the main greenlet; but if hosts are busy, first ask to stop, and call ``tell``."""
    main, loop = gevent.getcurrent(), gevent.get_hub().loop

    def interrupt(number: int) -> None:
        if number != signal.SIGTERM and stop.busy and not stop.asked:
            stop.asked = True
            gevent.spawn(tell)  # the event loop itself must not wait for a terminal
        elif number != signal.SIGHUP or not stop.asked:
            main.throw(KeyboardInterrupt)

    def handle(number: int, frame: FrameType | None) -> None:
        loop.run_callback(interrupt, number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, handle) for number in numbers if callable(signal.getsignal(number))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
