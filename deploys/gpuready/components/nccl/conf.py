"""/etc/nccl.conf as NCCL itself reads it, which is stricter than it looks; and gpuready's own lines in it.

A line is split at its first ``=``; ``#`` begins a comment only as the first character; nothing is trimmed, quotes and
``export`` mean nothing, a carriage return is part of the value. Of several lines for one variable the first counts,
and what is in the environment already counts more. So gpuready's lines stand first, between two comments, and what the
user wrote below stays as it is. Source: NCCL's src/misc/param.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

CONF = "/etc/nccl.conf"
_BEGIN = "# gpuready: these lines are its own. NCCL takes the first line of a variable, so they come first."
_END = "# gpuready: end"
_LONGEST = 1023
QUOTES = ("'", '"')


@dataclass(frozen=True)
class Line:
    """One assignment; ``number`` counts from 1."""

    number: int
    name: str
    value: str


@dataclass(frozen=True)
class Problem:
    """What is wrong with a line. ``harmless``: NCCL passes over it."""

    number: int
    what: str
    harmless: bool = False

    def __str__(self) -> str:
        return f"line {self.number}: {self.what}"


def assignments(text: str) -> tuple[Line, ...]:
    """All assignments, as NCCL splits them."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.append(Line(number, name, value))
    return tuple(found)


def effective(text: str) -> dict[str, str]:
    """What NCCL takes from the file: of each variable the first line."""
    found: dict[str, str] = {}
    for line in assignments(text):
        found.setdefault(line.name, line.value)
    return found


def problems(text: str) -> tuple[Problem, ...]:
    """Lines that do not do what they look like."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            found += [Problem(number, what, harmless) for what, harmless in _wrong(line)]
    return tuple(found)


def _wrong(line: str) -> list[tuple[str, bool]]:
    name, equals, value = line.partition("=")
    if not equals:
        return [("no assignment: NCCL passes over it", True)]
    bare = value.removesuffix("\r")
    inner = bare.strip()
    told = {
        _name_is_wrong(name): True,
        "it ends in a carriage return, which is part of the value": bare != value,
        "a blank at an end of the value is part of it": bare != inner,
        "quotes are part of the value": inner[:1] in QUOTES or inner[-1:] in QUOTES,
        "there is no comment behind a value: it is part of it": bool(re.search(r"\s#", bare)),
        f"a value ends after {_LONGEST} bytes": len(value.encode("utf-8", "surrogateescape")) > _LONGEST,
    }
    return [(what, False) for what, holds in told.items() if what and holds]


def _name_is_wrong(name: str) -> str:
    if name.lstrip().startswith("#"):
        return "a comment begins with # as the first character"
    if name.startswith("export") and name.split() != [name]:
        return f"export is part of the name: NCCL sets {name!r}"
    return f"NCCL sets a variable named {name!r}" if name.split() != [name] else ""


def ours(text: str) -> dict[str, str]:
    """gpuready's own lines."""
    span = _span(text)
    return {} if span is None else effective("\n".join(text.split("\n")[slice(*span)]))


def theirs(text: str) -> tuple[Line, ...]:
    """The user's assignments."""
    span = _span(text)
    return tuple(line for line in assignments(text) if span is None or line.number - 1 not in range(*span))


def with_ours(text: str, variables: Mapping[str, str]) -> str:
    """The file with gpuready's lines replaced by ``variables``, or without them when there are none."""
    lines, span = text.split("\n"), _span(text)
    rest = text if span is None else "\n".join(lines[: span[0]] + lines[span[1] :])
    own = "".join(f"{name}={value}\n" for name, value in variables.items())
    return f"{_BEGIN}\n{own}{_END}\n{rest}" if variables else rest


def _span(text: str) -> tuple[int, int] | None:
    """From our first comment to behind our last, as indexes of lines; None without both of them."""
    lines = text.split("\n")
    if _BEGIN not in lines or _END not in lines[lines.index(_BEGIN) :]:
        return None
    begin = lines.index(_BEGIN)
    return begin, lines.index(_END, begin) + 1
