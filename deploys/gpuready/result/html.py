"""The result as one HTML file: no network, readable without JavaScript, made of the result document alone.

Every text may be a node's, so nothing is trusted: Jinja2 escapes each value, control characters are spelt out where a
value enters the page, links lead only into the page, and a Content-Security-Policy allows our own style and script by
their hashes and nothing else. What hosts share is written once, so that 500 hosts fit a few megabytes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpuready.base.host_list import hostlist
from gpuready.result import blocks
from gpuready.result.ending import ending, host_counts, host_style, host_word
from gpuready.result.exitcode import meaning
from gpuready.result.human import CLASSES, consequence_lines, skipped_lines
from gpuready.result.model import CheckResult, ComponentResult, HostResult, Run
from gpuready.result.text import Painter, count, grouped, one_line, printable

if TYPE_CHECKING:
    import jinja2

Verdicts = dict[CheckResult, blocks.Names]
_PLAIN = Painter(False)
#: Up to so many hosts each has a row in the matrix; of more, hosts with the same row share it.
_MOST_ROWS = 50
_SLOWEST = 20


@dataclass(frozen=True)
class Mark:
    """A status in the matrix: a symbol, its meaning, and a tone (g good, b bad, l look, or nothing)."""

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
    "": Mark("✓", "as wanted", "g"),
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
_CAUSED = Mark("↳", "because of another check", "l")
_NOT_HERE = Mark("–", "does not apply")
_NOTHING = Mark(" ", "not judged")
_TONES = {"red": "b", "green": "g", "yellow": "l"}


@dataclass
class Row:
    """Hosts with one row of the matrix."""

    names: list[str]
    outcome: Mark
    cells: tuple[Mark, ...]
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
    sections = _sections(run, diffs, verdicts)
    columns, left_out = _columns(run)
    rows = _rows(run, columns, {name: s.anchor for s in sections for name in s.names})
    slowest = sorted(run.hosts, key=lambda host: -host.seconds)
    return filled(
        "report/page.html.j2",
        _asset("filter.js"),
        run=run,
        code=code,
        error=run.error,
        meaning=meaning(code, run.verb),
        tone="g" if code in (0, 2) else "l" if code == 7 else "b",
        verdict=ending(run, code, _PLAIN),
        outcomes=Counter(host_word(run, host) for host in run.everyone),
        columns=columns,
        left_out=left_out,
        rows=rows,
        legend=dict.fromkeys(mark for row in rows for mark in row.cells if mark != _NOTHING),
        diffs=diffs,
        classes=CLASSES,
        changing=run.verb != "verify" and run.part.of_spec,
        verdicts=verdicts,
        effects=blocks.effects(run),
        marks=_CHECKS,
        errors=blocks.error_blocks(run),
        before=consequence_lines(run, _PLAIN),
        notes=blocks.note_blocks(run),
        skips=skipped_lines(run, _PLAIN),
        texts=[text for text in ("\n".join(map(one_line, block)) for block in run.part.blocks(run, _PLAIN)) if text],
        picture=_picture(run),
        title=run.part.title,
        sections=sections,
        brief=len(sections) > _MOST_ROWS,
        slowest=slowest,
        first=_SLOWEST if len(slowest) > _MOST_ROWS else len(slowest),
        longest=max((host.seconds for host in run.hosts), default=0.0) or 1.0,
    )


def filled(template: str, script: str = "", **values: Any) -> str:
    """A page with our style and this script, and a policy that allows nothing else. ``values`` are escaped."""
    style = _asset("style.css")
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"
    return _templates().get_template(template).render(**values, style=style, script=script, policy=policy)


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    from gpuready.base.resources import root

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root()),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"hostlist": hostlist, "count": count}
    return environment


@functools.cache
def _asset(name: str) -> Any:
    from markupsafe import Markup

    from gpuready.base.resources import root

    return Markup((root() / "report" / name).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _outcome(run: Run, host: HostResult) -> Mark:
    differs = run.verb == "verify" and host.outcome == "would_change"
    tone = "b" if differs else _TONES[host_style(run, host)]
    return Mark({"g": "✓", "b": "✗"}.get(tone, "Δ" if host.outcome == "would_change" else "…"),
                host_word(run, host), tone)  # fmt: skip


def _columns(run: Run) -> tuple[list[str], str]:
    """Components and checks with something to see, and what is left out, in words."""
    parts = list(dict.fromkeys(item.name for host in run.hosts for item in host.components))
    busy = {item.name for host in run.hosts for item in host.components if blocks.status_text(run, host, item)}
    checks = list(dict.fromkeys(check.id for host in run.hosts for check in host.checks))
    seen = {check.id for host in run.hosts for check in host.checks if check.status in blocks.SHOWN}
    shown = [name for name in parts if name in busy]
    kept = [id for id in checks if id in seen and id.removesuffix(".config") not in shown]
    hidden = [
        count(number, word)
        for number, word in ((len(parts) - len(shown), "component"), (len(checks) - len(seen), "check"))
        if number
    ]
    return [*shown, *kept], " and ".join(hidden)


def _rows(run: Run, columns: list[str], anchors: dict[str, str]) -> list[Row]:
    found: dict[object, Row] = {}
    alone = len(run.everyone) <= _MOST_ROWS
    for host in run.everyone:
        marks = {item.name: _mark(run, host, item) for item in host.components}
        marks |= {
            check.id: _CAUSED if blocks.cause(run, host, check) else _CHECKS[check.status] for check in host.checks
        }
        outcome, cells = _outcome(run, host), tuple(marks.get(name, _NOTHING) for name in columns)
        key = host.name if alone else (outcome, cells)
        found.setdefault(key, Row([], outcome, cells, anchors[host.name])).names.append(host.name)
    return list(found.values())


def _mark(run: Run, host: HostResult, item: ComponentResult) -> Mark:
    if not item.applies and item.error is None:
        return _NOT_HERE
    return _COMPONENTS[blocks.status_text(run, host, item)]


def _sections(run: Run, diffs: list[blocks.DiffBlock], verdicts: Verdicts) -> list[Section]:
    """In the order of the hosts; hosts that are alike share one."""
    shared_diffs = {(b.component, b.status_text, b.keys): i for i, b in enumerate(diffs, 1) if len(b.hosts) > 1}
    shared = {key: i for i, (key, hosts) in enumerate(verdicts.items(), 1) if len(hosts) > 1}
    found: dict[object, Section] = {}
    for host in run.everyone:
        parts, idle = [], dict[str, list[str]]()
        for item in host.components:
            key = blocks.diff_key(run, host, item)
            if key is not None:
                parts.append(ComponentCard(item.name, _mark(run, host, item), item, key[2], shared_diffs.get(key, 0)))
            else:
                why = "" if item.applies else item.reason or "does not apply"
                idle.setdefault(why, []).append(item.name)
        like = (host.outcome, host.reason, tuple(host.notes), host.error, host.reboot, repr(host.components),
                tuple(host.checks), run.part.distinct(host))  # fmt: skip
        if like not in found:
            caused = blocks.caused(run, host)
            cards = [CheckCard(_CHECKS[check.status], check, caused.get(check, []), shared.get(check, 0))
                     for check in blocks.worth_reading(run, host)]  # fmt: skip
            cards.sort(key=lambda each: blocks.SHOWN.index(each.check.status))
            skipped = grouped((check.summary, check.id) for check in host.checks if check.status == "skip")
            passed = [check for check in host.checks if check.status == "pass"]
            found[like] = Section(host, _outcome(run, host), host_counts(run, host), parts, idle, cards, passed,
                                  skipped, anchor=f"h{len(found) + 1}")  # fmt: skip
        found[like].names.append(host.name)
    return list(found.values())


def _picture(run: Run) -> Any:
    """The picture, of elements that were built and escaped by the XML library."""
    if not (picture := run.part.picture(run)):
        return ""
    from markupsafe import Markup

    return Markup(picture.partition("\n")[2].replace("<svg ", '<svg role="img" aria-labelledby="fabric" ', 1))
