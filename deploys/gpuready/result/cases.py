"""What reports for CI and comparisons consist of: cases of JUnit, annotations, and what changed between two runs.

A verb's part may add some of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Case:
    """One case. ``kind``: empty if it passed; a ``message`` is a warning then. ``text``: the details of what is wrong.

    ``output``: what is shown anyway.
    ``type``: that of what is wrong, if it is another word than ``kind``.
    """

    classname: str
    name: str
    kind: Literal["", "failure", "error", "skipped"] = ""
    message: str = ""
    text: str = ""
    output: str = ""
    seconds: float = 0.0
    type: str = ""


@dataclass(frozen=True)
class Suite:
    """Some cases, and the time that they took."""

    name: str
    seconds: float
    cases: Sequence[Case]


class Judged(Protocol):
    """A check's verdict, or a test's."""

    @property
    def status(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def remedy(self) -> str: ...


def case_of(classname: str, name: str, each: Judged, *, counted: bool, output: str = "", seconds: float = 0.0) -> Case:
    """Return the case of a verdict. ``counted``: the exit code counts it."""
    if counted:
        kind: Literal["failure", "error"] = "failure" if each.status == "fail" else "error"
        text = f"{each.summary}\n{each.remedy}".strip()
        return Case(classname, name, kind, each.summary, text, output, seconds)
    if each.status in ("pass", "warn"):
        warning = each.summary if each.status == "warn" else ""
        return Case(classname, name, message=warning, output=output, seconds=seconds)
    prefix = "" if each.status == "skip" else f"{each.status}: "
    return Case(classname, name, "skipped", prefix + each.summary, "", output, seconds)


@dataclass(frozen=True)
class Note:
    """One annotation. ``level``: error (the exit code counts it), warning or notice. ``line``: 0 without a place."""

    level: str
    title: str
    text: str
    hosts: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Changed:
    """One thing on one host. None: the run does not have it. ``detail``: what a check says now, in words.

    ``worse``: it got worse, whatever its words are.
    """

    kind: str
    name: str
    before: str | None
    after: str | None
    detail: str = ""
    worse: bool = False


#: By name: what a run saw, and a detail in words.
Seen = dict[str, tuple[str, str]]


def differing(kind: str, before: Seen, after: Seen) -> Iterator[Changed]:
    """What two runs that both looked saw differently."""
    for name in dict.fromkeys((*before, *after)):
        a_value, a_detail = before.get(name, (None, ""))
        b_value, b_detail = after.get(name, (None, ""))
        if a_value != b_value:
            yield Changed(kind, name, a_value, b_value, b_detail)
        elif kind == "check" and a_detail != b_detail:
            yield Changed("summary", name, a_detail, b_detail)
