"""Which keys in containerd's files are gpuready's, from its record: what ``remove`` restores.

A key that the user changed later belongs to the user. A runtime is an exception: one that gpuready added is removed as
a whole, also as the default, because without its type and program no pod can start under it.
"""

from collections.abc import Mapping
from typing import Any

from gpuready.base import toml_document
from gpuready.base.toml_document import Path
from gpuready.components.containerd import files, keys
from gpuready.components.containerd.state import Effective
from gpuready.components.toolkit_config.state import RUNTIME_PATH
from gpuready.contract import owned_keys
from gpuready.contract.component import Change, NotComparable, Value, Values
from gpuready.model.state import NodeState

OURS = "/var/lib/gpuready/containerd.ours"


def original(state: NodeState, found: Effective, actual: Values) -> dict[str, Value]:
    """Return key -> earlier value, for keys that gpuready wrote and nobody else changed since. Raises NotComparable."""
    effective, _ = files.place(state, found)
    values: dict[str, Value] = {}
    for path, said in owned_keys.read(state, OURS).items():
        was = files.origin(state, path)
        ours = {} if was is None else _ours(state, found, path, said, actual)
        if ours and path != effective:
            raise NotComparable(
                f"{path} still contains gpuready's {', '.join(ours)}, but {effective} overrides it now: remove them "
                f"from {path} by hand, or the CRI section from {effective}"
            )
        values |= {key: value for key, value in ours.items() if value != actual.get(key)}
    return values


def _ours(
    state: NodeState, found: Effective, path: str, said: Mapping[str, list[Any]], actual: Values
) -> dict[str, Value]:
    """Return the same for one file, even if another file takes effect."""
    now, was, where = files.read(state, path), files.origin(state, path) or {}, files.where(state, found, path)

    def differs(key: str) -> bool:
        return bool(toml_document.at(now, _at(where, key)) != toml_document.at(was, _at(where, key)))

    ours = {key for key, values in said.items() if toml_document.at(now, _at(where, key)) in values and differs(key)}
    if toml_document.at(was, _at(where, keys.NVIDIA.rstrip("."))) is None:
        whole = {key for key in (*actual, *said) if key.startswith(keys.NVIDIA) and differs(key)}
        whole = whole if keys.PROGRAM in ours else set()
        ours = whole | {key for key in ours if not key.startswith(keys.NVIDIA)}
        if whole and found.default_runtime == "nvidia" and differs(keys.DEFAULT):
            ours.add(keys.DEFAULT)
    return {key: files.original(was, _at(where, key), found) for key in sorted(ours)}


def notes(diff: tuple[Change, ...], state: NodeState, found: Effective) -> list[str]:
    """Return a note if ``runtimes.runc`` is added to a file that lacked it, or stays there: CRI needs it."""
    if any(c.key == keys.RUNC for c in diff):
        return ["runtimes.runc is missing, so CRI is not served; gpuready adds it, and remove leaves it there"]
    if not any(c.key == keys.PROGRAM and c.expected != RUNTIME_PATH for c in diff):
        return []
    path, where = files.place(state, found)
    was, now = (
        toml_document.at(each or {}, (*where, "containerd", "runtimes")) or {}
        for each in (files.origin(state, path), files.read(state, path))
    )
    stays = was and found.default_runtime in ("runc", "nvidia") and "runc" in now and "runc" not in was
    return ["runtimes.runc stays: without it CRI is not served, as before gpuready"] if stays else []


def texts(state: NodeState, found: Effective, want: Values, content: bytes | None, *, last: bool) -> owned_keys.Texts:
    """Return the records for a step that writes ``content``. ``last``: nothing in the file is gpuready's afterwards."""
    path, where = files.place(state, found)
    record = owned_keys.read(state, OURS)
    if last or content is None:
        return owned_keys.texts(record, path, {}, {})
    after = toml_document.read(content.decode("utf-8", "surrogateescape"))
    before = files.origin(state, path)
    before = files.read(state, path) if before is None else before
    stays = {key: values for key, values in record.get(path, {}).items() if key not in want}
    new = {key: toml_document.at(after, _at(where, key)) for key in want if key != keys.RUNC}
    ours = {key: v for key, v in new.items() if v is not None and v != toml_document.at(before, _at(where, key))}
    return owned_keys.texts(record, path, stays, ours)


def _at(where: Path, key: str) -> Path:
    return (*where, *next(iter(keys.below({key: None}))).split("."))
