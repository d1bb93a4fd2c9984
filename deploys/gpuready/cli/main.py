"""The console script. Light on purpose: signals are caught before anything slow is imported.

SIGTERM (a CI job that is cancelled) and SIGHUP (a terminal that goes) end a run as Ctrl-C does: with a result
document and exit code 130.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run ``gpuready`` with the arguments of this process, and exit."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """The exit code of ``gpuready ARGV``; the result is delivered on every way out."""
    _open_all()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        from gpuready.cli.app import run as app

        return app(argv)
    except KeyboardInterrupt:  # while importing, or once more while delivering
        from gpuready.cli.failure import interrupted

        return interrupted(argv)


def _open_all() -> None:
    """A closed standard stream (``2>&-``) goes nowhere; else the first connection would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
