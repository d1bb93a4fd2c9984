"""Words on a terminal: colours that only repeat what a word says, and nothing that a node could smuggle in."""

from __future__ import annotations

import json
import re

from gpuready.components.base import Value
from gpuready.report.mask import mask_text, mask_value
from gpuready.state.model import Unknown

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST = 400


class Painter:
    """Gives a word its colour, or leaves it plain."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, style: str, text: str) -> str:
        """``text`` in a style of :data:`_CODES`."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._color and style and text else text


def clean(text: str) -> str:
    """Masked, and safe for any terminal: control, bidi and undecodable characters are spelt out."""
    return _UNPRINTABLE.sub(_spelt, mask_text(text)).replace("\t", "    ")


def _spelt(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def lines(text: str, indent: str) -> list[str]:
    """A text of several lines, cleaned, each line after the first set in by ``indent``."""
    first, *rest = [clean(line.rstrip()) for line in text.strip().split("\n")] or [""]
    return [first, *(indent + line for line in rest if line)]


def shown(key: str, value: Value) -> str:
    """A value of a diff as one short phrase."""
    if value is None:
        return "(absent)"
    if isinstance(value, Unknown):
        return f"(unknown: {clean(value.unknown)})"
    value = mask_value(key, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(str, value)) or "(none)"
    else:
        text = str(value) if value != "" else '""'
    text = json.dumps(text, ensure_ascii=False) if text != text.strip() or "\n" in text else text
    text = clean(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def count(number: int, one: str, many: str = "") -> str:
    """``1 host``, ``2 hosts``."""
    return f"{number} {one if number == 1 else many or one + 's'}"
