"""Progress on stderr: on a terminal one live line per host, elsewhere one line per change and a heartbeat.

The engine reports from its greenlets; the clock that redraws and beats is a greenlet, too, so there are no threads.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from gpuready.core.host_list import hostlist
from gpuready.report.mask import mask_text
from gpuready.report.run import OUTCOMES
from gpuready.report.text import one_line, printable

if TYPE_CHECKING:
    from rich.live import Live

HEARTBEAT = 30.0
_MOST_LINES = 20
_WORDS = {"would_change": "differs", "not_attempted": "not attempted"}


class Reporter(Protocol):
    """Takes the engine's reports; ``tick`` comes a few times a second."""

    def report(self, host: str, what: str) -> None: ...

    def tick(self) -> None: ...


class Plain:
    """For logs: one line when the step of a host changes, and a heartbeat for long steps."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._began = clock()
        self._now: dict[str, tuple[str, float]] = {}
        self._told = self._began

    def report(self, host: str, what: str) -> None:
        """One line, if the step is a new one."""
        now = self._clock()
        if self._now.get(host, ("", 0.0))[0] != what:
            self._now[host] = (what, now)
            self._line(now, f"{host}  {_WORDS.get(what, what)}")

    def tick(self) -> None:
        """Every :data:`HEARTBEAT` seconds a line for each step that has lasted that long."""
        now = self._clock()
        if now - self._told < HEARTBEAT:
            return
        busy: dict[str, list[str]] = {}
        longest: dict[str, float] = {}
        for host, (what, since) in self._now.items():
            if what not in OUTCOMES and now - since >= HEARTBEAT:
                busy.setdefault(what, []).append(host)
                longest[what] = max(longest.get(what, 0.0), now - since)
        for what, hosts in busy.items():
            self._line(now, f"{hostlist(hosts)}  still {what}, for {longest[what]:.0f} s")

    def _line(self, now: float, text: str) -> None:
        self._told = now
        self._write(f"[{now - self._began:6.1f} s] {one_line(text)}\n")


class Terminal:
    """One line per busy host, the longest step first. Hosts that do not fit are counted."""

    def __init__(self, live: Live, names: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._live, self._clock = live, clock
        self._now = {name: ("waiting", clock()) for name in names}

    def report(self, host: str, what: str) -> None:
        """Remember it; the next tick shows it."""
        if self._now.get(host, ("", 0.0))[0] != what:
            self._now[host] = (what, self._clock())

    def tick(self) -> None:
        """Redraw."""
        from rich.text import Text

        self._live.update(Text(printable(mask_text("\n".join(map(one_line, self.lines()))))), refresh=True)

    def lines(self) -> list[str]:
        """What the screen shows now."""
        now = self._clock()
        busy = sorted((since, host, what) for host, (what, since) in self._now.items() if what not in OUTCOMES)
        width = max((len(host) for _, host, _ in busy[:_MOST_LINES]), default=0)
        shown = [f"{host:<{width}}  {what}  {now - since:.0f} s" for since, host, what in busy[:_MOST_LINES]]
        rest = Counter(what for _, _, what in busy[_MOST_LINES:])
        done = Counter(_WORDS.get(what, what) for what, _ in self._now.values() if what in OUTCOMES)
        summed = [f"{number} more {what}" for what, number in rest.items()]
        summed += [f"{number} {what}" for what, number in done.items()]
        return [*shown, *([", ".join(summed)] if summed else [])]


@contextlib.contextmanager
def reporting(names: Sequence[str], color: str) -> Iterator[Callable[[str, str], None]]:
    """The engine's progress callback, for as long as the run lasts. Import the engine before."""
    with contextlib.ExitStack() as stack:
        live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        reporter: Reporter = _terminal(names, color, stack) if live else Plain(_write)
        stack.enter_context(_ticking(reporter))
        yield reporter.report


def _terminal(names: Sequence[str], color: str, stack: contextlib.ExitStack) -> Reporter:
    from rich.console import Console
    from rich.live import Live

    # It draws with control sequences, on the stream below the sink; what it draws is made printable first.
    console = Console(file=getattr(sys.stderr, "stream", sys.stderr), no_color=color == "never", highlight=False)
    stack.callback(console.show_cursor)  # an interrupt may come while the live display begins
    live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
    return Terminal(stack.enter_context(live), names)


@contextlib.contextmanager
def _ticking(reporter: Reporter) -> Iterator[None]:
    import gevent

    def beat() -> None:
        while True:
            gevent.sleep(0.25)
            with contextlib.suppress(OSError):
                reporter.tick()

    clock = gevent.spawn(beat)
    try:
        yield
    finally:
        clock.kill()


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
