"""One message of the table."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A message that people paste.

    ``title``: the message, short; unique in the table. ``pattern``: a regular expression for text in lower case whose
    white space is single blanks and which has no backslashes (:func:`gpuready.messages.find.normal`). It has no
    alternatives outside of parentheses, and gaps are bounded. An empty pattern is matched by ``code`` alone.
    ``source``: where it was posted or is documented: owner/repo#number, or a page. ``checks``: ids of the checks that
    judge the cause. ``code``: also found by this code, such as ``cuda 804``. ``general``: a wrapper of other messages,
    shown only if none of those is found. ``also``: patterns of other texts with the same cause and fix.
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
    def patterns(self) -> tuple[str, ...]:
        """All patterns."""
        return (self.pattern, *self.also)
