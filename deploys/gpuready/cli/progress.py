"""Progress on stderr: on a terminal one live line per host, elsewhere one line per change and a heartbeat.

With ``-v`` there is a line for each script that ran on a node, too: its name, time and size, never its text.
A fleet reports from its greenlets; the clock that redraws and beats is a greenlet, too, so there are no threads.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.cli.sink import complain
from gpuready.result.mask import mask_text
from gpuready.result.model import DONE, NOT_COMPARED, OUTCOMES, ended
from gpuready.result.text import cut, one_line, printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from gpuready.operations.events import Event

HEARTBEAT = 30.0
_MOST_LINES = 20
#: What surrounds the scripts of a run: the connection, and the session that holds the node's lock.
_AROUND = ("connect", "lock")
_WAITING = "waiting"
#: Hosts that nothing is done on now, those that somebody should look at first.
_IDLE = (*dict.fromkeys(("failed", "unreachable", "not ok", "pending", *OUTCOMES, NOT_COMPARED, DONE)), _WAITING)
_WORDS = {"would_change": "differs", "not_attempted": "not attempted"}


class Plain:
    """For logs: one line when the step of a host changes, and a heartbeat for long steps.

    ``report`` takes the fleet's reports; ``tick`` comes a few times a second; ``log`` prints a line that stays.
    """

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
            if not ended(what) and now - since >= HEARTBEAT:
                busy.setdefault(what, []).append(host)
                longest[what] = max(longest.get(what, 0.0), now - since)
        for what, hosts in busy.items():
            self._line(now, f"{hostlist(hosts)}  still {what}, for {longest[what]:.0f} s")

    def log(self, text: str) -> None:
        """One line."""
        self._line(self._clock(), text)

    def _line(self, now: float, text: str) -> None:
        self._told = now
        self._write(f"[{now - self._began:6.1f} s] {one_line(text)}\n")


class Terminal:
    """As :class:`Plain`, with one line per host at work, the longest step first. All others are counted by state."""

    def __init__(self, live: Live, names: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._live, self._clock = live, clock
        self._now = {name: (_WAITING, clock()) for name in names}

    def report(self, host: str, what: str) -> None:
        """Remember it, masked before a line is cut; the next tick shows it."""
        what = mask_text(what)
        if self._now.get(host, ("", 0.0))[0] != what:
            self._now[host] = (what, self._clock())

    def tick(self) -> None:
        """Redraw, at the size that the terminal has now."""
        size = self._live.console.size
        screen = _text(self.lines(size.width, size.height))
        screen.no_wrap, screen.overflow = True, "ellipsis"
        self._live.update(screen, refresh=True)

    def log(self, text: str) -> None:
        """A line above the ones that are redrawn."""
        with contextlib.suppress(OSError):  # the terminal may be gone, and the run goes on
            self._live.console.print(_text([text]), soft_wrap=True)

    def lines(self, width: int = 80, height: int = 24) -> list[str]:
        """What a screen of this size shows now."""
        now = self._clock()
        busy = sorted((since, host, what) for host, (what, since) in self._now.items() if not _state(what))
        room = max(1, min(_MOST_LINES, height - 3))  # two lines count, and one stays for the cursor
        shown, more = busy[:room], busy[room:]
        longest = min(max((len(host) for _, host, _ in shown), default=0), width // 2)
        lines = []
        for since, host, what in shown:
            lasts = f"{now - since:.0f} s"
            step = cut(what, width - longest - len(lasts) - 5)
            lines.append(f"{cut(host, longest):<{longest}}  {step}  {lasts}")
        if more:
            steps = Counter(what for _, _, what in more).most_common()
            lines.append(cut(f"{len(more)} more at work: {_counted(steps)}", width - 1))
        done = Counter(state for what, _ in self._now.values() if (state := _state(what)))
        working = [("at work", len(busy))] if busy else []
        states = [*working, *((_WORDS.get(what, what), done[what]) for what in _IDLE if what in done)]
        if len(self._now) > len(shown):
            lines.append(cut(f"{_counted(states)}; {count(len(self._now), 'host')}", width - 1))
        return lines


def _state(what: str) -> str:
    return what if what == _WAITING else ended(what)


def _counted(found: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{number} {what}" for what, number in found)


def _text(lines: Sequence[str]) -> Text:
    """For the console, which is below the stream that makes text harmless."""
    from rich.text import Text

    return Text(printable(mask_text("\n".join(map(one_line, lines)))))


class Trace:
    """``-v``: a line for each script as it ends, and the sum of each host; ``-vv``: connections, locks and bytes, too.

    ``names`` are the hosts, for the width of their column.
    """

    def __init__(self, log: Callable[[str], None], names: Sequence[str], verbosity: int) -> None:
        self._log, self._verbosity = log, verbosity
        self._width = max(map(len, names), default=0)
        self._of: dict[str, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        """Print it."""
        self._of.setdefault(event.host, []).append(event)
        if self._verbosity > 1 or event.name not in _AROUND:
            self._line(event.host, event.name, event.seconds, event.sent, event.received)

    def sums(self) -> None:
        """The last lines: what each host took in all."""
        for host, events in self._of.items():
            scripts = [event for event in events if event.name not in _AROUND]
            sent, received = sum(event.sent for event in events), sum(event.received for event in events)
            seconds = sum(event.seconds for event in scripts)
            self._line(host, f"in all {count(len(scripts), 'script')}", seconds, sent, received)

    def _line(self, host: str, what: str, seconds: float, sent: int, received: int) -> None:
        size = f", {sent} bytes sent, {received} received" if self._verbosity > 1 and sent else ""
        self._log(f"{host:<{self._width}}  {what}: {seconds:.2f} s{size}")


@contextlib.contextmanager
def reporting(
    names: Sequence[str], color: str, verbosity: int = 0, *, ticking: bool = True
) -> Iterator[tuple[Plain | Terminal, Trace | None]]:
    """Give the reporter of a run, and an observer of its connections if -v asks for one. Import the fleet before.

    Without ``ticking``, the caller calls the reporter's ``tick``.
    """
    with contextlib.ExitStack() as stack:
        live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        reporter = _terminal(names, color, stack) if live else Plain(complain)
        if ticking:
            stack.enter_context(_ticking(reporter))
        trace = Trace(reporter.log, names, verbosity) if verbosity else None
        yield reporter, trace
        if trace is not None:
            trace.sums()


def _terminal(names: Sequence[str], color: str, stack: contextlib.ExitStack) -> Terminal:
    from rich.console import Console
    from rich.live import Live

    # It draws with control sequences, on the stream below the sink; what it draws is made printable first.
    console = Console(file=getattr(sys.stderr, "stream", sys.stderr), no_color=color == "never", highlight=False)
    live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
    for end in (console.show_cursor, live.stop):  # an interrupt may come while the live display begins
        stack.callback(_end, end)
    live.start()
    return Terminal(live, names)


def _end(end: Callable[[], object]) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        end()


@contextlib.contextmanager
def _ticking(reporter: Plain | Terminal) -> Iterator[None]:
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
