"""/etc/nccl.conf as NCCL reads it, which is stricter than it looks; gpuready's lines in it; and what jobs get of all.

NCCL splits a line at the first ``=``. ``#`` starts a comment only as the first character. NCCL trims nothing: quotes,
``export`` and a carriage return become part of the name or value. Of several lines for one variable, the first one
counts. The environment takes precedence over the file. So gpuready's lines come first, between two comments, and the
user's lines below stay as they are.
Source: NCCL's src/misc/param.cc.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

CONF = "/etc/nccl.conf"
_BEGIN = "# gpuready: these lines are its own. NCCL takes the first line of a variable, so they come first."
_END = "# gpuready: end"
_LONGEST = 1023
QUOTES = ("'", '"')
_SET = re.compile(r"\b((?:TORCH_)?NCCL_[A-Z0-9_]+)=[\"']?([^\s\"';]*)")
_COMMENT = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True)
class Line:
    """One assignment. ``number``: its line, from 1."""

    number: int
    name: str
    value: str


@dataclass(frozen=True)
class Problem:
    """What is wrong with a line. ``harmless``: NCCL ignores the line."""

    number: int
    what: str
    harmless: bool = False

    def __str__(self) -> str:
        return f"line {self.number}: {self.what}"


def assignments(text: str) -> tuple[Line, ...]:
    """Return all assignments, as NCCL splits them."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.append(Line(number, name, value))
    return tuple(found)


def effective(text: str) -> dict[str, str]:
    """Return the values that NCCL uses: the first line of each variable."""
    found: dict[str, str] = {}
    for line in assignments(text):
        found.setdefault(line.name, line.value)
    return found


def for_all(state: NodeState) -> Iterator[tuple[str, str, str]]:
    """Yield file, name and value of each variable that a file sets for all users; what comes last takes precedence."""
    yield from ((CONF, name, value) for name, value in effective(state.text(CONF)).items())
    for line in state.nccl:
        file, _, text = line.partition(":")
        yield from ((file, name, value) for name, value in _SET.findall(_COMMENT.split(text)[0]))


def of_jobs(spec: NodeSpec, state: NodeState) -> dict[str, str]:
    """Return the variables of this node's jobs: the spec's, and those that files set for all users."""
    return {name: value for _, name, value in for_all(state)} | spec.nccl.extra


def problems(text: str) -> tuple[Problem, ...]:
    """Return the lines that do not mean what they seem to mean."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            found += [Problem(number, what, harmless) for what, harmless in _wrong(line)]
    return tuple(found)


def _wrong(line: str) -> list[tuple[str, bool]]:
    name, equals, value = line.partition("=")
    if not equals:
        return [("not an assignment: NCCL ignores it", True)]
    bare = value.removesuffix("\r")
    inner = bare.strip()
    told = {
        _name_is_wrong(name): True,
        "the carriage return at its end is part of the value": bare != value,
        "blanks around the value are part of it": bare != inner,
        "quotes are part of the value": inner[:1] in QUOTES or inner[-1:] in QUOTES,
        "a comment after the value is part of it": bool(re.search(r"\s#", bare)),
        f"NCCL cuts values after {_LONGEST} bytes": len(value.encode("utf-8", "surrogateescape")) > _LONGEST,
    }
    return [(what, False) for what, holds in told.items() if what and holds]


def _name_is_wrong(name: str) -> str:
    if name.lstrip().startswith("#"):
        return "# starts a comment only as the first character"
    if name.startswith("export") and name.split() != [name]:
        return f"export is part of the name: NCCL sets {name!r}"
    return f"NCCL sets a variable named {name!r}" if name.split() != [name] else ""


def ours(text: str) -> dict[str, str]:
    """Return gpuready's lines as name -> value."""
    span = _span(text)
    return {} if span is None else effective("\n".join(text.split("\n")[slice(*span)]))


def theirs(text: str) -> tuple[Line, ...]:
    span = _span(text)
    return tuple(line for line in assignments(text) if span is None or line.number - 1 not in range(*span))


def with_ours(text: str, variables: Mapping[str, str]) -> str:
    """Return the file with ``variables`` as gpuready's lines, or without such lines if there are none."""
    lines, span = text.split("\n"), _span(text)
    rest = text if span is None else "\n".join(lines[: span[0]] + lines[span[1] :])
    own = "".join(f"{name}={value}\n" for name, value in variables.items())
    return f"{_BEGIN}\n{own}{_END}\n{rest}" if variables else rest


def _span(text: str) -> tuple[int, int] | None:
    """Return the range of gpuready's lines with its two comments, as indexes; None if one of them is missing."""
    lines = text.split("\n")
    if _BEGIN not in lines or _END not in lines[lines.index(_BEGIN) :]:
        return None
    begin = lines.index(_BEGIN)
    return begin, lines.index(_END, begin) + 1
