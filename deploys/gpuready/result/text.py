"""Text for people: colours that only repeat what a word says, and the one function that makes text safe to print.

Whatever is printed for people goes through :func:`printable`, so a renderer joins texts of nodes as they are. Colours
are marked with a number that no node can know, until they are printed.
"""

import os
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_MARK = f"\x1b{os.urandom(16).hex()}:"
_COLOR = re.compile(rf"{_MARK}[0-9]+;")
_SPECIAL = re.compile(rf"{_MARK}([0-9]+);|[^\n\x20-\x7e]")


class Painter:
    """Gives a word its colour, or leaves it plain."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, style: str, text: str) -> str:
        """``text`` in a style of :data:`_CODES`."""
        return f"{_MARK}{_CODES[style]};{text}{_MARK}0;" if self._color and style and text else text


def printable(text: str) -> str:
    """``text`` for any terminal, once: lines and our colours stay, and what str.isprintable refuses is spelt out."""
    return _SPECIAL.sub(_spelt, text)


def _spelt(match: re.Match[str]) -> str:
    if match[1]:
        return f"\x1b[{match[1]}m"
    if match[0].isprintable():
        return match[0]
    code = ord(match[0])
    if match[0] == "\t":
        return "    "
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """A text that stands within a line: it cannot begin another one."""
    return text.replace("\n", "\\n")


def lines(text: str, indent: str) -> list[str]:
    """A text of several lines, each line after the first set in by ``indent``."""
    first, *rest = [line.rstrip() for line in text.strip().split("\n")]
    return [first, *(indent + line for line in rest if line)]


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, with ``...`` for what is left out."""
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."[: max(width, 0)]


def columns(rows: Sequence[Sequence[str]], align: str = "<") -> list[str]:
    """Rows of cells, coloured or not, as lines: each column is as wide as its widest cell.

    ``align``: ``>`` for figures, which end at the right of their column; the first column is of names.
    """
    widths = [max(len(_COLOR.sub("", cell)) for cell in cells) for cells in zip(*rows, strict=True)]
    aligns = "<" + align * len(widths)
    return ["  ".join(map(_padded, row, widths, aligns)).rstrip() for row in rows]


def _padded(cell: str, width: int, align: str) -> str:
    gap = " " * (width - len(_COLOR.sub("", cell)))
    return gap + cell if align == ">" else cell + gap


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, in the order in which they come."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
