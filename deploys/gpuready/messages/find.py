"""Find the messages of the table inside a pasted text.

A paste has timestamps, prefixes, quotes, escapes and line breaks, so it is brought to one form first. Every pattern has
a part that is plain text. A pattern is compiled only if the paste contains that part: a search needs a few milliseconds
and takes time in proportion to the text.
"""

import functools
import re
from dataclasses import dataclass

from gpuready.messages import codes, find_codes
from gpuready.messages.entry import Message, load

TABLE = load()
"""All messages. Those of codes that need no entry of their own are made by :mod:`gpuready.messages.codes`."""

MOST = 1 << 20
"""The longest text that is searched, in characters."""

ALIKE = 0.2
"""The least share of common parts, from 0 to 1, with which a message is called near. Foreign texts have 0.1 to 0.2."""

_MOST_CHARACTERS, _MOST_LINES = 4000, 50
_ANSI = re.compile(r"\x1b\[[0-9;]*[a-zA-Z]")
_QUOTED = re.compile(r"(?m)^[ \t]*[>|\u2502]+[ \t]?")
#: Where dcgmi goes on with a text in the next row of its table.
_CELL = re.compile(r" {1,2}\|[ \t]{0,9}\n[ \t]{0,9}\|[ ]{1,60}\| ")
_ESCAPES = re.compile(r"\\+(?:[ntr](?=[^a-z]|nvidia|exec)|#012)?|#012")
_QUOTES = str.maketrans("\u201c\u201d\u201e\u2018\u2019\u201a`\u00a0", "\"\"\"'''' ")
#: A pattern is taken apart from the inside. First its sets go, because a set may contain parentheses.
#: Then groups go, the innermost first. \0 marks their place.
_SET = re.compile(r"\[[^\]]{0,80}\]")
_GROUP = re.compile(r"\([^()]{0,2000}\)")
#: What is left beside plain text: these marks, classes, anchors, and whatever may repeat or be left out.
_SYNTAX = re.compile(r"(?:\0|\\[a-zA-Z]|[.^$])(?:[?*+]|\{[^}]{0,9}\})?|.(?:[?*+]|\{[^}]{0,9}\})")
#: Escaped characters are plain text; while a pattern is split they are hidden from the syntax.
_ESCAPED = re.compile(r"\\([^a-zA-Z])")
_HIDDEN = 0xE000
_SHOWN = {_HIDDEN + code: code for code in range(128)}


@dataclass(frozen=True)
class Found:
    """A message in a text: from where to where in the normal form, and how much of the pattern is plain text.

    A number or name of an error weighs nothing: the text of the component that printed it tells more.
    """

    message: Message
    start: int
    end: int
    weight: int


def normal(text: str, *, joined: bool = False) -> str:
    """Return ``text`` in the form that patterns are written for. ``joined``: line breaks may be within words."""
    text = _ANSI.sub("", text[:MOST])
    text = _QUOTED.sub("", _CELL.sub("", text) if joined else text).translate(_QUOTES)
    text = "".join(line.strip() for line in text.split("\n")) if joined else text
    return " ".join(_ESCAPES.sub(lambda match: " " if len(match[0].strip("\\")) else "", text).lower().split())


def find(text: str) -> tuple[Message, ...]:
    """Return the messages in ``text``, in their order there; of several for one place, the most specific."""
    seen = _found(normal(text))
    if "\n" in text.strip() and all(found.message.general for found in seen):
        joined = _found(normal(text, joined=True))
        seen = joined if not seen or any(not found.message.general for found in joined) else seen
    if any(not found.message.general for found in seen):
        seen = [found for found in seen if not found.message.general]
    if any(found.message.cause not in codes.VAGUE for found in seen):
        seen = [found for found in seen if found.message.cause not in codes.VAGUE]
    kept: list[Found] = []
    for found in sorted(seen, key=lambda found: (-found.weight, found.start, -found.end)):
        if not any(found.start < other.end and other.start < found.end for other in kept):
            kept.append(found)
    return tuple(dict.fromkeys(found.message for found in sorted(kept, key=lambda found: found.start)))


def head(text: str) -> str:
    """Return the part of ``text`` that :func:`nearest` compares: its first lines."""
    return "\n".join(text.strip()[:_MOST_CHARACTERS].split("\n")[:_MOST_LINES])


def nearest(text: str, most: int = 3) -> tuple[Message, ...]:
    """Return the messages that share the most three-letter parts with a line of :func:`head`; none without likeness."""
    lines = {_parts(normal(line)) for line in head(text).split("\n")}
    likeness = {item: max(_likeness(title, line) for line in lines) for item, title in _titles().items()}
    ranked = sorted(TABLE, key=lambda item: -likeness[item])
    return tuple(item for item in ranked[:most] if likeness[item] >= ALIKE)


def plain(pattern: str) -> tuple[str, int]:
    """Return the longest part of a pattern that is plain text, and the length of all such parts."""
    left = _SET.sub("\0", _ESCAPED.sub(lambda match: chr(_HIDDEN + ord(match[1])), pattern))
    while (outer := _GROUP.sub("\0", left)) != left:
        left = outer
    parts = _SYNTAX.split(left)
    return max(parts, key=len).translate(_SHOWN), sum(map(len, parts))


@functools.cache
def _plain() -> tuple[tuple[Message, str, str, int], ...]:
    return tuple((item, pattern, *plain(pattern)) for item in TABLE for pattern in item.patterns)


@functools.cache
def _titles() -> dict[Message, frozenset[str]]:
    return {item: _parts(normal(item.title)) for item in TABLE}


def _found(text: str) -> list[Found]:
    seen = [
        Found(item, match.start(), match.end(), weight)
        for item, pattern, part, weight in _plain()
        if part in text and (match := re.search(pattern, text))
    ]
    named = {code: item for item in TABLE for code in item.codes}
    for code, start, end in find_codes.find(text):
        seen.append(Found(named.get(code) or codes.message(code), start, end, 0))
    return seen


def _parts(text: str) -> frozenset[str]:
    return frozenset(text[at : at + 3] for at in range(len(text) - 2))


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)
