"""containerd's own account of its configuration: ``containerd config dump``, which is TOML with every default in it.

Before 2.0 the CRI settings are one plugin section, since then they are several, and those of the runtimes are in a
section of another name. Sources: containerd's docs/PLUGINS.md and docs/cri/config.md, and dumps of 1.6, 1.7 and 2.1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from gpuready.documents import DocumentError, read_toml

#: Version of a configuration file -> the plugin section that holds the runtimes.
SECTIONS = {1: "cri", 2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
_IMAGES = "io.containerd.cri.v1.images"


def section(version: int) -> str:
    """The plugin section with the runtimes in a file of that version."""
    return SECTIONS[min(max(version, 1), 3)]


@dataclass(frozen=True)
class Effective:
    """A dump: ``whole`` as it is; ``cri`` the section with the runtimes."""

    version: int
    whole: dict[str, Any] = field(default_factory=dict)

    @property
    def cri(self) -> dict[str, Any]:
        return _table(_table(self.whole.get("plugins")).get(section(self.version)))

    @property
    def serves_cri(self) -> bool:
        """Is the CRI plugin on? Docker's package ships containerd with it disabled."""
        off = {str(name) for name in self.whole.get("disabled_plugins") or []}
        return not off & {"cri", SECTIONS[2], section(self.version)} and bool(self.cri)

    @property
    def imports(self) -> tuple[str, ...]:
        """Before 2.0 the files that were read; since then the patterns, as they stand in the file."""
        return tuple(str(name) for name in self.whole.get("imports") or [])

    @property
    def default_runtime(self) -> str:
        return str(_table(self.cri.get("containerd")).get("default_runtime_name") or "runc")

    @property
    def runtimes(self) -> dict[str, dict[str, Any]]:
        found = _table(_table(self.cri.get("containerd")).get("runtimes"))
        return {name: _table(table) for name, table in found.items()}

    @property
    def sandbox_image(self) -> str:
        """The image of every pod's first container."""
        images = _table(_table(self.whole.get("plugins")).get(_IMAGES))
        return str(self.cri.get("sandbox_image") or _table(images.get("pinned_images")).get("sandbox") or "")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@functools.lru_cache(maxsize=64)
def effective(dump: str) -> Effective:
    """The dump, read; raises ValueError with what is wrong. The answer is shared: leave it as it is."""
    try:
        whole = read_toml(dump).unwrap()
    except (DocumentError, RecursionError) as e:
        raise ValueError(f"containerd config dump: {e}") from None
    version = whole.get("version")
    if not isinstance(version, int):
        raise ValueError("containerd config dump: it tells no version")
    return Effective(version, whole)
