"""The only way out: stdout and stderr of a run, through which no raw control character passes.

Results, progress, logs and tracebacks may quote a node anywhere. None of their writers cleans its text: the streams do.
Stderr is masked, too. Stdout is not, because it carries JSON, whose renderer masks value by value.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from gpuready.report.mask import mask_text
from gpuready.report.text import printable


class Sink:
    """Stands for a standard stream; ``stream`` is the stream itself, for who draws with control sequences."""

    def __init__(self, stream: TextIO, *, masks: bool) -> None:
        self.stream, self._masks = stream, masks

    def write(self, text: str) -> int:
        """Print it, with what the stream cannot encode spelt out, too."""
        safe = printable(mask_text(text) if self._masks else text)
        encoding = self.stream.encoding or "utf-8"
        data = safe.encode(encoding, "backslashreplace")
        self.stream.flush()
        try:
            number = self.stream.fileno()
        except (OSError, ValueError):  # a stream of a test, without a file
            self.stream.write(data.decode(encoding))
        else:
            _write_all(number, data)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # who wants bytes would go past us
            raise AttributeError(name)
        return getattr(self.stream, name)


def _write_all(number: int, data: bytes) -> None:
    """All of it, by hand: Python's buffered writer loses the rest when a signal comes between two parts."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(number, left) :]
        except BlockingIOError:
            select.select((), (number,), ())


@contextlib.contextmanager
def sinks() -> Iterator[None]:
    """Both standard streams are sinks meanwhile."""
    before = sys.stdout, sys.stderr
    sys.stdout = Sink(sys.stdout, masks=False)
    sys.stderr = Sink(sys.stderr, masks=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
