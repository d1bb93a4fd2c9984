"""config.toml of the NVIDIA container toolkit: its path, the keys that gpuready manages, and their defaults.

Sources: api/config/v1 of the NVIDIA container toolkit.
"""

from collections.abc import Mapping
from typing import Any

from gpuready.base import toml_document

RUNTIME = "nvidia-container-runtime"
RUNTIME_PATH = f"/usr/bin/{RUNTIME}"
CONFIG = "/etc/nvidia-container-runtime/config.toml"
Document = dict[str, Any]
MODE = "nvidia-container-runtime.mode"
COMPAT = "nvidia-container-runtime.modes.legacy.cuda-compat-mode"
ENVVAR = "accept-nvidia-visible-devices-envvar-when-unprivileged"
VOLUMES = "accept-nvidia-visible-devices-as-volume-mounts"
#: The keys that gpuready manages, and their defaults.
BY_ITSELF: dict[str, str | bool] = {MODE: "auto", COMPAT: "ldconfig", ENVVAR: True, VOLUMES: False}


def given(document: Document, key: str) -> str | bool | None:
    """Return the value of a dotted key, as text unless it is a boolean; None if the file does not set it."""
    here = toml_document.at(document, tuple(key.split(".")))
    return here if here is None or isinstance(here, (bool, str)) else str(here)


def merge(text: str, values: Mapping[str, object]) -> str:
    """Return the text with each key set to its value, or removed if it is None. Raises :class:`TomlError`."""
    return toml_document.merge(text, {tuple(key.split(".")): value for key, value in values.items()})
