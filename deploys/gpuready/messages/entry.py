"""One message, and the form of the tables that hold them."""

from typing import NamedTuple


class Message(NamedTuple):
    """A message that people paste.

    ``title``: the message, short; unique in the table. ``pattern``: a regular expression for text in lower case whose
    white space is single blanks and which has no backslashes (:func:`gpuready.messages.find.normal`). It has no
    alternatives outside of parentheses, and gaps are bounded. An empty pattern is matched by ``code`` alone.
    ``source``: where it was posted or is documented: owner/repo#number, or a page. ``checks``: ids of the checks that
    judge the cause. ``code``: also found by this code, such as ``cuda 804``; several have ``, `` between them.
    ``general``: a wrapper of other messages, shown only if none of those is found. ``also``: patterns of other texts
    with the same cause and fix.
    """

    title: str
    pattern: str
    source: str
    checks: tuple[str, ...]
    cause: str
    fix: str
    code: str = ""
    general: bool = False
    also: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes."""
        return tuple(filter(None, self.code.split(", ")))

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns."""
        return (self.pattern, *self.also)


def read(table: str, **shared: str) -> tuple[Message, ...]:
    """Return the messages of a table, which has the form that ``gpuready explain`` prints.

    Each is a title, and below it the fields of :class:`Message`: two blanks, the name, and from column 11 on the text,
    which may go on in the next line. ``also`` may be repeated. ``general`` has no text. ``shared``: texts by the word
    that stands for them.
    """
    found: list[tuple[str, dict[str, list[str]]]] = []
    name = ""
    for row in table.strip().splitlines():
        if not row.startswith(" "):
            found.append((row, {}))
            continue
        name = row[:10].strip() or name
        found[-1][1].setdefault(name, []).append(row[10:])
    return tuple(_message(title, rows, shared) for title, rows in found)


def _message(title: str, rows: dict[str, list[str]], shared: dict[str, str]) -> Message:
    also, general = tuple(rows.pop("also", ())), rows.pop("general", None) is not None
    texts = {name: " ".join(parts) for name, parts in rows.items()}
    checks = tuple(texts.pop("checks", "").split())
    texts = {name: shared.get(text, text) for name, text in texts.items()}
    return Message(title, checks=checks, general=general, also=also, **texts)
