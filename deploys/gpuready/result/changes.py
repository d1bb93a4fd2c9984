"""What changed between two runs, of their result documents: hosts, outcomes, components, checks and values.

Only hosts and findings that both runs judged are compared; what one of them has not is named as such.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.result import blocks
from gpuready.result.blocks import host_word
from gpuready.result.cases import Changed, Seen, differing
from gpuready.result.facts import KEYS, NodeFacts
from gpuready.result.mask import mask_text
from gpuready.result.model import HostResult, Run
from gpuready.result.page import page
from gpuready.result.text import Painter, grouped

SCHEMA = "gpuready/changes/1"
#: The kinds of changes that are shown, in this order, before those of the verb's part. ``summary`` is not: a check says
#: something else, with the same status.
_TITLES = {
    "outcome": "outcomes",
    "component": "components",
    "value": "values of differences",
    "check": "checks",
    "fact": "facts",
}
_GOOD = ("pass", "ok", "as wanted", "changed", "does not apply", "NATIVE", "MINOR", "FORWARD")
_BAD = ("fail", "unknown", "FAILED", "UNREACHABLE", "NOT ATTEMPTED", "CHECKS FAILED", "CHECKS UNKNOWN", "failed",
        "blocked", "differs", "UNKNOWN")  # fmt: skip


@dataclass
class Changes:
    """Two runs, compared; ``hosts`` has those with a change only."""

    before: Run
    after: Run
    codes: tuple[int, int]
    appeared: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    hosts: dict[str, list[Changed]] = field(default_factory=dict)


def changes(before: tuple[Run, int], after: tuple[Run, int]) -> Changes:
    """Compare two runs, each with its exit code."""
    (old, old_code), (new, new_code) = before, after
    mine = {host.name: host for host in old.everyone}
    yours = {host.name: host for host in new.everyone}
    found = Changes(old, new, (old_code, new_code))
    found.appeared = [name for name in yours if name not in mine]
    found.vanished = [name for name in mine if name not in yours]
    for name, host in yours.items():
        if name in mine and (of_host := list(_of_host(old, mine[name], new, host))):
            found.hosts[name] = of_host
    return found


def _of_host(old: Run, mine: HostResult, new: Run, yours: HostResult) -> Iterator[Changed]:
    if (a := host_word(old, mine)) != (b := host_word(new, yours)):
        yield Changed("outcome", "outcome", a, b, str(yours.error or yours.reason))
    if mine.facts is not None and yours.facts is not None:
        yield from differing("fact", _facts(mine.facts), _facts(yours.facts))
    if mine.components and yours.components:  # else one of the runs did not look, which is no change
        yield from differing("component", _components(old, mine), _components(new, yours))
        yield from differing("value", _values(mine), _values(yours))
    if mine.checks and yours.checks:
        yield from differing("check", _checks(mine), _checks(yours))
    yield from new.part.changes(mine, yours)


def _facts(facts: NodeFacts) -> Seen:
    return {key: (facts.texts[key], "") for key in KEYS}


def _components(run: Run, host: HostResult) -> Seen:
    found: Seen = {}
    for item in host.components:
        fine = "as wanted" if item.applies else "does not apply"
        word = blocks.status_text(run, host, item) or fine
        found[item.name] = (word, str(item.error or ""))
    return found


def _values(host: HostResult) -> Seen:
    """The keys that differed from the spec, with both values."""
    return {each.key: (f"{each.actual} (expected {each.expected})", "") for item in host.components
            for each in blocks.keys(item)}  # fmt: skip


def _checks(host: HostResult) -> Seen:
    return {check.id: (check.status, check.summary) for check in host.checks}


def document(found: Changes) -> dict[str, Any]:
    """The comparison as JSON values. Additions only within a version, as in the result document."""
    runs = zip(("before", "after"), (found.before, found.after), found.codes, strict=True)
    return {
        "schema": SCHEMA,
        **{
            name: {"verb": run.verb or None, "ended": run.ended or None, "source": run.source or None,
                   "exit_code": code, "hosts": len(run.hosts)}
            for name, run, code in runs
        },
        "appeared": found.appeared,
        "vanished": found.vanished,
        "hosts": {
            name: [
                {"kind": each.kind, "name": each.name, "before": each.before and mask_text(each.before),
                 "after": each.after and mask_text(each.after), "detail": mask_text(each.detail)}
                for each in changed
            ]
            for name, changed in found.hosts.items()
        },
    }  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One change, as people see it, and the hosts that share it."""

    kind: str
    name: str
    before: str
    after: str
    hosts: list[str]
    detail: str
    style: str


