"""What a run reports while it is under way."""

from collections.abc import Callable
from dataclasses import dataclass

#: Called with a host's name and its current activity ("connect", "probe", "apply toolkit", ...).
Progress = Callable[[str, str], None]


@dataclass(frozen=True)
class Event:
    """A script on a host, or its connection, has ended. ``sent`` and ``received`` are bytes."""

    host: str
    name: str
    seconds: float
    sent: int = 0
    received: int = 0


Observer = Callable[[Event], None]
