"""config.toml of the NVIDIA container toolkit: its place, the keys that gpuready manages, and what holds without them.

Sources: api/config/v1 of the NVIDIA container toolkit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuready.core import toml_document
from gpuready.core.component import Value

RUNTIME = "nvidia-container-runtime"
CONFIG = "/etc/nvidia-container-runtime/config.toml"
Document = dict[str, Any]
MODE = "nvidia-container-runtime.mode"
COMPAT = "nvidia-container-runtime.modes.legacy.cuda-compat-mode"
ENVVAR = "accept-nvidia-visible-devices-envvar-when-unprivileged"
VOLUMES = "accept-nvidia-visible-devices-as-volume-mounts"
#: The keys that gpuready manages, and what holds where the file says nothing.
BY_ITSELF: dict[str, Value] = {MODE: "auto", COMPAT: "ldconfig", ENVVAR: True, VOLUMES: False}


def given(document: Document, key: str) -> Value:
    """What the file says of a dotted key, as text unless it is a boolean; None where it says nothing."""
    here = toml_document.at(document, tuple(key.split(".")))
    return here if here is None or isinstance(here, (bool, str)) else str(here)


def merge(text: str, values: Mapping[str, Value]) -> str:
    """The text with each key at its value (None: gone); raises :class:`tomlconfig.TomlError`."""
    return toml_document.merge(text, {tuple(key.split(".")): value for key, value in values.items()})
