"""The user's own ~/.ssh/config, with the files that it includes, and the hosts that it names.

gpuready reads it here once for all: paramiko knows no Include, and pyinfra looks for relative ones beside gpuready's
copy. A file that leads back to itself is left out. An Include inside of a block: its settings belong to the block, but
its own blocks count for all hosts. Source: ssh_config(5).
"""

import glob
import os
import re
import shlex
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from gpuready.base.errors import InventoryError, Where
from gpuready.inventory.groups import Graph
from gpuready.inventory.host_names import is_host

PREFIX = "ssh:"
_MOST_LEVELS = 16
_LINE = re.compile(r"([A-Za-z]+)(?:\s*=\s*|\s+)(.*)")
_NO_NAME = re.compile(r"[*?!]")


class _Line(NamedTuple):
    """A line, and the patterns of the blocks that its file is included in."""

    text: str
    where: Where
    within: tuple[tuple[str, ...], ...]


def path() -> Path:
    return Path("~/.ssh/config").expanduser()


def text() -> str:
    """All of it; empty if there is none. Raises InventoryError if a file cannot be read."""
    try:
        return "".join(f"{line.text}\n" for line in _lines(path(), (), ())) if path().is_file() else ""
    except OSError as e:
        raise InventoryError(f"{e.filename}: cannot be read: {e.strerror}") from None


def add_hosts(source: str, graph: Graph) -> None:
    """Add the hosts of ``ssh:PATTERN,...``, each as if ``-i`` named it; InventoryError if there are none."""
    patterns = [part.strip() for part in source.removeprefix(PREFIX).split(",")]
    try:
        found = {name: where for name, where in host_names().items() if _matches(name, patterns)}
    except OSError as e:
        raise InventoryError(f"{source}: {e.filename}: cannot be read: {e.strerror}") from None
    for name, where in found.items():
        if is_host(name):
            graph.add_host(name, graph.groups["ungrouped"], where)
            graph.named.add(name)
        else:
            graph.notes.append(f"{where}: {name!r} is not a host name: left out")
    if not graph.named & found.keys():
        remedy = f"{PREFIX}* stands for every host that a Host line names without * and ?; brackets are not special"
        raise InventoryError(f"{source}: no host in ~/.ssh/config matches", remedy=remedy)


def host_names() -> dict[str, Where]:
    """The names in its Host lines that are no patterns, in their order, and where each is first."""
    found: dict[str, Where] = {}
    for line in _lines(path(), (), ()) if path().is_file() else ():
        for word in _patterns(line.text):
            if not _NO_NAME.search(word) and all(_matches(word, patterns) for patterns in line.within):
                found.setdefault(word, line.where)
    return found


def addresses(names: Collection[str]) -> dict[str, str]:
    """Return the HostName of each of these names that has one. The first one that applies counts."""
    found: dict[str, str] = {}
    applies = set(names)
    try:
        for line in _lines(path(), (), ()) if path().is_file() else ():
            match = _LINE.fullmatch(line.text.strip())
            keyword = match[1].lower() if match else ""
            if keyword in ("host", "match"):
                applies = {name for name in names if _matches(name, _patterns(line.text))}
            elif match and keyword == "hostname":
                for name in applies:
                    if all(_matches(name, patterns) for patterns in line.within):
                        found.setdefault(name, "".join(_words(match[2])[:1]).replace("%h", name))
    except OSError as e:
        raise InventoryError(f"{e.filename}: cannot be read: {e.strerror}") from None
    return found


def _lines(file: Path, above: tuple[Path, ...], within: tuple[tuple[str, ...], ...]) -> Iterator[_Line]:
    block = "Host *"
    for number, line in enumerate(re.split("\r\n|\r|\n", file.read_text("utf-8", "replace")), 1):
        match = _LINE.fullmatch(line.strip())
        keyword = match[1].lower() if match else ""
        if match and keyword == "include":
            for each in _included(match[2]):
                if each not in (*above, file) and len(above) < _MOST_LEVELS:
                    yield from _lines(each, (*above, file), (*within, _patterns(block)))
            yield _Line(block, Where(str(file), number), within)
            continue
        if keyword in ("host", "match"):
            block = line.strip()
        yield _Line(line, Where(str(file), number), within)


def _included(text: str) -> Iterator[Path]:
    """The files of an Include line; names without a directory are below ~/.ssh."""
    for word in _words(text):
        pattern = path().parent / os.path.expanduser(word)  # noqa: PTH111 (an unknown ~USER is no error)
        yield from filter(Path.is_file, map(Path, sorted(glob.glob(str(pattern)))))  # noqa: PTH207 (absolute)


def _patterns(line: str) -> tuple[str, ...]:
    """The patterns of a Host line; ``Match all`` is any host, another Match none that is known here."""
    match = _LINE.fullmatch(line.strip())
    keyword, words = (match[1].lower(), _words(match[2])) if match else ("", [])
    if keyword == "match":
        return ("*",) if [word.lower() for word in words] == ["all"] else ()
    return tuple(words) if keyword == "host" else ()


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # ssh itself refuses the line
        return []


def _matches(name: str, patterns: tuple[str, ...] | list[str]) -> bool:
    """Whether a Host line with these patterns applies: one of them matches, and none with ``!``.

    To ssh, only ``*`` and ``?`` are special; brackets are not.
    """
    patterns = [pattern.replace("[", "[[]") for pattern in patterns]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    refused = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return any(fnmatchcase(name, each) for each in wanted) and not any(fnmatchcase(name, each) for each in refused)
