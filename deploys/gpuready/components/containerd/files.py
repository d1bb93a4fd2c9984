"""containerd's configuration files: which are read, which of them decides about the runtimes, and how it is changed.

Before 2.1 an imported file that has the CRI section replaces all of it, from 2.1 on it is laid over it: so what the
last file with that section says holds, in every version. Before 2.0 a file that names one runtime has only those that
it names, ``runc`` too goes when it is not there: so the first runtime of ours brings along those that were in force.
Sources: containerd's docs/man/containerd-config.toml.5.md and its issue 5837; 1.6.20, 1.7.24 and 2.1.9, tried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath
from typing import Any

from gpuready.components.containerd.state import Effective, section
from gpuready.core import ledger, toml_document
from gpuready.core.component import NotComparable, Value
from gpuready.core.toml_document import Path, TomlError
from gpuready.state.model import NodeState

CONFIG = "/etc/containerd/config.toml"
_RUNTIMES: Path = ("containerd", "runtimes")
#: What containerd has by itself, without its zeros, and what it fills in by itself where a file says nothing.
_RUNC = {("runc", "runtime_type"): "io.containerd.runc.v2"}
_ALWAYS = {"sandbox_mode": "podsandbox", "sandboxer": "podsandbox"}


def read(state: NodeState, path: str) -> dict[str, Any]:
    """The values of one of the files, {} without it; raises NotComparable with file, line and column."""
    try:
        return toml_document.read(state.files[path].text) if path in state.files else {}
    except TomlError as e:
        raise NotComparable(f"{path}: {e}; mend it by hand, it was not touched") from None


def version(document: Mapping[str, Any], found: Effective) -> int:
    """A file's own version: one that says nothing is of the first, an empty one of the newest that is understood.

    One that names no plugin says the same in every version, and containerd 2 takes no runtime from the first.
    """
    given = document.get("version")
    if isinstance(given, int):
        return given
    named = [key for key in document if key.endswith("plugins")]
    return 1 if named or (document and found.version < 3) else found.version


def order(state: NodeState, found: Effective) -> tuple[str, ...]:
    """The files in the order in which containerd reads them: imports after the file that names them."""
    known = set(found.imports) if CONFIG in found.imports else None
    seen: list[str] = []
    pending = [CONFIG]
    while pending:
        path = pending.pop(0)
        if path in seen:
            continue
        seen.append(path)
        given = read(state, path).get("imports")
        for name in given if isinstance(given, list) else []:
            place = normpath(join(dirname(path), str(name)))
            matches = _matches(place, known if known is not None else set(state.files))
            pending += matches
    lost = sorted((known or set()) - set(seen) | {path for path in seen if path != CONFIG and path not in state.files})
    if lost:
        raise NotComparable(f"containerd reads {', '.join(lost)}, too, which could not be read here")
    return tuple(seen)


def _matches(pattern: str, paths: set[str]) -> list[str]:
    """filepath.Glob's * and ?, which stop at a slash; a name without them stands for itself."""
    if not set("*?[") & set(pattern):
        return [pattern]
    parts = {"*": "[^/]*", "?": "[^/]"}
    regex = re.compile("".join(parts.get(c, re.escape(c)) for c in pattern))
    return sorted(path for path in paths if regex.fullmatch(path))


def place(state: NodeState, found: Effective) -> tuple[str, Path]:
    """The file in which a runtime is effective, and the path of its CRI section there."""
    for path in reversed(order(state, found)):
        if toml_document.at(read(state, path), where(state, found, path)) is not None:
            return path, where(state, found, path)
    return CONFIG, where(state, found, CONFIG)


def where(state: NodeState, found: Effective, path: str) -> Path:
    """The path of the CRI section in one of the files; one without a version has the main file's."""
    given = read(state, path).get("version")
    return "plugins", section(given if isinstance(given, int) else version(read(state, CONFIG), found))


