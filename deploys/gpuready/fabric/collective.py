"""The test ``collective``: all-reduce, all-gather, reduce-scatter and all-to-all over all GPUs of all hosts, by size.

The script prints raw times, and checks each result. The bandwidths are those of nccl-tests (doc/PERFORMANCE.md): the
algorithm's is the size divided by the time; the bus's is that times the share of the size that each rank must at least
send or receive, which makes it comparable with the speed of a link. If the job fails, hangs, is slow or has a wrong
result, halves of the hosts are tested side by side until one is named (:mod:`gpuready.fabric.search`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import mean
from typing import Annotated, Any

from gpuready.base.documents import DocumentError, read_json
from gpuready.base.errors import brief
from gpuready.base.host_list import hostlist
from gpuready.base.part import Amount, Count, OneOf, Part
from gpuready.base.words import count
from gpuready.fabric import job
from gpuready.fabric.commands import TESTS
from gpuready.fabric.counters import Moved, Proof
from gpuready.fabric.search import Group, Trial, bound, good, in_order, named, next_round, suspects
from gpuready.fabric.verdict import Answer, Finding, proofs
from gpuready.gpu.stress_figures import Gpu, floor_of_node
from gpuready.model.verify import Thresholds

TEST = TESTS["collective"]
#: The share of the size that each of ``n`` ranks sends, as nccl-tests' doc/PERFORMANCE.md derives it.
SHARES: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
}
_LEAST, _FACTOR, _MOST, _MOST_GLOO = 1 << 20, 4, 16 << 30, 64 << 20
#: What a rank says of its GPU.
_MODEL = re.compile(r"^gpu: (.{1,80})$", re.M)
_DONE = re.compile(r"^done: rank \d+$", re.M)
_EXPLAIN = f"gpuready explain fabric.{TEST.name}"


@dataclass(frozen=True)
class Measured(Part):
    """fabric --tests collective: a collective at one size."""

    collective: Annotated[str, OneOf(tuple(SHARES))]
    """The collective."""
    size: Count
    """The size in bytes, as nccl-tests counts it."""
    ranks: Count
    """The number of ranks."""
    iterations: Count
    """How often it ran."""
    microseconds: Amount
    """The time of one, as the average of all ranks."""

    derived = ("algbw", "busbw")

    @property
    def algbw(self) -> float:
        """The algorithm bandwidth in GB/s."""
        return round(self.size / self.microseconds / 1000, 4)

    @property
    def busbw(self) -> float:
        """The bus bandwidth in GB/s."""
        return round(self.size / self.microseconds / 1000 * SHARES[self.collective](self.ranks), 4)


@dataclass(frozen=True)
class Tried(Part):
    """fabric --tests collective: a test of some hosts, or of some GPUs of one host, in the search for a bad one."""

    round: Count
    """The round, from 1; the tests of a round run side by side."""
    hosts: tuple[str, ...]
    """The hosts."""
    gpus: tuple[int, ...]
    """The GPUs of the host; empty: all."""
    status: Annotated[str, OneOf(("pass", "fail", "unknown"))]
    """Whether they work together."""
    summary: str
    """The reason."""


@dataclass(frozen=True)
class Search(Part):
    """fabric --tests collective: the search for the host that is bad, and its GPU."""

    most_rounds: Count
    """The rounds that are enough."""
    tried: tuple[Tried, ...]
    """The tests, in order."""
    named: tuple[str, ...]
    """The hosts that are bad; empty: the search did not find one."""
    gpus: tuple[int, ...]
    """The GPUs of the first of them that are bad; empty: not a single one, or not known."""
    cleared: tuple[str, ...]
    """The hosts that passed a test with others."""
    summary: str
    """The result in words."""


@dataclass(frozen=True)
class Scope:
    """What a job measures: the collectives, and up to which size in bytes."""

    collectives: tuple[str, ...] = tuple(SHARES)
    most: int = _MOST

    @classmethod
    def with_size(cls, collective: str, size: int) -> "Scope":
        """Return what measures a collective up to this size, which the script rounded down to whole ranks."""
        return cls((collective,), 2 * size)

    def arguments(self, seconds: int, gloo: bool, start: int) -> tuple[str, ...]:
        """Return the arguments of the script. ``seconds``: for each collective; ``start``: to connect all ranks."""
        options: dict[str, object] = {
            "--collectives": ",".join(self.collectives),
            "--least": _LEAST,
            "--most": min(self.most, _MOST_GLOO) if gloo else self.most,
            "--factor": _FACTOR,
            "--seconds": seconds,
            "--connect": start,
            "--timeout": 10 + 2 * seconds,
        }
        return tuple(str(word) for item in options.items() for word in item)


@dataclass(frozen=True)
class Outcome:
    """The result of one job. ``fault``: what a search can look for; ``scope``: with which measurement.

    ``limit``: the least bus bandwidth of an all-reduce in GB/s.
    """

    status: str
    summary: str
    remedy: str = ""
    measured: tuple[Measured, ...] = ()
    limit: float | None = None
    fault: str = ""
    scope: Scope = Scope()

    @property
    def passed(self) -> bool | None:
        """Whether the hosts work together; None: unknown."""
        return True if self.status == "pass" else False if self.fault else None

    def best(self, collective: str) -> Measured | None:
        """Return the figure with the highest bus bandwidth."""
        rows = [each for each in self.measured if each.collective == collective]
        return max(rows, key=lambda each: each.busbw, default=None)


@dataclass(frozen=True)
class _Row:
    """A line that a rank printed."""

    collective: str
    size: int
    rank: int
    iterations: int = 0
    seconds: float = 0.0
    wrong: int = 0
    sources: tuple[int, ...] = ()
    lacking: str = ""


def judged(roles: Sequence[job.Role], answers: Sequence[Answer], limits: Thresholds) -> Outcome:
    """Return the result of one job; what went wrong on one host is the result of all of them."""
    if not roles:
        return Outcome("unknown", "these hosts have no part in the job")
    hosts = [role.end.host for role in roles]
    rows = [row for answer in answers for row in _rows(answer.text)]
    measured = _measured(rows, sum(role.ranks for role in roles))
    if missing := job.by_host(hosts, [answer.missing for answer in answers]):
        return Outcome("skip", missing, f"install {TEST.source}")
    if spoiled := [row for row in rows if row.wrong]:
        first = spoiled[0]
        at = [row for row in spoiled if (row.collective, row.size) == (first.collective, first.size)]
        summary = f"wrong result: {_title(first.collective)} of {size_text(first.size)} on {_ranks(roles, at)}"
        if sources := sorted({rank for row in at for rank in row.sources}):
            summary += f"; the data of {_named_ranks(roles, sources)}"
        scope = Scope.with_size(first.collective, first.size)
        return Outcome("fail", brief(summary, 1000), _EXPLAIN, measured, fault="wrong", scope=scope)
    if lost := job.by_host(hosts, [answer.trouble for answer in answers]):
        return Outcome("unknown", f"the job was ended: {lost}", _EXPLAIN, measured)
    if failed := job.by_host(hosts, [job.complaint(answer) for answer in answers]):
        last = f" after {_title(rows[-1].collective)} of {size_text(rows[-1].size)}" if rows else ""
        scope = Scope(most=min(_MOST, max((row.size for row in rows), default=0) * _FACTOR or _LEAST))
        return Outcome("fail", brief(f"ended{last}: {failed}", 1000), _EXPLAIN, measured, fault="failed",
                       scope=scope)  # fmt: skip
    done = zip(hosts, roles, answers, strict=True)
    if silent := [host for host, role, each in done if len(_DONE.findall(each.text)) != role.ranks]:
        return Outcome("unknown", f"{hostlist(silent)}: not every rank came to its end", _EXPLAIN, measured)
    if not measured:
        return Outcome("unknown", "this backend has none of the collectives", _EXPLAIN)
    return figured(roles, answers, rows, measured, limits)


def figured(
    roles: Sequence[job.Role],
    answers: Sequence[Answer],
    rows: Sequence[_Row],
    measured: tuple[Measured, ...],
    limits: Thresholds,
) -> Outcome:
    """Return the result of a job without a fault: its figures, and whether the all-reduce is fast enough."""
    models = [model for answer in answers for model in _MODEL.findall(answer.text)]
    limit, why = _limit(roles, models, limits)
    found = Outcome("pass", "", measured=measured, limit=limit)
    best = found.best("all_reduce") or measured[0]
    shown = [f"{_title(name)} {top.busbw:.3g}" for name in SHARES if (top := found.best(name))]
    lacking = {_title(row.collective): row.lacking for row in rows if row.lacking}
    text = f"{', '.join(shown)} GB/s ({why}), {count(measured[0].ranks, 'rank')}, {roles[0].network}"
    text += "".join(f"; {name} is not available here: {reason}" for name, reason in lacking.items())
    if limit is not None and best.collective == "all_reduce" and best.busbw < limit:
        scope = Scope.with_size("all_reduce", best.size)
        summary = f"all-reduce {best.busbw:.3g} GB/s, below {limit:.3g}; {text}"
        return replace(found, status="fail", summary=summary, remedy=_EXPLAIN, fault="slow", scope=scope)
    return replace(found, summary=text)


def _limit(roles: Sequence[job.Role], models: Sequence[str], limits: Thresholds) -> tuple[float | None, str]:
    """Return the least bus bandwidth of the all-reduce in GB/s, and where it comes from or why there is none."""
    if len(roles) == 1:
        floor = floor_of_node([Gpu(0, "", "", model, mig=False, capped=False) for model in models], limits.all_reduce)
        return (floor.least, f"limit: {floor.why}") if floor else (None, "no limit for these GPUs of one host")
    if limits.collective is not None:
        return limits.collective, f"verify.thresholds.collective {limits.collective:g}"
    if any(role.end.over_tcp for role in roles):
        return None, "no limit over TCP"
    rails = [role.rails_gbps for role in roles if role.rails_gbps]
    if len(rails) < len(roles):
        return None, "no limit: the line rate of a port is unknown"
    share = limits.write_bw * limits.nccl
    return share * min(rails) / 8, f"limit: {share:.2g} of {min(rails):g} Gbit/s, the ports of a host together"


def counted(role: job.Role, answer: Answer, moved: int) -> list[Proof]:
    """Return the proofs by the counters of the host and by NCCL's log. ``moved``: the bytes of all ports together."""
    least = moved if role.single else 0
    return proofs(role.end, answer, Moved(0, least, 0, least), nccl=not role.command.gloo)


