"""What a script prints when a test runs it without a controller: no exec's nonce follows its markers."""

from __future__ import annotations


def records(text: str) -> list[str]:
    """The lines after ``begin``, up to ``end COUNT``, as operations/transport.py hands them on."""
    lines = [line.rstrip(" ") if line.startswith(("begin", "end ")) else line for line in text.splitlines()]
    return lines[lines.index("begin") + 1 :]