def lines(found: Changes) -> dict[str, list[Line]]:
    """The changes below their titles: what many hosts share is one line, what got worse comes first."""
    shared = grouped((each, name) for name, changed in found.hosts.items() for each in changed)
    shown: dict[str, list[Line]] = {}
    for kind, title in {**_TITLES, **found.after.part.compares}.items():
        mine = sorted((item for item in shared.items() if item[0].kind == kind), key=lambda item: _rank(item[0]))
        if mine:
            shown[title] = [_line(each, names) for each, names in mine]
    return shown


def human(found: Changes, *, color: bool = False) -> str:
    """The comparison for people."""
    paint = Painter(color)
    parts = [[f"{name}: {text}" for name, text in _runs(found)]]
    parts.append([f"{paint('yellow', word)}: {hostlist(names)}" for word, names in _moved(found)])
    parts += [[paint("bold", title), *(_text(each, paint) for each in shown)] for title, shown in lines(found).items()]
    parts += [[_same(found)], [_ending(found)]]
    return page(parts)


def html(found: Changes) -> str:
    """The comparison as one HTML file, for a person who opens it on a Monday."""
    from gpuready.result.html_page import causes, filled

    shown = lines(found)
    worse = any(each.style == "red" for of_kind in shown.values() for each in of_kind)
    changed = bool(found.hosts or found.appeared or found.vanished)
    return filled(
        "report/changes.html.j2",
        verb=found.after.verb or "run",
        verdict=_ending(found),
        tone="b" if worse else "l" if changed else "g",
        runs=_runs(found),
        moved=_moved(found),
        tables=shown,
        tones={"red": "b", "green": "g", "yellow": "l"},
        same=_same(found),
        checks=causes(each.name for each in shown.get(_TITLES["check"], ()) if each.style != "green"),
    )


def _runs(found: Changes) -> list[tuple[str, str]]:
    runs = zip(("before", "after"), (found.before, found.after), found.codes, strict=True)
    return [(name, _run(run, code)) for name, run, code in runs]


def _moved(found: Changes) -> list[tuple[str, list[str]]]:
    moved = (("only in before", found.vanished), ("only in after", found.appeared))
    return [(word, names) for word, names in moved if names]


def _same(found: Changes) -> str:
    said = sum(each.kind == "summary" for changed in found.hosts.values() for each in changed)
    words = f"{count(said, 'check has', 'checks have')} the same status in other words: --output json lists them"
    return words if said else ""


def _run(run: Run, code: int) -> str:
    words = [
        run.verb or "no command",
        f"of {run.shown_source}" if run.source else "",
        f"at {run.ended}" if run.ended else "",
    ]
    return f"{' '.join(filter(None, words))}, {count(len(run.hosts), 'host')}, exit {code}"


def _rank(each: Changed) -> int:
    return 0 if _worse(each) else 2 if each.after in _GOOD else 1


def _worse(each: Changed) -> bool:
    return each.worse or each.after in _BAD or bool(each.after and "FAILED" in each.after)


def _line(each: Changed, names: list[str]) -> Line:
    absent = "as wanted" if each.kind == "value" else "(not judged)"
    before, after = (absent if value is None else value for value in (each.before, each.after))
    style = "red" if _worse(each) else "green" if after in _GOOD else "yellow"
    detail = "" if after in _GOOD else each.detail
    return Line(each.kind, each.name, mask_text(before), mask_text(after), names, mask_text(detail), style)


def _text(line: Line, paint: Painter) -> str:
    what = "" if line.kind == "outcome" else f"{line.name}: "
    shown = f"  {what}{line.before} -> {paint(line.style, line.after)} on {hostlist(line.hosts)}"
    return f"{shown}: {line.detail}" if line.detail else shown


def _ending(found: Changes) -> str:
    moved = {*found.appeared, *found.hosts}
    same = sum(host.name not in moved for host in found.after.hosts)
    if not (found.hosts or found.appeared or found.vanished):
        return f"no change on {count(same, 'host')}"
    return f"{count(len(found.hosts), 'host')} changed, {len(found.vanished)} only in before, " \
        f"{len(found.appeared)} only in after, {same} unchanged"  # fmt: skip
