"""How each host and each check came to be as it is: the results of a place, folded in the order of time. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuready.contract.node_record import seconds
from gpuready.verbs.history.digest import UNREACHABLE, Seen
from gpuready.verbs.history.index import Result

#: So many changes of status within the period are flapping.
FLAPPING = 3
#: What is not as it should be. A warning is shown by the check itself, and alarms nobody.
BAD = ("fail", "unknown", "differs", "pending", "blocked", UNREACHABLE)
#: A result that ended later than this many seconds from now has a wrong clock.
_AHEAD = 3600


@dataclass
class Track:
    """One check or component of one host, or whether it is reachable (kind ``host``).

    ``text``: why it was last not good. ``spans``: each status and since when, the oldest first; the first one may have
    begun before the first result. ``results``, ``bad``: within the period, how many results looked, and were bad.
    """

    host: str
    kind: str
    name: str
    spans: list[tuple[float, str]] = field(default_factory=list)
    text: str = ""
    results: int = 0
    bad: int = 0

    @property
    def status(self) -> str:
        return self.spans[-1][1]

    @property
    def since(self) -> float:
        """When the present status was first seen."""
        return self.spans[-1][0]

    @property
    def always(self) -> bool:
        """It was so in the first result already, so that it may be older."""
        return len(self.spans) == 1

    def changes(self, start: float) -> int:
        """How often the status changed since ``start``."""
        return sum(at >= start for at, _ in self.spans[1:])

    def times_bad(self, start: float) -> int:
        """How often it turned from good to bad since ``start``, or was bad at the start."""
        return sum(
            status in BAD and (number == 0 or self.spans[number - 1][1] not in BAD)
            for number, (_, status) in enumerate(self.spans)
            if number + 1 == len(self.spans) or self.spans[number + 1][0] > start
        )


@dataclass(frozen=True)
class Drift:
    """A difference that appeared after an apply had left the component as its spec wants it.

    ``spec_changed``: the spec is another one since, so that the node may be as it was; None: not known.
    """

    host: str
    component: str
    key: str
    actual: str
    expected: str
    since: float
    applied: float
    spec_changed: bool | None


@dataclass
class XidTrack:
    """The Xids of one number on a host. ``earlier``: those before the period, or in the first result.

    ``events``: those after the first result, within the period. ``last``: when the last one was, if that is known.
    ``mean``: seconds of the period for each of these events; None: there are none.
    """

    host: str
    number: int
    devices: tuple[str, ...]
    events: int
    earlier: int
    last: str | None
    mean: float | None


@dataclass
class HostTrack:
    """One host: its last result, its last apply that left it as the spec wants it, and when each was."""

    name: str
    first: float
    last: float
    verb: str
    results: int = 0
    applied: float | None = None


@dataclass
class Timeline:
    """All results of a period that ends with the last one. ``runs``: how many there are of each verb."""

    start: float
    end: float
    runs: Counter[str]
    ahead: int
    hosts: list[HostTrack]
    tracks: list[Track]
    drifts: list[Drift]
    xids: list[XidTrack]

    def wrong(self) -> Counter[str]:
        """By host: how many tracks are bad now."""
        return Counter(each.host for each in self.tracks if each.status in BAD)

    def drifted(self) -> Counter[str]:
        """By host: how many keys drifted."""
        return Counter(each.host for each in self.drifts)


class _Host:
    """What is known of a host so far."""

    def __init__(self, name: str, at: float, verb: str) -> None:
        self.track = HostTrack(name, at, at, verb)
        self.tracks: dict[str, Track] = {}
        self.current: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.counted: dict[str, dict[str, str]] = {}
        self.previous: Seen | None = None
        self.spec = ""
        self.applied: dict[str, tuple[float, str]] = {}
        self.open: dict[str, dict[str, tuple[float, str, str]]] = {}
        self.latest: dict[str, tuple[str, int, int | None]] = {}
        self.xids: dict[int, _Xid] = {}

    def take(self, at: float, verb: str, seen: Seen, start: float) -> None:
        self.track.last, self.track.verb = at, verb
        if seen is not self.previous:
            self._changed(at, seen, start)
        for name in seen.converged:
            self.applied[name] = (at, seen.spec)
            self.track.applied = at
        if at >= start:
            self.track.results += 1
            self.counts[seen.key] += 1
            self.counted[seen.key] = seen.statuses
        self.previous = seen

    def _changed(self, at: float, seen: Seen, start: float) -> None:
        self.spec = seen.spec or self.spec
        if not seen.statuses.items() <= self.current.items():
            for subject, status in seen.statuses.items():
                if self.current.get(subject) != status:
                    kind, _, name = subject.partition(" ")
                    track = self.tracks.setdefault(subject, Track(self.track.name, kind, name or "reachable"))
                    track.spans.append((at, status))
            self.current |= seen.statuses
        for subject, text in seen.texts.items():
            self.tracks[subject].text = text
        for name in seen.removed:
            self.applied.pop(name, None)
            self.open.pop(name, None)
        for name, found in seen.differences.items():
            before = self.open.get(name, {})
            self.open[name] = {key: (before.get(key, (at,))[0], *values) for key, values in found.items()}
        for number, device, count, last, time in seen.events:
            self.xids.setdefault(number, _Xid()).take(
                seen.boot, device, count, last, time, at, start, self.previous is None
            )

    def drifts(self) -> Iterator[Drift]:
        for name, found in self.open.items():
            if name in self.applied:
                applied, spec = self.applied[name]
                changed = spec != self.spec if spec and self.spec else None
                for key, (since, actual, expected) in found.items():
                    yield Drift(self.track.name, name, key, actual, expected, since, applied, changed)

    def finish(self) -> None:
        """Count the results of each track."""
        for key, number in self.counts.items():
            for subject, status in self.counted[key].items():
                self.tracks[subject].results += number
                self.tracks[subject].bad += number * (status in BAD)


class _Xid:
    """The Xids of one number: of each boot and GPU, how many were seen, and when the last one was."""

    def __init__(self) -> None:
        self.counted: dict[tuple[str, str], tuple[int, int]] = {}
        self.devices: dict[str, None] = {}
        self.events = self.earlier = 0
        self.last: str | None = None

    def take(
        self,
        boot: str,
        device: str,
        count: int,
        last: int | None,
        time: str | None,
        at: float,
        start: float,
        first: bool,
    ) -> None:
        """The same events stand in every result of a boot: only what is more, or later, is new."""
        before, then = self.counted.get((boot, device), (0, -1))
        new = max(count - before, 0)
        if last is not None and last > then:
            new = max(new, 1)  # a log that was cut counts less
        self.counted[boot, device] = (count, then if last is None else max(last, then))
        self.devices.setdefault(device)
        if not new:
            return
        self.last = max(filter(None, (self.last, time)), default=None)
        if first or at < start:
            self.earlier += new
        else:
            self.events += new


def fold(results: Iterator[Result], period: float | None, now: float) -> Timeline:
    """``period``: the seconds before ``now`` in which is counted; None: from the first result on."""
    start, begun, end, ahead = (now - period if period else 0.0), 0.0, 0.0, 0
    runs: Counter[str] = Counter()
    hosts: dict[str, _Host] = {}
    for result in results:
        at = seconds(result.ended)
        if at > now + _AHEAD:
            ahead += 1
            continue
        begun, end = begun or at, at
        runs[result.verb] += at >= start
        for name, seen in result.hosts.items():
            if name not in hosts:
                hosts[name] = _Host(name, at, result.verb)
            hosts[name].take(at, result.verb, seen, start)
    start = max(start, begun)
    for host in hosts.values():
        host.finish()
    return Timeline(
        start, end, +runs, ahead,
        [host.track for host in hosts.values()],
        [track for host in hosts.values() for track in host.tracks.values()],
        [drift for host in hosts.values() for drift in host.drifts()],
        [xid for host in hosts.values() for xid in _xids(host, start)],
    )  # fmt: skip


def _xids(host: _Host, start: float) -> Iterator[XidTrack]:
    seen = host.track.last - max(start, host.track.first)
    for number, found in sorted(host.xids.items()):
        mean = seen / found.events if found.events else None
        yield XidTrack(host.track.name, number, tuple(found.devices), found.events, found.earlier, found.last, mean)