def findings(
    roles: Sequence[job.Role],
    answers: Sequence[Answer],
    found: Outcome,
    search: Search | None,
    prove: Callable[[job.Role, Answer, int], list[Proof]] = counted,
) -> list[Finding]:
    """Return a finding for each host. After a search, a host that passed with others passes."""
    top = found.best("all_reduce")
    value = top.busbw if top else None
    more = {f"{name}_busbw": each.busbw for name in SHARES if (each := found.best(name))}
    reduced = [each for each in found.measured if each.collective == "all_reduce"]
    least = sum(each.size * each.iterations for each in reduced) if len(roles) > 1 else 0
    made = []
    for role, answer in zip(roles, answers, strict=True):
        status, summary, remedy, proof = found.status, found.summary, found.remedy, ""
        if search and role.end.host in search.named:
            summary = f"{search.summary.removeprefix(f'{role.end.host}: ')}; {summary}"  # the line has the name
        elif search and role.end.host in search.cleared:
            status, remedy = ("pass", "") if search.named else ("warn", remedy)
            summary = f"passed with other hosts; {search.summary}"
        elif search:
            summary = f"{summary}; {search.summary}"
        if status == "pass" and not search:
            proved = prove(role, answer, least)
            proof = "; ".join(each.text for each in proved)
            if any(each.proved is False for each in proved):
                status, summary, remedy = "fail", f"{summary}; but not through {role.end.device}", _EXPLAIN
            elif any(each.proved is None for each in proved):
                status, summary = "unknown", f"{summary}; but without proof of the network"
        made.append(
            Finding(TEST.name, role.end, role.end, status, summary, value, found.limit, proof, remedy, more=more)
        )
    return made


