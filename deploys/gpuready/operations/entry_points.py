"""Read the entry points of the installed packages once, for whoever asks for them again and again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import metadata


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Answer :func:`importlib.metadata.entry_points` from one reading meanwhile.

    gevent's ``patch_all`` looks for plugins at each of its about 30 steps; importlib.metadata reads the files of every
    installed package each time. That was a quarter of the start of a run.
    """
    original, found = metadata.entry_points, metadata.entry_points()
    metadata.entry_points = found.select
    try:
        yield
    finally:
        metadata.entry_points = original
