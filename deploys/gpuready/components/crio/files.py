"""CRI-O's configuration files: which ones it reads, in which order, and their combined runtimes.

CRI-O reads crio.conf first, then all files below crio.conf.d in the order of their names, whatever the suffix, even
hidden ones. A later value replaces an earlier one. A runtime of the same name is replaced as a whole.
Source: cri-o, pkg/config/config.go (UpdateFromFile, UpdateFromPath, Runtimes). CRI-O 1.34 was asked (crio config).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuready.base import toml_document
from gpuready.base.toml_document import Path, TomlError
from gpuready.contract.component import unusable
from gpuready.model.state import NodeState

MAIN = "/etc/crio/crio.conf"
FOLDER = "/etc/crio/crio.conf.d/"
DROP_IN = f"{FOLDER}99-nvidia.toml"
RUNTIME: Path = ("crio", "runtime")
NVIDIA: Path = (*RUNTIME, "runtimes", "nvidia")
DEFAULT: Path = (*RUNTIME, "default_runtime")
_LIKE_RUNC = (None, "", "oci")


@dataclass(frozen=True)
class Effective:
    """The combined files, and which file set each value last. ``default``: empty for CRI-O's own default."""

    runtimes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    default: str = ""
    said_by: Mapping[str, str] = field(default_factory=dict)
    default_by: str = ""

    @property
    def nvidia(self) -> Mapping[str, Any] | None:
        return self.runtimes.get("nvidia")

    def base(self) -> tuple[str, Mapping[str, Any]]:
        """Return the runtime that nvidia copies: the default one, else crun or runc; empty if no file has one."""
        for name in (self.default, "crun", "runc"):
            table = self.runtimes.get(name)
            if table is not None and not name.startswith("nvidia") and table.get("runtime_type") in _LIKE_RUNC:
                return name, table
        return "", {}


def order(state: NodeState) -> tuple[str, ...]:
    """Return the existing files in the order in which CRI-O reads them."""
    below = sorted((path for path in state.files if path.startswith(FOLDER)), key=lambda path: path.split("/"))
    return (*((MAIN,) if MAIN in state.files else ()), *below)


def read(state: NodeState, path: str) -> dict[str, Any]:
    """Return a file's values; {} if there is no file. Raises NotComparable with file, line and column."""
    try:
        return toml_document.read(state.text(path))
    except TomlError as e:
        raise unusable(path, f"{e}; CRI-O reads every file there") from None


def effective(state: NodeState, without: str = "") -> Effective:
    """Combine all files, or all but one. Raises NotComparable."""
    runtimes: dict[str, Mapping[str, Any]] = {}
    said_by: dict[str, str] = {}
    default, default_by = "", ""
    for path in order(state):
        document = read(state, path) if path != without else {}
        here = toml_document.at(document, (*RUNTIME, "runtimes"))
        for name, table in here.items() if isinstance(here, Mapping) else ():
            if isinstance(table, Mapping):
                runtimes[name], said_by[name] = table, path
        said = toml_document.at(document, DEFAULT)
        if isinstance(said, str) and said:
            default, default_by = said, path
    return Effective(runtimes, default, said_by, default_by)
