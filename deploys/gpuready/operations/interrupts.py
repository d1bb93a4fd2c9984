"""Deliver signals to the main greenlet, which waits for all others."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import gevent


@contextlib.contextmanager
def signals_to_main() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main greenlet. In the greenlet that runs at that moment, it could get lost."""
    main, loop = gevent.getcurrent(), gevent.get_hub().loop

    def interrupt(number: int, frame: FrameType | None) -> None:
        loop.run_callback(main.throw, KeyboardInterrupt)

    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, interrupt) for number in numbers if callable(signal.getsignal(number))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
