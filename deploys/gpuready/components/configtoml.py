"""config.toml of the NVIDIA container toolkit as a document that belongs to the user: comments and order stay.

Sources: api/config/v1 of the NVIDIA container toolkit (keys and what holds without them).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit

from gpuready.components import tomlconfig
from gpuready.components.base import Value
from gpuready.documents import DocumentError, read_toml

CONFIG = "/etc/nvidia-container-runtime/config.toml"
Document = dict[str, Any]
MODE = "nvidia-container-runtime.mode"
COMPAT = "nvidia-container-runtime.modes.legacy.cuda-compat-mode"
ENVVAR = "accept-nvidia-visible-devices-envvar-when-unprivileged"
VOLUMES = "accept-nvidia-visible-devices-as-volume-mounts"
#: The keys that gpuready manages, and what holds where the file says nothing.
BY_ITSELF: dict[str, Value] = {MODE: "auto", COMPAT: "ldconfig", ENVVAR: True, VOLUMES: False}


class ConfigTomlError(ValueError):
    """The file cannot be understood; the message says where and what."""


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return read_toml(text)
    except DocumentError as e:
        raise ConfigTomlError(f"it is no TOML: {e}") from None


def read(text: str) -> Document:
    """The document as plain values; raises :class:`ConfigTomlError` with line and column."""
    found: Document = _parse(text).unwrap()
    return found


def given(document: Document, key: str) -> Value:
    """What the file says of a dotted key, as text unless it is a boolean; None where it says nothing."""
    here = tomlconfig.at(document, tuple(key.split(".")))
    return here if here is None or isinstance(here, (bool, str)) else str(here)


def merge(text: str, values: Mapping[str, Value]) -> str:
    """The text with each key at its value (None: gone, and a table that is empty then), all else as it was."""
    document = _parse(text)
    for key, value in values.items():
        _set(document, key.split("."), value, key)
    return tomlkit.dumps(document)


def _set(here: Any, path: list[str], value: Value, key: str) -> None:
    name, *rest = path
    if not rest:
        if value is None:
            here.pop(name, None)
        else:
            here[name] = value
        return
    if here.get(name) is None and value is None:
        return
    if here.get(name) is None:
        here[name] = tomlkit.table(is_super_table=len(rest) > 1)
    if not isinstance(here[name], dict):
        raise ConfigTomlError(f"{key.removesuffix('.'.join(['', *rest]))} is no table")
    _set(here[name], rest, value, key)
    if value is None and not here[name]:
        del here[name]
