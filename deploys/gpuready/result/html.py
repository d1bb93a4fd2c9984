"""The result as one HTML file: no network, readable without JavaScript, made of the result document alone.

Every text may be a node's, so nothing is trusted: Jinja2 escapes each value, control characters are spelt out where a
value enters the page, links lead only into the page, and a Content-Security-Policy allows our own style and script by
their hashes and nothing else. What hosts share is written once, so that 500 hosts fit a few megabytes.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuready.result import blocks
from gpuready.result.ending import ending
from gpuready.result.exitcode import meaning
from gpuready.result.facts import HEAD, NodeFacts
from gpuready.result.html_page import asset, causes, filled
from gpuready.result.model import CheckResult, ComponentResult, HostResult, Run
from gpuready.result.text import Painter, grouped, one_line

Verdicts = dict[CheckResult, blocks.Names]
_PLAIN = Painter(False)
#: Up to so many hosts each has a row in the fleet; of more, hosts with the same row share it.
_MOST_ROWS = 50
_SLOWEST = 10
#: Tones, the worst first.
_WORST = ("b", "l", "g")


@dataclass(frozen=True)
class Mark:
    """A status: a symbol, its meaning, and a tone (g good, b bad, l look, or nothing)."""

    symbol: str
    word: str
    tone: str = ""


_CHECKS = {
    "pass": Mark("✓", "pass", "g"),
    "fail": Mark("✗", "fail", "b"),
    "unknown": Mark("?", "unknown", "l"),
    "warn": Mark("!", "warning", "l"),
    "skip": Mark("–", "skipped"),
}
_COMPONENTS = {
    "would change": Mark("Δ", "would change", "l"),
    "differs": Mark("Δ", "differs", "b"),
    "changed": Mark("+", "changed", "g"),
    "partly changed, the rest is pending": Mark("…", "pending", "l"),
    "pending": Mark("…", "pending", "l"),
    "failed": Mark("✗", "failed", "b"),
    "blocked": Mark("✗", "blocked", "b"),
    "not changed": Mark("✗", "not changed", "b"),
    "not attempted": Mark("·", "not attempted", "l"),
    "interrupted, run plan again": Mark("·", "interrupted", "l"),
}
_TONES = {"red": "b", "green": "g", "yellow": "l"}


@dataclass(frozen=True)
class Pointer:
    """A component or a check of a host that has something to see, and where the page shows it.

    Hosts share a row if they have the same pointers, even if the evidence of each is another.
    """

    name: str
    mark: Mark
    anchor: str = field(compare=False)


@dataclass
class Row:
    """Hosts with one row in the fleet. ``anchor``: their section."""

    names: list[str]
    outcome: Mark
    pointers: tuple[Pointer, ...]
    facts: NodeFacts | None
    anchor: str


@dataclass
class ComponentCard:
    """A component on a host; ``shared`` numbers the block of the differences that it shares with other hosts."""

    name: str
    mark: Mark
    item: ComponentResult
    keys: tuple[blocks.KeyDiff, ...]
    shared: int = 0


@dataclass
class CheckCard:
    """A check on a host; ``shared`` as that of :class:`ComponentCard`. ``caused``: what else fails because of it."""

    mark: Mark
    check: CheckResult
    caused: list[str]
    shared: int = 0


@dataclass
class Section:
    """The part of the page for hosts whose results differ only in their timings."""

    host: HostResult
    outcome: Mark
    counts: str
    parts: list[ComponentCard]
    idle: dict[str, list[str]]
    checks: list[CheckCard]
    passed: list[CheckResult]
    skipped: dict[str, list[str]]
    names: list[str] = field(default_factory=list)
    anchor: str = ""


def html(run: Run, code: int) -> str:
    """The page, ending in a newline. ``run`` is of a document (:mod:`gpuready.result.document`), so it is masked."""
    diffs, verdicts = blocks.diff_blocks(run), blocks.verdict_blocks(run)
    errors = blocks.error_blocks(run)
    sections = _sections(run, diffs, verdicts)
    anchors = {name: section.anchor for section in sections for name in section.names}
    rows = _rows(run, anchors, diffs, verdicts, errors)
    return filled(
        "report/page.html.j2",
        asset("filter.js"),
        run=run,
        code=code,
        error=run.error,
        meaning=meaning(code, run.verb),
        tone="g" if code in (0, 2) else "l" if code == 7 else "b",
        verdict=ending(run, code, _PLAIN),
        outcomes=_outcomes(sections),
        rows=rows,
        columns=HEAD if any(row.facts for row in rows) else (),
        diffs=diffs,
        classes=blocks.CLASSES,
        changing=run.verb != "verify" and run.part.of_spec,
        verdicts=verdicts,
        effects=blocks.effects(run),
        marks=_CHECKS,
        errors=errors,
        checks=causes(check.id for host in run.hosts for check in blocks.worth_reading(run, host)),
        before=blocks.consequence_lines(run, _PLAIN),
        notes=blocks.note_blocks(run),
        skips=blocks.skipped_lines(run, _PLAIN),
        texts=[text for text in ("\n".join(map(one_line, block)) for block in run.part.blocks(run, _PLAIN)) if text],
        picture=_picture(run),
        title=run.part.title,
        sections=sections,
        brief=len(sections) > _MOST_ROWS,
        slowest=sorted(run.hosts, key=lambda host: -host.seconds)[:_SLOWEST],
    )


def _outcome(run: Run, host: HostResult) -> Mark:
    differs = run.verb == "verify" and host.outcome == "would_change"
    tone = "b" if differs else _TONES[blocks.host_style(run, host)]
    return Mark({"g": "✓", "b": "✗"}.get(tone, "Δ" if host.outcome == "would_change" else "…"),
                blocks.host_word(run, host), tone)  # fmt: skip


def _outcomes(sections: Sequence[Section]) -> dict[str, tuple[int, str]]:
    """How many hosts have each outcome, the worst first, and the anchor of the first of them."""
    numbers = Counter[str]()
    for section in sections:
        numbers[section.outcome.word] += len(section.names)
    first = {section.outcome.word: section.anchor for section in reversed(sections)}
    return {word: (number, first[word]) for word, number in numbers.items()}


def _rows(
    run: Run,
    anchors: Mapping[str, str],
    diffs: Sequence[blocks.DiffBlock],
    verdicts: Verdicts,
    errors: Mapping[tuple[str, str, str], blocks.Names],
) -> list[Row]:
    """The rows of the fleet, the worst first."""
    of_diff = {(each.component, each.status_text, each.keys): f"d{number}" for number, each in enumerate(diffs, 1)}
    of_check = {check: f"v{number}" for number, check in enumerate(verdicts, 1)}
    of_error = {name: f"e{number}" for number, names in enumerate(errors.values(), 1) for name in names}
    found: dict[object, Row] = {}
    alone = len(run.everyone) <= _MOST_ROWS
    for host in sorted(run.everyone, key=functools.partial(_rank, run)):
        seen = [
            Pointer(item.name, _mark(run, host, item), of_diff[same])
            for item in host.components
            if (same := blocks.diff_key(run, host, item)) in of_diff
        ]
        seen += [Pointer(check.id, _CHECKS[check.status], of_check[check])
                 for check in blocks.worth_reading(run, host) if check in of_check]  # fmt: skip
        if host.error is not None and host.name in of_error:
            seen.append(Pointer("error", Mark("✗", host.error.kind, "b"), of_error[host.name]))
        pointers = tuple(sorted(seen, key=lambda each: _WORST.index(each.mark.tone)))
        outcome = _outcome(run, host)
        key: object = host.name if alone else (outcome, pointers, host.facts and host.facts.cells)
        row = Row([], outcome, pointers, host.facts, anchors[host.name])
        found.setdefault(key, row).names.append(host.name)
    return list(found.values())


def _rank(run: Run, host: HostResult) -> tuple[int, bool, int]:
    """The worst hosts first: by tone, then those without a result, then by how many checks fail."""
    failing = sum(check.status == "fail" for check in host.checks)
    return _WORST.index(_outcome(run, host).tone), host.error is None, -failing


def _mark(run: Run, host: HostResult, item: ComponentResult) -> Mark:
    return _COMPONENTS[blocks.status_text(run, host, item)]


def _sections(run: Run, diffs: list[blocks.DiffBlock], verdicts: Verdicts) -> list[Section]:
    """The worst first; hosts that are alike share one."""
    shared_diffs = {(b.component, b.status_text, b.keys): i for i, b in enumerate(diffs, 1) if len(b.hosts) > 1}
    shared = {key: i for i, (key, hosts) in enumerate(verdicts.items(), 1) if len(hosts) > 1}
    found: dict[object, Section] = {}
    for host in sorted(run.everyone, key=functools.partial(_rank, run)):
        parts, idle = [], dict[str, list[str]]()
        for item in host.components:
            key = blocks.diff_key(run, host, item)
            if key is not None:
                parts.append(ComponentCard(item.name, _mark(run, host, item), item, key[2], shared_diffs.get(key, 0)))
            else:
                why = "" if item.applies else item.reason or "does not apply"
                idle.setdefault(why, []).append(item.name)
        like = (host.outcome, host.reason, tuple(host.notes), host.error, host.reboot, repr(host.components),
                tuple(host.checks), host.facts and host.facts.cells, run.part.distinct(host))  # fmt: skip
        if like not in found:
            caused = blocks.caused(run, host)
            cards = [CheckCard(_CHECKS[check.status], check, caused.get(check, []), shared.get(check, 0))
                     for check in blocks.worth_reading(run, host)]  # fmt: skip
            cards.sort(key=lambda each: blocks.SHOWN.index(each.check.status))
            skipped = grouped((check.summary, check.id) for check in host.checks if check.status == "skip")
            passed = [check for check in host.checks if check.status == "pass"]
            found[like] = Section(host, _outcome(run, host), blocks.host_counts(run, host), parts, idle, cards, passed,
                                  skipped)  # fmt: skip
        found[like].names.append(host.name)
    for number, section in enumerate(found.values(), 1):
        section.anchor = f"h{number}"
    return list(found.values())


def _picture(run: Run) -> Any:
    """The picture, of elements that were built and escaped by the XML library."""
    if not (picture := run.part.picture(run)):
        return ""
    from markupsafe import Markup

    return Markup(picture.partition("\n")[2].replace("<svg ", '<svg role="img" aria-labelledby="fabric" ', 1))
