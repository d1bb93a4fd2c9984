"""Annotations for CI servers: GitHub's workflow commands, and GitLab's Code Quality report.

Both take what the report for people shows, the worst first, and no more than their readers show. Sources: GitHub,
"Workflow commands" (escapes as in actions/toolkit, 10 errors and 10 warnings a step); GitLab, "Code Quality report
format".
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuready.base.host_list import hostlist
from gpuready.result import blocks
from gpuready.result.cases import Note
from gpuready.result.exitcode import counts
from gpuready.result.mask import mask_text
from gpuready.result.model import Run
from gpuready.result.text import grouped, printable

#: GitHub shows so many of a kind for a step.
_MOST_OF_A_KIND = 10
#: A report of GitLab's merge request is for people, too.
_MOST = 1000
_LONGEST = 2000
_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>[1-9][0-9]{0,6}): ")
_SEVERITIES = {"error": "critical", "warning": "minor", "notice": "info"}


def notes(run: Run) -> list[Note]:
    """All of a run, errors first."""
    return _ordered(run, _of_hosts(run))


def _ordered(run: Run, of_hosts: Iterable[Note]) -> list[Note]:
    order = list(_SEVERITIES)
    return sorted((*_of_run(run), *of_hosts, *run.part.notes(run)), key=lambda note: order.index(note.level))


def github(run: Run) -> str:
    """``::error file=hosts.yaml,line=3,title=spec::...``, a line each; nothing for a run without findings."""
    lines: list[str] = []
    found = notes(run)
    for level in _SEVERITIES:
        mine = [note for note in found if note.level == level]
        shown = mine if len(mine) <= _MOST_OF_A_KIND else mine[: _MOST_OF_A_KIND - 1]
        lines += map(_command, shown)
        if left := len(mine) - len(shown):
            lines.append(_command(Note(level, "gpuready", f"{left} more of this kind: --output html:PATH shows all")))
    return "".join(f"{line}\n" for line in lines)


def gitlab(run: Run) -> str:
    """A JSON array: one entry for each finding and host, with a fingerprint that stays when only figures change.

    Each host has its own text, not that of the first host with the same finding.
    """
    entries: dict[str, dict[str, object]] = {}
    alone = (note for host in run.hosts for note in _of_hosts(replace(run, hosts=[host])))
    found = [(note, host) for note in _ordered(run, alone) for host in note.hosts or ("",)]
    if left := len(found[_MOST:]):
        found[_MOST:] = [(Note("notice", "gpuready", f"{left} more findings: --output html:PATH shows all"), "")]
    for note, host in found:
        where = note.file or _first(run.source or "")
        name = "\0".join((note.title, host, note.file, note.text if not host else ""))
        fingerprint = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        text = f"{host}: {note.text}" if host else note.text
        entries.setdefault(fingerprint, {
            "description": _clean(text.replace("\n", "; ")),
            "check_name": _clean(note.title),
            "fingerprint": fingerprint,
            "severity": _SEVERITIES[note.level],
            "location": {"path": _relative(where), "lines": {"begin": note.line or 1}},
        })  # fmt: skip
    return json.dumps(list(entries.values()), indent=1) + "\n"


def _of_run(run: Run) -> Iterator[Note]:
    if error := run.error:
        fix = f"\nfix: {error.remedy}" if error.remedy else ""
        lines = error.message.split("\n")
        if error.kind in ("spec", "inventory") and all(map(_PLACE.match, lines)):
            for line in lines:
                place = _PLACE.match(line)
                assert place is not None
                yield Note("error", error.kind, line[place.end() :] + fix, (), place["file"], int(place["line"]))
        else:
            yield Note("error", error.kind, error.message + fix)


def _of_hosts(run: Run) -> Iterator[Note]:
    for (outcome, message, remedy), hosts in blocks.error_blocks(run).items():
        yield Note("error", outcome, _with_fix(message, remedy), tuple(hosts))
    for diff in blocks.diff_blocks(run):
        lines = [f"{diff.status_text}: {', '.join(each.key for each in diff.keys)}".rstrip(": ")]
        lines += [_with_fix(_of(hosts, diff.hosts) + text, fix) for (text, fix), hosts in diff.errors.items()]
        level = "notice"
        if diff.errors or diff.status_text in ("differs", "not changed", "not attempted"):
            level = "error"
        elif "pending" in diff.status_text or diff.status_text.startswith("interrupted"):
            level = "warning"
        yield Note(level, diff.component, "\n".join(lines), tuple(diff.hosts))
    failing = {(check.id, host.name) for host in run.hosts for check in host.checks if counts(run.verb, host, check)}
    effects = blocks.effects(run)
    for check, hosts in blocks.verdict_blocks(run).items():
        caused = grouped(
            (text, name) for texts, names in effects.get(check, {}).items() for text in texts for name in names
        )
        lines = [f"{_of(names, hosts)}causes {each}" for each, names in caused.items()]
        text = "\n".join([f"{check.status}: {check.summary}", *lines])
        level = "error" if any((check.id, name) in failing for name in hosts) else "warning"
        yield Note(level, check.id, _with_fix(text, check.remedy), tuple(hosts))


def _of(some: Sequence[str], hosts: Sequence[str]) -> str:
    """Whose text follows; empty if it is that of all hosts of the note."""
    return "" if set(some) == set(hosts) else f"{hostlist(some)}: "


def _with_fix(text: str, remedy: str) -> str:
    return f"{text}\nfix: {remedy}" if remedy else text


def _command(note: Note) -> str:
    text = f"{hostlist(note.hosts)}: {note.text}" if note.hosts else note.text
    place = {"file": note.file, "line": str(note.line)} if note.line else {}
    properties = {**place, "title": f"gpuready {note.title}".replace("gpuready gpuready", "gpuready")}
    told = ",".join(f"{name}={_property(_clean(value))}" for name, value in properties.items())
    return f"::{note.level} {told}::{_data(_clean(text))}"


def _clean(text: str) -> str:
    text = printable(mask_text(text))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _first(sources: str) -> str:
    return sources.partition(", ")[0] or "gpuready"


def _relative(path: str) -> str:
    """GitLab wants a path within the repository, without ``./``."""
    return _clean(path).removeprefix("./").lstrip("/") or "gpuready"
