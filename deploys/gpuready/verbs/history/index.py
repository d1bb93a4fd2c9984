"""The results of a place in the order of time, through an index that remembers what was read of each file.

The files are the truth. The index is a SQLite file in the user's cache, apart from the files, which others may write.
Whatever is wrong with it, it is made anew; where it cannot be stored, it lasts for this run. It is there because a
result of 64 hosts takes 15 ms to read: a thousand of them 15 s, and from the index a fraction of a second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpuready import __version__
from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.base.files import reason
from gpuready.base.places import Directory, Entry, Remote
from gpuready.verbs.history.digest import MOST, Refused, Seen, digest

#: Grows when the tables or what a digest holds change.
_FORM = f"3 {__version__}"
_TABLES = """
CREATE TABLE made (form TEXT NOT NULL);
CREATE TABLE seen (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
CREATE TABLE file (name BLOB PRIMARY KEY, stamp TEXT NOT NULL, problem TEXT NOT NULL,
                   ended TEXT NOT NULL, verb TEXT NOT NULL, exit_code INTEGER NOT NULL, hosts TEXT NOT NULL);
"""
#: Seconds after which an index that nobody used goes: its place may have vanished.
_UNUSED = 30 * 86400
#: Files that are read between two commits.
_AT_ONCE = 50


_REMEMBERED = 10_000
T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """One result: when it ended (UTC), its verb and exit code, and what it says of each host."""

    ended: str
    verb: str
    exit_code: int
    hosts: dict[str, Seen]


Fold = Callable[[Iterator[Result]], T]


def read(where: Directory | Remote, tell: Callable[[int], None], fold: Fold[T]) -> tuple[T, dict[str, str]]:
    """What ``fold`` makes of all results of the place, the oldest first, and the skipped files with the reason.

    ``tell`` is called with the number of files that the index does not know. ``fold`` may be called again, if the index
    turns out to be damaged. Raises OSError.
    """
    entries = {os.fsencode(each.name): each for each in where.entries()}
    path = _path(where.key)
    for _ in range(2 if path else 0):
        with contextlib.suppress(sqlite3.Error, ValueError, TypeError, KeyError):
            return _through(str(path), where, entries, tell, fold)
        for damaged in (f"{path}", f"{path}-journal"):
            with contextlib.suppress(OSError):
                Path(damaged).unlink()
    return _through(":memory:", where, entries, tell, fold)


def _path(key: str) -> Path | None:
    """The index of a place; None if it cannot be stored."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gpuready"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows the home
        return None
    index = cache / f"history-{hashlib.sha256(os.fsencode(key)).hexdigest()[:32]}.sqlite"
    with contextlib.suppress(OSError):
        index.touch()
        for other in cache.glob("history-*"):
            if other.stat().st_mtime < time.time() - _UNUSED:
                other.unlink()
    return index


def _through(
    path: str, where: Directory | Remote, entries: dict[bytes, Entry], tell: Callable[[int], None], fold: Fold[T]
) -> tuple[T, dict[str, str]]:
    with contextlib.closing(sqlite3.connect(path)) as index:
        if _form(index) != _FORM:
            for (table,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                index.execute(f'DROP TABLE "{table}"')
            index.executescript(_TABLES)
            index.execute("INSERT INTO made VALUES (?)", (_FORM,))
        skipped = _update(index, where, entries, tell)
        skipped |= dict(index.execute("SELECT name, problem FROM file WHERE problem != ''"))
        shown = {name.decode("utf-8", "backslashreplace"): skipped[name] for name in sorted(skipped)}
        return fold(_results(index)), shown


def _form(index: sqlite3.Connection) -> str:
    with contextlib.suppress(sqlite3.OperationalError):
        row = index.execute("SELECT form FROM made").fetchone()
        return str(row[0]) if row else ""
    return ""


def _update(
    index: sqlite3.Connection, where: Directory | Remote, entries: dict[bytes, Entry], tell: Callable[[int], None]
) -> dict[bytes, str]:
    """Bring the index up to date; the files that could not be read, with the reason."""
    problems = {
        name: each.problem or "not a .json file"
        for name, each in entries.items()
        if each.problem or not name.endswith(b".json")
    }
    readable = {name: each for name, each in entries.items() if name not in problems}
    known = dict(index.execute("SELECT name, stamp FROM file"))
    gone = {name for name, stamp in known.items() if name not in readable or readable[name].stamp != stamp}
    if gone:
        index.executemany("DELETE FROM file WHERE name = ?", [(name,) for name in gone])
        index.execute("DELETE FROM seen WHERE id NOT IN (SELECT value FROM file, json_each(file.hosts))")
    new = [name for name in readable if name in gone or name not in known]
    if new:
        tell(len(new))
    for number, name in enumerate(new, 1):
        try:
            data = where.read(readable[name].name, MOST)
        except OSError as e:
            problems[name] = f"cannot be read: {brief(reason(e))}"
        else:
            index.execute(
                "INSERT INTO file VALUES (?, ?, ?, ?, ?, ?, ?)", (name, readable[name].stamp, *_row(index, data))
            )
        if number % _AT_ONCE == 0:
            index.commit()
    index.commit()
    return problems


def _row(index: sqlite3.Connection, data: bytes) -> tuple[str, str, str, int, str]:
    try:
        found = digest(data)
    except Refused as e:
        return str(e), "", "", 0, "{}"
    hosts = {name: _number(index, content) for name, content in found.hosts.items()}
    return "", found.ended, found.verb, found.exit_code, json.dumps(hosts)


def _number(index: sqlite3.Connection, content: str) -> int:
    index.execute("INSERT OR IGNORE INTO seen (content) VALUES (?)", (content,))
    (number,) = index.execute("SELECT id FROM seen WHERE content = ?", (content,)).fetchone()
    return int(number)


def _results(index: sqlite3.Connection) -> Iterator[Result]:
    @functools.lru_cache(_REMEMBERED)
    def seen(number: int) -> Seen:
        (content,) = index.execute("SELECT content FROM seen WHERE id = ?", (number,)).fetchone()
        return Seen.read(content)

    rows = index.execute("SELECT ended, verb, exit_code, hosts FROM file WHERE problem = '' ORDER BY ended, name")
    for ended, verb, code, hosts in rows:
        yield Result(ended, verb, code, {name: seen(number) for name, number in read_json(hosts).items()})
