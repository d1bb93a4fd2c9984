"""containerd's configuration files: which ones it reads, which one defines the runtimes, and how to change that one.

Before 2.1, the CRI section of an imported file replaces that of the main file. From 2.1 on, the two are merged. In all
versions the last file with a CRI section takes effect. Before 2.0, a file that names one runtime has only the runtimes
that it names; even ``runc`` is lost. So with its first runtime, gpuready also writes those that were in effect.
Sources: containerd's docs/man/containerd-config.toml.5.md and its issue 5837; tests with 1.6.20, 1.7.24 and 2.1.9.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath
from typing import Any

from gpuready.base import toml_document
from gpuready.base.toml_document import Path, TomlError
from gpuready.components.containerd.state import Effective, effective, section
from gpuready.contract import ledger, need
from gpuready.contract.component import NotComparable, Value, Values, unusable
from gpuready.model.state import NodeState

CONFIG = "/etc/containerd/config.toml"
UNIT = "containerd.service"
_RUNTIMES: Path = ("containerd", "runtimes")
#: containerd's default for ``runc``, and the defaults that it adds to every runtime.
_RUNC = {("runc", "runtime_type"): "io.containerd.runc.v2"}
_ALWAYS = {"sandbox_mode": "podsandbox", "sandboxer": "podsandbox"}


def readable(state: NodeState) -> Effective:
    """Return the effective configuration. Raises NotComparable if it could not be read."""
    dump = need.value(state.containerd) or ""
    try:
        return effective(dump)
    except ValueError as e:
        raise NotComparable(str(e)) from None


def known(state: NodeState) -> Effective | None:
    """Return the effective configuration; None if it could not be read."""
    try:
        return readable(state)
    except NotComparable:
        return None


def read(state: NodeState, path: str) -> dict[str, Any]:
    """Return a file's values; {} if there is no file. Raises NotComparable with file, line and column."""
    try:
        return toml_document.read(state.text(path))
    except TomlError as e:
        raise unusable(path, e) from None


def version(document: Mapping[str, Any], found: Effective) -> int:
    """Return the version of a file: 1 if the file does not say, and the newest one for an empty file.

    A file without plugins means the same in every version, so it counts as the newest, too: containerd 2 accepts no
    runtime from a file of version 1.
    """
    given = document.get("version")
    if isinstance(given, int):
        return given
    named = [key for key in document if key.endswith("plugins")]
    return 1 if named or (document and found.version < 3) else found.version


def order(state: NodeState, found: Effective) -> tuple[str, ...]:
    """Return the files in the order in which containerd reads them: imports after the file that names them."""
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
            pending += _matches(place, known if known is not None else set(state.files))
    lost = sorted((known or set()) - set(seen) | {path for path in seen if path != CONFIG and path not in state.files})
    if lost:
        raise NotComparable(f"containerd also reads {', '.join(lost)}, which gpuready could not read")
    return tuple(seen)


def _matches(pattern: str, paths: set[str]) -> list[str]:
    """Return the paths that match a pattern of Go's filepath.Glob; a name without wildcards matches itself."""
    if not set("*?[") & set(pattern):
        return [pattern]
    return sorted(path for path in paths if PurePosixPath(path).match(pattern))


def place(state: NodeState, found: Effective) -> tuple[str, Path]:
    """Return the file in which a runtime takes effect, and the path of the CRI section in it."""
    for path in reversed(order(state, found)):
        if toml_document.at(read(state, path), where(state, found, path)) is not None:
            return path, where(state, found, path)
    return CONFIG, where(state, found, CONFIG)


def where(state: NodeState, found: Effective, path: str) -> Path:
    """Return the path of the CRI section in a file; a file without a version has that of the main file.

    containerd 2 also reads the section of version 3 in an older file. One with both is refused (refusals.py).
    """
    document = read(state, path)
    given = document.get("version")
    newer = ("plugins", section(found.version))
    if found.version >= 3 and isinstance(toml_document.at(document, newer), Mapping):
        return newer
    return "plugins", section(given if isinstance(given, int) else version(read(state, CONFIG), found))


