"""Maintenance windows: ``Sat 22:00-06:00 Europe/Berlin``, weekly, by the wall clock of a time zone.

A window that ends before it begins ends on the next day. When a change of the clocks skips a time, the window begins
or ends as much later; of a time that comes twice, the first one counts (``fold`` of PEP 495).
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from gpuready.base.errors import did_you_mean

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = f"(?:{'|'.join(_DAYS)})"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_RANGE = f"{_DAY}(?:-{_DAY})?"
#: The form of a window, for JSON Schema, too.
FORM = f"(?:({_RANGE}(?:,{_RANGE})*) )?({_TIME})-({_TIME}|24:00) ([A-Za-z0-9_+/-]+)"
ALLOWED = "DAYS START-END ZONE, such as Sat 22:00-06:00 Europe/Berlin, Mon-Fri,Sun 01:00-05:00 UTC, or 02:00-04:00 UTC"


@dataclass(frozen=True)
class Window:
    """``days``: those on which it begins, 0 being Monday. ``length``: in days, from the start's date to the end's."""

    days: frozenset[int]
    start: time
    end: time
    length: int
    zone: ZoneInfo

    def opens(self, now: datetime) -> datetime | None:
        """Return when it opens next, in its own zone; None if it is open."""
        today = now.astimezone(self.zone).date()
        coming = []
        for day in (today + timedelta(days=n) for n in range(-1, 9)):
            if day.weekday() in self.days:
                begins, ends = self._at(day, self.start), self._at(day + timedelta(days=self.length), self.end)
                if begins <= now < ends:
                    return None
                coming.append(begins)
        return min(each for each in coming if each > now).astimezone(self.zone)

    def _at(self, day: date, moment: time) -> datetime:
        """In UTC, because Python compares two times of one zone by the wall clock, and keeps a time that is skipped."""
        return datetime.combine(day, moment, self.zone).astimezone(timezone.utc)


@functools.lru_cache
def window(text: str) -> Window:
    """Return the window that a text describes. Raises ValueError."""
    found = re.fullmatch(FORM, text)
    if not found:
        raise ValueError("not a maintenance window")
    days, start, end, zone = found.groups()
    if start == end:
        raise ValueError("the window ends when it begins; a whole day is 00:00-24:00")
    length = int(end == "24:00" or end < start)
    moments = time.fromisoformat(start), time.fromisoformat(end.replace("24:00", "00:00"))
    return Window(_days(days or "Mon-Sun"), *moments, length, _zone(zone))


def _days(text: str) -> frozenset[int]:
    found = set[int]()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, count = _DAYS.index(first), (_DAYS.index(last or first) - _DAYS.index(first)) % 7 + 1
        found |= {(begin + n) % 7 for n in range(count)}
    return frozenset(found)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        names = available_timezones()
        missing = "" if names else "; this machine has no time zones: install its package tzdata"
        raise ValueError(f"no time zone {name!r}{missing}{did_you_mean(name, names)}") from None


def now() -> datetime:
    """The time that windows are compared with."""
    return datetime.now(timezone.utc)


def opening(windows: Sequence[str], at: datetime) -> str:
    """Return when the first of these windows opens, as ``Sat 2026-11-28 22:00 CET``.

    Empty if one is open, or if there are none.
    """
    coming = [opens for text in windows if (opens := window(text).opens(at))]
    if not coming or len(coming) < len(windows):
        return ""
    first = min(coming, key=datetime.timestamp)
    return f"{_DAYS[first.weekday()]} {first:%Y-%m-%d %H:%M %Z}"
