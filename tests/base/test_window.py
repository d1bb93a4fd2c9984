"""Maintenance windows by the wall clock: several days, over midnight, and when the clocks change."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from gpuready.base import window
from gpuready.base.window import opening

BERLIN = ZoneInfo("Europe/Berlin")
SATURDAYS = "Sat 22:00-06:00 Europe/Berlin"


def berlin(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).astimezone(timezone.utc)


@pytest.mark.parametrize(
    ("text", "now", "opens"),
    [
        (SATURDAYS, "2026-11-28 21:59", "Sat 2026-11-28 22:00 CET"),
        (SATURDAYS, "2026-11-28 22:00", ""),
        (SATURDAYS, "2026-11-29 05:59", ""),
        (SATURDAYS, "2026-11-29 06:00", "Sat 2026-12-05 22:00 CET"),
        (SATURDAYS, "2026-11-27 23:00", "Sat 2026-11-28 22:00 CET"),
        ("Sat,Sun 01:00-02:00 Europe/Berlin", "2026-11-28 01:30", ""),
        ("Sat,Sun 01:00-02:00 Europe/Berlin", "2026-11-28 02:00", "Sun 2026-11-29 01:00 CET"),
        ("Sat,Sun 01:00-02:00 Europe/Berlin", "2026-11-29 02:00", "Sat 2026-12-05 01:00 CET"),
        ("Mon-Fri 20:00-24:00 Europe/Berlin", "2026-11-27 23:59", ""),
        ("Mon-Fri 20:00-24:00 Europe/Berlin", "2026-11-28 00:00", "Mon 2026-11-30 20:00 CET"),
        ("Fri-Mon 20:00-21:00 Europe/Berlin", "2026-11-30 20:30", ""),
        ("Fri-Mon 20:00-21:00 Europe/Berlin", "2026-11-30 21:00", "Fri 2026-12-04 20:00 CET"),
        ("Mon-Wed,Sat 20:00-21:00 Europe/Berlin", "2026-11-25 21:00", "Sat 2026-11-28 20:00 CET"),
        ("Sun 00:00-24:00 Europe/Berlin", "2026-11-29 23:59", ""),
        ("Sun 00:00-24:00 Europe/Berlin", "2026-11-30 00:00", "Sun 2026-12-06 00:00 CET"),
        ("02:00-04:00 UTC", "2026-11-30 04:30", ""),
        ("02:00-04:00 UTC", "2026-11-30 05:30", "Tue 2026-12-01 02:00 UTC"),
        ("Thu 22:00-02:00 Asia/Kolkata", "2026-11-26 17:29", "Thu 2026-11-26 22:00 IST"),
        ("Thu 22:00-02:00 Asia/Kolkata", "2026-11-26 17:30", ""),
    ],
)
def test_when_it_is_open_and_when_it_opens_next(text: str, now: str, opens: str) -> None:
    assert opening([text], berlin(now)) == opens


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        # On 29 March 2026 the clocks go from 02:00 to 03:00, on 25 October from 03:00 back to 02:00.
        (SATURDAYS, "2026-03-28 21:00+00:00", "2026-03-29 04:00+00:00"),
        (SATURDAYS, "2026-10-24 20:00+00:00", "2026-10-25 05:00+00:00"),
        ("Sun 01:00-02:30 Europe/Berlin", "2026-03-29 00:00+00:00", "2026-03-29 01:30+00:00"),
        ("Sun 02:15-02:45 Europe/Berlin", "2026-03-29 01:15+00:00", "2026-03-29 01:45+00:00"),
        ("Sun 02:15-02:45 Europe/Berlin", "2026-10-25 00:15+00:00", "2026-10-25 00:45+00:00"),
        ("Sun 01:30-04:00 Europe/Berlin", "2026-10-24 23:30+00:00", "2026-10-25 03:00+00:00"),
    ],
)
def test_nights_in_which_the_clocks_change(text: str, first: str, last: str) -> None:
    begins, ends, second = datetime.fromisoformat(first), datetime.fromisoformat(last), timedelta(seconds=1)
    moments = (begins - second, begins, ends - second, ends)
    assert [bool(opening([text], moment)) for moment in moments] == [True, False, False, True]
    opens = window.window(text).opens(begins - second)
    assert opens and opens.timestamp() == begins.timestamp()


def test_a_start_that_is_skipped_is_shown_as_the_clock_will_show_it() -> None:
    assert opening(["Sun 02:15-02:45 Europe/Berlin"], berlin("2026-03-28 12:00")) == "Sun 2026-03-29 03:15 CEST"


def test_the_first_of_several_windows_counts() -> None:
    both = [SATURDAYS, "Wed 02:00-03:00 UTC"]
    assert opening(both, berlin("2026-11-29 12:00")) == "Wed 2026-12-02 02:00 UTC"
    assert opening(both, berlin("2026-12-02 12:00")) == "Sat 2026-12-05 22:00 CET"
    assert opening(both, berlin("2026-12-06 01:00")) == ""
    assert opening([], berlin("2026-12-06 12:00")) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Sat 22:00-06:00", "not a maintenance window"),
        ("Saturday 22:00-06:00 UTC", "not a maintenance window"),
        ("Sat 22:00-26:00 UTC", "not a maintenance window"),
        ("Sat 22:00-22:00 UTC", "a whole day is 00:00-24:00"),
        ("Sat 22:00-06:00 Europe/Berlim", "no time zone 'Europe/Berlim'; did you mean 'Europe/Berlin'"),
        ("Sat 22:00-06:00 Europe", "no time zone 'Europe'"),
        ("Sat 22:00-06:00 /etc/localtime", "no time zone '/etc/localtime'"),
    ],
)
def test_what_is_no_window(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        window.window(text)


def test_a_machine_without_time_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "available_timezones", set)
    with pytest.raises(ValueError, match="install its package tzdata"):
        window.window("Sat 22:00-06:00 Europe/Nowhere")
