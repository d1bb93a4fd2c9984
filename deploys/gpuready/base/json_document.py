"""Edit daemon.json, which belongs to the user: read it without loss, and change only the keys that gpuready owns.

gpuready never installs nvidia-ctk's output as it is: nvidia-ctk converts integers to float64, drops all other
``features`` flags, replaces the whole entry of a runtime, and panics on ``"runtimes": null``. As dockerd does, gpuready
accepts an empty file and a byte-order mark. It refuses a duplicate key, of which dockerd silently uses the last.
"""

from __future__ import annotations

import json
import math
from typing import Any

from gpuready.base.documents import DocumentError, copied, drop, read_json
from gpuready.base.syntax import encoding_problem, json_extension, json_problem

Document = dict[str, Any]
_DEPTH = 100


class DaemonJsonError(ValueError):
    """The file cannot be parsed, or a change would lose something. The message says where and what."""


class _Extension(Exception):
    """Python's parser reads it, but JSON does not have it, or dockerd does not read it so."""


class _Number(float):
    """A float that is written back exactly as it was read."""

    text: str

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text)
        number.text = text
        if not math.isfinite(number):
            raise DaemonJsonError(f"the number {text} is too large to be kept")
        return number


def _unique(pairs: list[tuple[str, Any]]) -> Document:
    found: Document = {}
    for key, value in pairs:
        if key in found:
            raise _Extension
        found[key] = value
    return found


def _constant(text: str) -> Any:
    raise _Extension


def read(data: bytes) -> Document:
    """Parse the document; ``{}`` for an empty file. Raises :class:`DaemonJsonError` with line and column."""
    if why := encoding_problem(data):
        raise DaemonJsonError(why)
    text = data.decode("utf-8-sig")
    if not text.strip():
        return {}
    try:
        found = read_json(
            text, object_pairs_hook=_unique, parse_float=_Number, parse_constant=_constant, parse_int=_integer
        )
    except json.JSONDecodeError as e:
        raise DaemonJsonError(json_problem(e)) from None
    except _Extension:
        raise DaemonJsonError(json_extension(text)) from None
    except DocumentError as e:
        raise DaemonJsonError(str(e)) from None
    if not isinstance(found, dict):
        raise DaemonJsonError(f"it holds {_kind(found)}, not an object")
    if _depth(found) > _DEPTH:
        raise DaemonJsonError("it is nested too deeply")
    return found


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner for v in level if isinstance(v, (dict, list)) for inner in (v.values() if isinstance(v, dict) else v)
        ]
    return depth


def _integer(text: str) -> int:
    if len(text) > 1000:
        raise DaemonJsonError("a number of more than 1000 digits")
    return int(text)


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def write(document: Document, like: bytes = b"") -> bytes:
    """Write UTF-8, indented by four spaces, keys in order, with the line ends of ``like``. It reads back equal."""
    try:
        data = f"{_encode(document)}\n".encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can escape and UTF-8 cannot hold
        data = f"{_encode(document, ascii_only=True)}\n".encode()
    return data.replace(b"\n", b"\r\n") if 0 < like.count(b"\n") == like.count(b"\r\n") else data


def _encode(value: Any, depth: int = 1, *, ascii_only: bool = False) -> str:
    """Encode like json.dumps, but write floats as they were read."""
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, dict) and value:
        ends = "{}"
        items = [
            f"{json.dumps(k, ensure_ascii=ascii_only)}: {_encode(v, depth + 1, ascii_only=ascii_only)}"
            for k, v in value.items()
        ]
    elif isinstance(value, list) and value:
        ends, items = "[]", [_encode(v, depth + 1, ascii_only=ascii_only) for v in value]
    else:
        return json.dumps(value, ensure_ascii=ascii_only)
    inner = "\n" + "    " * depth
    return ends[0] + inner + f",{inner}".join(items) + inner[:-4] + ends[1]


def merge(document: Document, ours: dict[tuple[str, ...], Any]) -> Document:
    """Return a copy of ``document`` with the value of each path in ``ours`` set, or removed if it is None.

    A null on the path counts as absent. Any other value that is not an object is an error, because it would be lost.
    """
    merged: Document = copied(document)
    for path, value in ours.items():
        if value is None:
            drop(merged, path)
            continue
        at = merged
        for depth, key in enumerate(path[:-1]):
            inner = at.get(key)
            if inner is None:
                inner = at[key] = {}
            elif not isinstance(inner, dict):
                raise DaemonJsonError(f"{'.'.join(path[: depth + 1])} is {_kind(inner)}, not an object")
            at = inner
        at[path[-1]] = value
    return merged


def readable_by_nvidia_ctk(document: Document, data: bytes) -> bool:
    """Tell whether nvidia-ctk can read this file: not if it is empty, has a byte-order mark, or an odd ``runtimes``."""
    return bool(document) and not data.startswith(b"\xef\xbb\xbf") and isinstance(document.get("runtimes", {}), dict)