def merged(state: NodeState, found: Effective, want: Mapping[str, Value]) -> bytes | None:
    """The target's new content for those keys; None: the file goes, because it came with us and nothing else is in it.

    ``want``: path below the CRI section, with dots -> value. Raises NotComparable.
    """
    path, section_at = place(state, found)
    text = state.files[path].text if path in state.files else ""
    document = read(state, path)
    ours: dict[Path, Any] = {}
    if path == CONFIG and "version" not in document and version(document, found) > 1:
        ours["version",] = found.version
    before = origin(state, path)
    for key, value in want.items():
        at = (*section_at, *key.split("."))
        ours[at] = _written(value, document, before, at, found)
    runtimes = toml_document.at(document, (*section_at, *_RUNTIMES))
    if any(value is not None for at, value in ours.items() if at[2:4] == _RUNTIMES):
        if not runtimes and found.version < 3:
            ours = _companions(found, section_at) | ours
    elif runtimes and before is not None and not toml_document.at(before, (*section_at, *_RUNTIMES)):
        ours |= _leave(runtimes, ours, section_at)
    try:
        after = toml_document.merge(text, ours)
        return after.encode() if before is None else _first_again(after, before, state, path)
    except TomlError as e:
        raise NotComparable(f"{path}: {e}; it was not touched") from None


def _written(
    value: Value, document: Mapping[str, Any], before: Mapping[str, Any] | None, at: Path, found: Effective
) -> Any:
    """A value as the file should say it: false is not spelled out where nothing was; the original as it was there."""
    if before is not None and value == original(before, at, found):
        return toml_document.at(before, at)
    if value is False and at[-1] == "SystemdCgroup" and toml_document.at(document, at) is None:
        return None
    return value


def original(before: Mapping[str, Any], at: Path, found: Effective) -> Any:
    """What holds with that file: what it says, else containerd's own default."""
    given = toml_document.at(before, at)
    if given is None and at[-1] == "default_runtime_name":
        return "runc"
    if given is None and at[-1] == "enable_cdi":
        return found.version >= 3
    if given is None and at[-1] == "SystemdCgroup" and toml_document.at(before, at[:-2]) is not None:
        return False
    return given


def origin(state: NodeState, path: str) -> dict[str, Any] | None:
    """The file's values from before our first touch; None when it was never touched. Raises NotComparable."""
    record = ledger.kept(state, path)
    try:
        return toml_document.read((record.original or b"").decode("utf-8", "surrogateescape")) if record else None
    except TomlError as e:
        raise NotComparable(f"{path}, as it was before gpuready, cannot be read: {e}") from None


def first_default(state: NodeState, found: Effective) -> str:
    """The default runtime of the deciding file from before our first touch; empty where we never touched it."""
    path, at = place(state, found)
    before = origin(state, path)
    return "" if before is None else str(original(before, (*at, "containerd", "default_runtime_name"), found))


def _companions(found: Effective, where: Path) -> dict[Path, Any]:
    """The runtimes in force that the file does not name, every value that is no zero."""
    return {(*where, *_RUNTIMES, *path): value for path, value in leaves(found.listed).items() if path[0] != "nvidia"}


def leaves(table: Mapping[str, Any], above: Path = ()) -> dict[Path, Any]:
    """Every value that says anything, with its path: to containerd a zero and nothing are the same."""
    found: dict[Path, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= leaves(value, (*above, key))
        elif value not in (None, "", 0, False, []) and value != _ALWAYS.get(key):
            found[(*above, key)] = value
    return found


def _leave(runtimes: dict[str, Any], ours: Mapping[Path, Any], where: Path) -> dict[Path, Any]:
    """When our runtime goes and only its companion is left, as containerd has it by itself, that goes, too."""
    gone = {at[len(where) + 2 :] for at, value in ours.items() if value is None}
    left = {path: value for path, value in leaves(runtimes).items() if path not in gone}
    return {(*where, *_RUNTIMES, *path): None for path in left} if left == _RUNC else {}


def _first_again(after: str, before: Mapping[str, Any], state: NodeState, path: str) -> bytes | None:
    """The very original, when all of ours is gone and nobody else changed the file since; else ``after``."""
    record = ledger.kept(state, path)
    if record is None or path not in state.files or state.files[path].sha256 not in record.ours:
        return after.encode()
    then = toml_document.read(after)
    if "version" not in before:
        then.pop("version", None)
    return record.original if then == before else after.encode()