# --- who is wrong

_STATUS = {True: "pass", False: "fail", None: "unknown"}
#: Tests groups of hosts side by side: the hosts, and the GPUs of each (empty: all).
Trials = Callable[[Sequence[tuple[Group, tuple[int, ...]]]], list[Outcome]]


def find(hosts: Group, gpus: Mapping[str, int], test: Trials, racks: Mapping[str, str] | None = None) -> Search:
    """Search for the host that is bad, and for its GPU. ``gpus``: their number on each host; 0 without GPUs.

    ``racks``: the rack of each host, or what else spec.maintenance.spread_by names; hosts of a rack stay together.
    """
    tried: list[Tried] = []
    racks = racks or {}
    hosts = in_order(hosts, racks)

    def rounds(trials: list[Trial], groups: Callable[[Group], tuple[Group, tuple[int, ...]]]) -> None:
        for _ in range(bound(len(trials[0].members))):
            members = next_round(trials, racks)
            if not members:
                break
            asked = [groups(each) for each in members]
            number = tried[-1].round + 1 if tried else 1
            for each, (names, cards), found in zip(members, asked, test(asked), strict=True):
                trials.append(Trial(each, found.passed))
                tried.append(Tried(number, names, cards, _STATUS[found.passed], found.summary))

    trials = [Trial(hosts, False)]
    rounds(trials, lambda group: (group, ()))
    bad, cleared = named(trials), tuple(host for host in hosts if host in good(trials))
    cards: Group = ()
    if len(bad) == len(hosts):
        bad = ()
        summary = "every host fails by itself, so look for what they share: PyTorch, the driver, the spec"
    elif bad:
        summary = f"{hostlist(bad)}: the fault is here; {hostlist(cleared) or 'no other host'} passed without"
        if gpus[bad[0]] > 1:
            every = tuple(map(str, range(gpus[bad[0]])))
            (alone,) = test([(bad[:1], tuple(map(int, every)))])
            tried.append(Tried(tried[-1].round + 1, bad[:1], (), _STATUS[alone.passed], alone.summary))
            if alone.passed is False:
                inside = [Trial(every, False)]
                rounds(inside, lambda group: (bad[:1], tuple(map(int, group))))
                cards = named(inside)
                summary += f"; GPU {', '.join(cards)}" if cards else "; not a single GPU of it"
            else:
                summary += "; its GPUs work together without the network: look at its ports and cables"
    elif left := suspects(trials):
        summary = f"the search did not name a host: the fault is among {hostlist(left[0])}, or in what connects them"
    else:
        together = next(each.members for each in reversed(trials) if each.passed is False)
        passed = [each.members for each in trials if each.passed and len(each.members) > 1]
        parts = [each for each in passed if set(each) & set(together)]
        places = [place for each in parts for place in {racks.get(host, "") for host in each}]
        what = "racks" if all(places) and len(set(places)) == len(places) else "parts"
        summary = (
            f"the search did not name a host: {hostlist(together)} fail together; {' and '.join(map(hostlist, parts))} "
            f"pass by themselves, so look at what connects these {what}"
        )
    return Search(bound(len(hosts)), tuple(tried), bad, tuple(map(int, cards)), cleared, summary)


