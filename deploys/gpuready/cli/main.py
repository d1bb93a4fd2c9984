"""The console script. Light on purpose: signals are caught before anything slow is imported.

SIGTERM (a CI job that is cancelled) and SIGHUP (a terminal that goes) end a run as Ctrl-C does: with a result
document and exit code 130. While nodes are changed, they differ (operations/interrupts.py).
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run ``gpuready`` with the arguments of this process, and exit.

    The garbage collector rests while modules are imported, because they stay: see :func:`loaded`. It rests at the exit,
    too, when the process returns its whole memory anyway.
    """
    gc.disable()
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def run(argv: list[str]) -> int:
    """The exit code of ``gpuready ARGV``; the result is delivered on every way out."""
    _open_all()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    sys.unraisablehook = _unraisable
    try:
        with held():
            from gpuready.cli.app import run as app

        return app(argv)
    except KeyboardInterrupt:  # while importing, or once more while delivering
        from gpuready.cli.failure import interrupted

        return interrupted(argv)


def loaded() -> None:
    """Collect garbage from now on, for work that may take long, but not among what is imported."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _open_all() -> None:
    """A closed standard stream (``2>&-``) goes nowhere; else the first connection would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


_seen = _held = False


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Signals wait meanwhile: an import does not bear to be cut in two, least of all that of gevent.

    It raises KeyboardInterrupt for an earlier signal, too: what that one raised may have met a callback in C.
    """
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    if _seen:
        raise KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _seen
    _seen = True
    if not _held:
        raise KeyboardInterrupt(number)


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    # A callback in C lost the interrupt: deliver it again once the callback has returned.
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