def merged(state: NodeState, found: Effective, want: Values) -> bytes | None:
    """Return the new content of the file that takes effect; None: remove it, because only gpuready's keys were in it.

    ``want``: dotted path below the CRI section -> value. Raises NotComparable.
    """
    path, section_at = place(state, found)
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
            companions = {path: value for path, value in leaves(found.listed).items() if path[0] != "nvidia"}
            ours = {(*section_at, *_RUNTIMES, *path): value for path, value in companions.items()} | ours
    elif runtimes and before is not None and not toml_document.at(before, (*section_at, *_RUNTIMES)):
        ours |= _leave(runtimes, ours, section_at)
    try:
        after = toml_document.merge(state.text(path), ours)
        return after.encode() if before is None else _first_again(after, before, state, path)
    except TomlError as e:
        raise NotComparable(f"{path}: {e}; it was not changed{e.by_hand}") from None


def _written(
    value: Value, document: Mapping[str, Any], before: Mapping[str, Any] | None, at: Path, found: Effective
) -> Any:
    """Return a value as the file should have it: the original's spelling, and no false for an absent key."""
    if before is not None and value == original(before, at, found):
        return toml_document.at(before, at)
    if value is False and at[-1] == "SystemdCgroup" and toml_document.at(document, at) is None:
        return None
    return value


def original(before: Mapping[str, Any], at: Path, found: Effective) -> Any:
    """Return the value that takes effect with that file: its own, else containerd's default."""
    given = toml_document.at(before, at)
    if given is None and at[-1] == "default_runtime_name":
        return "runc"
    if given is None and at[-1] == "enable_cdi":
        return found.version >= 3
    if given is None and at[-1] == "SystemdCgroup" and toml_document.at(before, at[:-2]) is not None:
        return False
    return given


def origin(state: NodeState, path: str) -> dict[str, Any] | None:
    """Return the file's values before gpuready's first change; None if there was none. Raises NotComparable."""
    record = ledger.kept(state, path)
    try:
        return toml_document.read((record.original or b"").decode("utf-8", "surrogateescape")) if record else None
    except TomlError as e:
        raise NotComparable(f"{path}, as it was before gpuready, cannot be read: {e}") from None


def first_default(state: NodeState, found: Effective) -> str:
    """Return the default runtime before gpuready's first change; empty if gpuready never changed the file."""
    path, at = place(state, found)
    before = origin(state, path)
    return "" if before is None else str(original(before, (*at, "containerd", "default_runtime_name"), found))


def leaves(table: Mapping[str, Any]) -> dict[Path, Any]:
    """Return every value with its path, without zeros: for containerd, a zero is the same as no value."""
    found = toml_document.leaves(table).items()
    return {at: v for at, v in found if v not in (None, "", 0, False, []) and v != _ALWAYS.get(at[-1])}


def _leave(runtimes: dict[str, Any], ours: Mapping[Path, Any], where: Path) -> dict[Path, Any]:
    """If only the companion ``runc`` would remain, with containerd's defaults, remove it, too."""
    gone = {at[len(where) + 2 :] for at, value in ours.items() if value is None}
    left = {path: value for path, value in leaves(runtimes).items() if path not in gone}
    return {(*where, *_RUNTIMES, *path): None for path in left} if left == _RUNC else {}


def _first_again(after: str, before: Mapping[str, Any], state: NodeState, path: str) -> bytes | None:
    """Return the original bytes if nothing of gpuready's is left and nobody else changed the file; else ``after``."""
    record = ledger.kept(state, path)
    if record is None or path not in state.files or state.files[path].sha256 not in record.ours:
        return after.encode()
    then = toml_document.read(after)
    if "version" not in before:
        then.pop("version", None)
    return record.original if then == before else after.encode()
