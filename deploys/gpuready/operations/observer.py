"""Report each script that runs over a connection to an observer: its name, size and time, never its text."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyinfra.api.host import Host

_KEY = "gpuready.observer"


@dataclass(frozen=True)
class Event:
    """A script on a host, or its connection, has ended. ``sent`` and ``received`` are bytes."""

    host: str
    name: str
    seconds: float
    sent: int = 0
    received: int = 0


Observer = Callable[[Event], None]


def observe(host: Host, observer: Observer | None) -> None:
    """Report this host's events to ``observer`` from now on; None: to nobody."""
    host.connector_data[_KEY] = observer


def tell(host: Host, name: str, began: float, sent: int = 0, received: int = 0) -> None:
    """Report an event that began at ``began`` (time.monotonic) and ends now."""
    observer: Observer | None = host.connector_data.get(_KEY)
    if observer is not None:
        observer(Event(host.name, name, time.monotonic() - began, sent, received))


@contextmanager
def timed(host: Host, name: str) -> Iterator[None]:
    """Report the time of the body, also if it raises."""
    began = time.monotonic()
    try:
        yield
    finally:
        tell(host, name, began)
