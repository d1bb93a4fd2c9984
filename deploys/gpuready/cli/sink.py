"""The only way out: stdout and stderr of a run, through which no raw control character passes.

Results, progress, logs and tracebacks may quote a node anywhere. None of their writers cleans its text: the streams do.
Stderr is masked, too. Stdout is not, because it carries JSON, whose renderer masks value by value.
"""

import contextlib
import os
import select
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from gpuready.base.errors import OutputError
from gpuready.result.text import printable


class Sink:
    """Stands for a standard stream; ``stream`` is the stream itself, for who draws with control sequences.

    Without ``masks`` it is stdout: if it cannot be written, the result is lost, and that is an :class:`OutputError`.
    """

    def __init__(self, stream: TextIO, *, masks: bool) -> None:
        self.stream, self._masks = stream, masks

    def write(self, text: str) -> int:
        """Print it, with what the stream cannot encode spelt out, too."""
        try:
            return self._write(text)
        except BrokenPipeError:
            raise
        except OSError as e:
            if self._masks:
                raise
            raise OutputError(f"the result was not written to stdout: {e.strerror or e}") from None

    def _write(self, text: str) -> int:
        given = len(text)
        if self._masks:
            from gpuready.result.mask import mask_text  # its patterns take time to compile, and help needs none

            text = mask_text(text)
        safe = printable(text)
        encoding = self.stream.encoding or "utf-8"
        data = safe.encode(encoding, "backslashreplace")
        self.stream.flush()
        try:
            number = self.stream.fileno()
        except (OSError, ValueError):  # a stream of a test, without a file
            self.stream.write(data.decode(encoding))
        else:
            _write_all(number, data)
        return given

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


def say(text: str, *, err: bool = False) -> None:
    """Text for people, with a newline, on stdout or stderr."""
    complain(f"{text}\n") if err else write_stdout(f"{text}\n")


def complain(text: str) -> None:
    """Text on stderr; one that is gone is no error."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def write_stdout(text: str) -> None:
    """A reader that has seen enough (``| head``) is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
    except (OutputError, KeyboardInterrupt):
        _abandon_stdout()
        raise


def _abandon_stdout() -> None:
    """Python flushes once more at its end; let that go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
