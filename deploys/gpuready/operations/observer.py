"""Report each script that runs over a connection to an observer: its name, size and time, never its text."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyinfra.api.host import Host

from gpuready.operations.context import context
from gpuready.operations.events import Event


def tell(host: Host, name: str, began: float, sent: int = 0, received: int = 0) -> None:
    """Report an event that began at ``began`` (time.monotonic) and ends now."""
    observer = context(host).observer
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
