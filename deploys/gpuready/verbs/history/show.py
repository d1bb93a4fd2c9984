"""The history for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from gpuready import __version__
from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.result.blocks import of_any_host
from gpuready.result.mask import mask
from gpuready.result.model import utc
from gpuready.result.page import page
from gpuready.result.text import Painter, columns, cut, grouped
from gpuready.verbs.history.timeline import BAD, FLAPPING, Drift, HostTrack, Timeline, Track, XidTrack

SCHEMA = "gpuready/history/1"
_GOOD = ("pass", "matches", "reachable")
#: So many lines of a table are shown to people, but all of what is wrong now; and so many names of skipped files.
_MOST, _MOST_SKIPPED = 40, 5
#: The longest reason.
_TEXT = 100
_STYLES = {"warn": "yellow", "unknown": "yellow", "pending": "yellow"}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def document(found: Timeline, place: str, skipped: dict[str, str]) -> dict[str, Any]:
    """The history as JSON values, masked. Additions only within a version, as in the result document."""
    wrong, drifted = found.wrong(), found.drifted()
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "gpuready": __version__,
        "place": place,
        "from": utc(found.start),
        "to": utc(found.end),
        "runs": dict(found.runs),
        "hosts": [
            {**asdict(each), "first": utc(each.first), "last": utc(each.last),
             "applied": None if each.applied is None else utc(each.applied),
             "wrong": wrong[each.name], "drifted": drifted[each.name]}
            for each in found.hosts
        ],
        "tracks": [_track(each, found.start) for each in found.tracks],
        "drift": [{**asdict(each), "since": utc(each.since), "applied": utc(each.applied)} for each in found.drifts],
        "xids": [asdict(each) for each in found.xids],
        "skipped": [{"file": name, "problem": problem} for name, problem in skipped.items()],
    }  # fmt: skip
    masked: dict[str, Any] = mask(made)
    return masked


def _track(each: Track, start: float) -> dict[str, Any]:
    return {
        "host": each.host,
        "kind": each.kind,
        "name": each.name,
        "status": each.status,
        "since": utc(each.since),
        "since_first_result": each.always,
        "text": "" if each.status in _GOOD else each.text,
        "results": each.results,
        "bad": each.bad,
        "times_bad": each.times_bad(start),
        "changes": each.changes(start),
        "flapping": each.changes(start) >= FLAPPING,
        "spans": [{"since": utc(at), "status": status} for at, status in each.spans],
    }


def human(found: Timeline, place: str, skipped: dict[str, str], *, chosen: bool = False, color: bool = False) -> str:
    """The history as text. ``chosen``: checks were asked for, so they are shown whatever their status is."""
    paint = Painter(color)
    tracks = sorted(found.tracks, key=lambda each: (each.name, each.since))
    wrong = [each for each in tracks if chosen or each.status in BAD]
    good = [each for each in tracks if not chosen and each.status not in BAD]
    flapping = [each for each in good if each.changes(found.start) >= FLAPPING]
    return page([
        [_headline(found, place)],
        _tracks("checks" if chosen else "wrong now", wrong, found.start, paint),
        _tracks("flapping, good now", flapping, found.start, paint),
        _table("drift since the last apply", ("COMPONENT", "HOSTS", "SINCE", "APPLIED", "DIFFERENCE"),
               _drifts(found.drifts), paint),
        _table("Xids", ("XID", "HOST", "EVENTS", "LAST", "MEAN TIME BETWEEN"),
               [_xid(each) for each in found.xids], paint),
        _table("hosts", ("HOSTS", "LAST RESULT", "RESULTS", "LAST APPLY", "NOW"),
               _hosts(found), paint),
        _skipped(skipped, found.ahead, paint),
    ])  # fmt: skip


def _headline(found: Timeline, place: str) -> str:
    if not found.hosts:
        return f"history: no result in {place}; a run keeps its result there with --history {place}"
    runs = ", ".join(f"{number} {verb or 'no command'}" for verb, number in found.runs.most_common())
    period = f"{when(found.start)} to {when(found.end)} UTC"
    return f"history: {count(len(found.hosts), 'host')}, {period}: {runs or 'no result in this time'}"


def _tracks(title: str, tracks: Sequence[Track], start: float, paint: Painter) -> list[str]:
    shared = grouped((_cells(each, start), each.host) for each in tracks if each.kind != "host")
    rows = [(name, hostlist(hosts), *rest) for (name, *rest), hosts in shared.items()]
    reasons = grouped(((each.name, each.status, _reason(each)), each) for each in tracks if each.kind == "host")
    rows += [_of_hosts(alike, start) for alike in reasons.values()]
    shown = [(*row[:2], paint(_style(row[2]), row[2]), *row[3:]) for row in rows]
    head = ("CHECK OR COMPONENT", "HOSTS", "STATUS", "SINCE", "BAD RESULTS", "CHANGES", "")
    return _table(title, head, shown, paint, most=len(shown))


def _reason(each: Track) -> str:
    """Why a host is unreachable, in words that it shares with others."""
    return "" if each.status in _GOOD else of_any_host(each.text, each.host).removeprefix("HOST: ")


def _of_hosts(alike: Sequence[Track], start: float) -> tuple[str, ...]:
    """One row for hosts that are unreachable for one reason, whenever that began."""
    first = min(alike, key=lambda each: each.since)
    name, status, since, bad, changes, text = _cells(first, start)
    if len(alike) > 1:
        last = max(when(each.since) for each in alike)
        since = since if last == when(first.since) else f"{since} to {last}"
        bad = f"{sum(each.bad for each in alike)} of {sum(each.results for each in alike)}"
        most = max(each.changes(start) for each in alike)
        changes = f"{most}, flapping" if most >= FLAPPING else str(most)
        text = cut(_reason(first), _TEXT)
    return name, hostlist(each.host for each in alike), status, since, bad, changes, text


def _style(status: str) -> str:
    return _STYLES.get(status, "green" if status in _GOOD else "red")


def _cells(each: Track, start: float) -> tuple[str, ...]:
    changes, times = each.changes(start), each.times_bad(start)
    bad = f"{each.bad} of {each.results}" + (f", {times} times" if times > 1 else "")
    flapping = f"{changes}, flapping" if changes >= FLAPPING else str(changes)
    since = f"{when(each.since)} or before" if each.always else when(each.since)
    return each.name, each.status, since, bad, flapping, "" if each.status in _GOOD else cut(each.text, _TEXT)


def _drifts(drifts: Sequence[Drift]) -> list[tuple[str, ...]]:
    shared = grouped(
        ((d.component, when(d.since), when(d.applied), f"{d.key}: {d.actual} (expected {d.expected})"
          + ("; the spec changed, perhaps not the node" if d.spec_changed else "")), d.host)
        for d in drifts
    )  # fmt: skip
    return [(component, hostlist(hosts), *rest) for (component, *rest), hosts in shared.items()]


def _xid(each: XidTrack) -> tuple[str, ...]:
    events = str(each.events) + (f", and {each.earlier} before" if each.earlier else "")
    last = "-" if each.last is None else each.last.replace("T", " ")[:16]
    return str(each.number), each.host, events, last, "-" if each.mean is None else span(each.mean)


def _hosts(found: Timeline) -> list[tuple[str, ...]]:
    """The rows of the hosts: those with findings first, then those that are unreachable; equal ones share a row."""
    wrong, drifted = found.wrong(), found.drifted()
    lost = {each.host: each for each in found.tracks if each.kind == "host" and each.status in BAD}
    rows = grouped(
        (_host(each, lost.get(each.name), wrong[each.name], drifted[each.name]), each.name) for each in found.hosts
    )

    def rank(names: Sequence[str]) -> int:
        name = names[0]
        findings = wrong[name] + drifted[name] - (name in lost)
        return 0 if findings else 1 if name in lost else 2

    ranked = sorted(rows.items(), key=lambda item: rank(item[1]))
    return [(hostlist(names), *row) for row, names in ranked]


def _host(each: HostTrack, lost: Track | None, wrong: int, drifted: int) -> tuple[str, ...]:
    now: list[str] = []
    if lost is not None:
        now, wrong = [f"{lost.status} since {when(lost.since)}"], wrong - 1
    now += [*([f"{wrong} wrong"] if wrong else []), *([count(drifted, "drifted key")] if drifted else [])]
    applied = "-" if each.applied is None else when(each.applied)
    return f"{when(each.last)} {each.verb}", str(each.results), applied, "; ".join(now) or "as it should be"


def _table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], paint: Painter, most: int = _MOST
) -> list[str]:
    if not rows:
        return []
    more = [f"  and {len(rows) - most} more: --output json"] if len(rows) > most else []
    return [paint("bold", title), *(f"  {line}" for line in columns([head, *rows[:most]])), *more]


def _skipped(skipped: dict[str, str], ahead: int, paint: Painter) -> Iterator[str]:
    if ahead:
        yield f"{paint('yellow', 'skipped')}  {count(ahead, 'result')} from the future: a clock was wrong"
    for name, problem in list(skipped.items())[:_MOST_SKIPPED]:
        yield f"{paint('yellow', 'skipped')}  {cut(name, 80)}: {problem}"
    if len(skipped) > _MOST_SKIPPED:
        yield f"{paint('yellow', 'skipped')}  {count(len(skipped) - _MOST_SKIPPED, 'more file')}: --output json"


def when(seconds: float) -> str:
    """A time to the minute, UTC."""
    return (utc(seconds) or "-").replace("T", " ")[:16]


def span(seconds: float) -> str:
    """``3.5 d``."""
    return next((f"{seconds / size:.1f} {unit}" for size, unit in _UNITS if seconds >= size), f"{seconds:.0f} s")
