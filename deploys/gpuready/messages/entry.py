"""One message, and the files that hold all of them: data/*.toml."""

from pathlib import Path
from typing import Any, NamedTuple

from gpuready.base.documents import toml_values

DATA = Path(__file__).parent / "data"
_CALL = "run the program with CUDA_LAUNCH_BLOCKING=1 to see which call fails"
#: Beginnings of a fix that several messages share.
ADVICE = {
    "failing-call": _CALL,
    "failing-kernel": f"{_CALL}; an Xid 13, 31 or 43 in dmesg belongs to it",
    "nccl-last-error": "also paste the line after 'Last error:'; if this is still the answer, gpuready does not know "
    "that line: run all ranks with NCCL_DEBUG=WARN, and pass the first WARN line of each rank to gpuready explain",
}


class Message(NamedTuple):
    """A message that people paste.

    ``title``: the message, short; unique in the table. ``pattern``: a regular expression for text in lower case whose
    white space is single blanks and which has no backslashes (:func:`gpuready.messages.find.normal`). It has no
    alternatives outside of parentheses, and gaps are bounded. An empty pattern is matched by ``codes`` alone.
    ``likely``: the message does not prove its cause, so ``cause`` lists the known ones, and it may be another; in the
    files, such a cause stands under ``likely``, any other under ``cause``. ``source``: where it was posted or is
    documented: owner/repo#number, or a page. ``checks``: ids of the checks that judge the cause. ``codes``: also found
    by these codes, such as ``cuda 804``. ``general``: a wrapper of other messages, shown only if none of those is
    found. ``also``: patterns of other texts with the same cause and fix.
    In the files, ``advice`` names a text of :data:`ADVICE`; the fix begins with it.

    A *speaker* has the same fields. Its ``title`` names a program and its ``pattern`` finds a line of that program, of
    which :mod:`gpuready.messages.speakers` asks that it looks like an error. Its ``cause`` says who prints such
    lines and what is mostly behind them, and its ``fix`` what to look at next, both true for each error of the program.
    ``general``: the pattern is a form of log that several programs share.
    """

    title: str
    pattern: str
    source: str
    checks: tuple[str, ...]
    cause: str
    fix: str
    codes: tuple[str, ...] = ()
    general: bool = False
    also: tuple[str, ...] = ()
    likely: bool = False

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns."""
        return (self.pattern, *self.also)


def load(kind: str = "message") -> tuple[Message, ...]:
    """Return the messages or speakers of all files. An unknown field is a TypeError, a missing one a KeyError.

    An entry has either ``cause`` or ``likely``; ValueError for both or none.
    """
    files = [toml_values(path.read_text("utf-8")) for path in sorted(DATA.glob("*.toml"))]
    return tuple(_message(row) for rows in files for row in rows.get(kind, ()))


def _message(row: dict[str, Any]) -> Message:
    shared = row.pop("advice", "")
    fixes = [ADVICE[shared], row.get("fix", "")] if shared else [row["fix"]]
    lists = {name: tuple(row.get(name, ())) for name in ("checks", "codes", "also")}
    likely = "likely" in row
    (cause,) = (row.pop(name) for name in ("cause", "likely") if name in row)
    texts = {"cause": cause, "fix": "; ".join(filter(None, fixes))}
    told = {name: " ".join(text.split()) for name, text in texts.items()}
    return Message(**{"pattern": "", **row, **lists, **told, "likely": likely})
