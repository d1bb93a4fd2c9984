"""Edit a TOML file that belongs to the user: keep comments, order and unknown keys, and change only the given keys.

tomlkit has bugs with dotted keys below a header and with tables out of order. So each result is parsed again, and is
used only if it says exactly what was wanted. Source: toml.io, version 1.0.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpuready.base.documents import DocumentError, copied, drop, read_toml, toml_values

Path = tuple[str, ...]
T = TypeVar("T")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class TomlError(ValueError):
    """The file cannot be parsed, or a change would affect other keys. The message says where and what.

    ``by_hand``: how to make the change by hand, in lines of its own that follow the message; empty if it is unknown.
    """

    def __init__(self, message: str, by_hand: str = "") -> None:
        super().__init__(message)
        self.by_hand = by_hand


def read(text: str) -> dict[str, Any]:
    """Parse the file into plain values. Raises :class:`TomlError` with line and column."""
    return _parse(text, toml_values)


def _parse(text: str, parser: Callable[[str], T]) -> T:
    try:
        return parser(text)
    except DocumentError as e:
        raise TomlError(f"it is not valid TOML: {e}") from None


def at(document: Mapping[str, Any], path: Path) -> Any:
    """Return the value at ``path``, or None."""
    here: Any = document
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def leaves(table: Mapping[str, Any], above: Path = ()) -> dict[Path, Any]:
    """Return every value below a table by its path."""
    found: dict[Path, Any] = {}
    for key, value in table.items():
        found |= leaves(value, (*above, key)) if isinstance(value, Mapping) else {(*above, key): value}
    return found


def merge(text: str, ours: Mapping[Path, Any]) -> str:
    """Return ``text`` with the value of each path in ``ours`` set. None removes the key and tables that become empty.

    If no value differs, the text is returned unchanged. The file's line ends are kept. Raises :class:`TomlError`.
    """
    before = read(text)
    wanted = {path: value for path, value in ours.items() if at(before, path) != value}
    if not wanted:
        return text
    for path in wanted:
        for depth in range(1, len(path)):
            above = at(before, path[:depth])
            if above is not None and not isinstance(above, dict):
                raise TomlError(f"{_shown(path[:depth])} is not a table")
    import tomlkit  # slow to import: only where a file changes
    from tomlkit.exceptions import TOMLKitError

    document = _parse(text, read_toml)
    try:
        for path, value in sorted(wanted.items(), key=lambda item: len(item[0])):
            if value is None:
                drop(document, path)
            else:
                _put(document, path, value)
        merged = tomlkit.dumps(document)
        if 0 < text.count("\n") == text.count("\r\n"):
            merged = merged.replace("\r\n", "\n").replace("\n", "\r\n")
        same = read(merged) == _expected(before, wanted)
    except (TOMLKitError, ValueError, TypeError, KeyError, AttributeError, IndexError):
        same = False
    if not same:
        keys = ", ".join(_shown(path) for path in wanted)
        raise TomlError(f"gpuready cannot change these keys alone in this file: {keys}", _by_hand(text, before, wanted))
    return merged


def _by_hand(text: str, before: dict[str, Any], wanted: Mapping[Path, Any]) -> str:
    """Return lines to paste at the end of the file, if they have the wanted effect there; else each key by itself."""
    tables = snippet(wanted)
    try:
        if read(f"{text}\n{tables}") == _expected(before, wanted):
            return f"\nPaste these lines at the end of the file:\n{tables}"
    except TomlError:
        pass
    keys = [f"remove {_shown(at)}" if v is None else f"{_shown(at)} = {_literal(v)}" for at, v in wanted.items()]
    return "\n".join(["\nSet these keys by hand, each in its table:", *keys])


def snippet(values: Mapping[Path, Any]) -> str:
    """Return values as TOML tables, for people to paste. A value of None is left out."""
    tables: dict[Path, list[str]] = {}
    for path, value in values.items():
        if value is not None:
            tables.setdefault(path[:-1], []).append(f"{_shown(path[-1:])} = {_literal(value)}")
    return "\n".join(line for table, keys in tables.items() for line in (f"[{_shown(table)}]" if table else "", *keys))


def _literal(value: Any) -> str:
    """Return a string, number, boolean or list as TOML, which writes them as JSON does."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _shown(path: Path) -> str:
    return ".".join(key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path)


def _put(document: Any, path: Path, value: Any) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    here = document
    for depth, key in enumerate(path[:-1], 1):
        if key not in here:
            inline = isinstance(here, InlineTable)
            here[key] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=depth < len(path) - 1)
        here = here[key]
    here[path[-1]] = list(value) if isinstance(value, tuple) else value


def _expected(before: dict[str, Any], wanted: Mapping[Path, Any]) -> dict[str, Any]:
    """Apply the same change to plain values."""
    after: dict[str, Any] = copied(before)
    for path, value in wanted.items():
        if value is None:
            drop(after, path)
            continue
        here = after
        for key in path[:-1]:
            here = here.setdefault(key, {})
        here[path[-1]] = list(value) if isinstance(value, tuple) else value
    return after