# --- parsing


def size_text(size: int) -> str:
    """Return a size in the largest unit that keeps it readable; whole ranks may have rounded it down a little."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size > 0.99 * (1 << shift):
            return f"{size / (1 << shift):.3g} {unit}"
    return f"{size} B"


def _title(collective: str) -> str:
    return collective.replace("_", "-")


def _rows(text: str) -> list[_Row]:
    """Parse the lines of the ranks of a host; ignore all other lines."""
    found = []
    for line in re.findall(r"^\{.{1,1000}\}$", text, re.M):
        try:
            row: Any = read_json(line)
            numbers = [row["size"], row["rank"], row.get("iterations", 0), row.get("wrong", 0), *row.get("sources", ())]
            seconds = float(row.get("seconds", 0.0))
            lacking = str(row.get("lacking", ""))
            name = row["collective"]
        except (ValueError, TypeError, KeyError, OverflowError, DocumentError, AttributeError):
            continue
        if name in SHARES and all(type(each) is int and 0 <= each < 1 << 50 for each in numbers) and 0 <= seconds < 1e6:
            size, rank, iterations, wrong, *sources = numbers
            found.append(_Row(name, size, rank, iterations, seconds, wrong, tuple(sources), brief(lacking)))
    return found


def _measured(rows: Sequence[_Row], ranks: int) -> tuple[Measured, ...]:
    """Return the figures by collective and size, of which every rank printed its time."""
    times: dict[tuple[str, int, int], dict[int, float]] = {}
    for row in rows:
        if row.iterations and row.seconds and row.size:
            times.setdefault((row.collective, row.size, row.iterations), {})[row.rank] = row.seconds
    return tuple(
        Measured(name, size, ranks, iterations, time)
        for (name, size, iterations), found in times.items()
        if len(found) == ranks and (time := round(mean(found.values()) / iterations * 1e6, 3))
    )


def _ranks(roles: Sequence[job.Role], rows: Sequence[_Row]) -> str:
    return _named_ranks(roles, sorted({row.rank for row in rows}))


def _named_ranks(roles: Sequence[job.Role], ranks: Sequence[int]) -> str:
    """Return ``ranks 0, 1 (n1)``."""
    ends = list(accumulate(role.ranks for role in roles))
    hosts = dict.fromkeys(roles[next((i for i, end in enumerate(ends) if rank < end), -1)].end.host for rank in ranks)
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} ({hostlist(hosts)})"
