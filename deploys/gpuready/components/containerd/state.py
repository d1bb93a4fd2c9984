"""containerd's configuration: what its files amount to (``containerd config dump``), and what runs (CRI's Status call).

The dump is TOML with every default in it. Before 2.0 the CRI settings are one plugin section, since then they are
several, and the runtimes are in a section of another name. The dump is not what runs: it is read from the files of this
moment, and before 2.0 the CRI plugin applies two deprecated tables only when it starts. ``crictl info`` prints the
configuration of the process that runs. Sources: containerd's docs/PLUGINS.md and docs/cri/config.md, the CRI plugin's
check of its configuration (ValidatePluginConfig), cri-tools' info command; dumps and answers of 1.6, 1.7 and 2.1.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuready.core.documents import DocumentError, read_json, toml_values
from gpuready.core.facts import Cri, Unknown
from gpuready.core.records import Records

#: Version of a configuration file -> the plugin section that holds the runtimes.
SECTIONS = {1: "cri", 2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
_IMAGES = "io.containerd.cri.v1.images"
#: Before 2.0: a table that is deprecated -> the runtime that the CRI plugin makes of it at its start, if it has a type.
DEPRECATED = {"default_runtime": "default", "untrusted_workload_runtime": "untrusted"}


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
        """The default runtime after the next start: a deprecated ``default_runtime`` overrides its name."""
        if "default_runtime" in self.deprecated:
            return DEPRECATED["default_runtime"]
        return str(_table(self.cri.get("containerd")).get("default_runtime_name") or "runc")

    @property
    def deprecated(self) -> dict[str, dict[str, Any]]:
        """The deprecated tables that become runtimes, by their key."""
        above = _table(self.cri.get("containerd")) if self.version < 3 else {}
        return {key: _table(above.get(key)) for key in DEPRECATED if _table(above.get(key)).get("runtime_type")}

    @property
    def listed(self) -> dict[str, dict[str, Any]]:
        """The runtimes of the table ``runtimes`` alone."""
        found = _table(_table(self.cri.get("containerd")).get("runtimes"))
        return {name: _table(table) for name, table in found.items()}

    @property
    def runtimes(self) -> dict[str, dict[str, Any]]:
        """The runtimes that CRI has after the next start."""
        return self.listed | {DEPRECATED[key]: table for key, table in self.deprecated.items()}

    @property
    def cdi_spec_dirs(self) -> tuple[str, ...]:
        """Where CRI looks for CDI specs; empty where it does not use them."""
        return tuple(map(str, self.cri.get("cdi_spec_dirs") or ())) if self.cri.get("enable_cdi") else ()

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
        whole = toml_values(dump)
    except (DocumentError, RecursionError) as e:
        raise ValueError(f"containerd config dump: {e}") from None
    version = whole.get("version")
    if not isinstance(version, int):
        raise ValueError("containerd config dump: it tells no version")
    return Effective(version, whole)


def cri(r: Records) -> Cri | Unknown | None:
    """What ``crictl info`` says of the containerd that runs; None where it was not asked."""
    answer = r.run("crictl_info")
    if not isinstance(answer, str):
        return answer
    try:
        config = read_json(answer)["config"]
        own = config["containerd"]
        return Cri(
            default_runtime=own["defaultRuntimeName"],
            runtimes={name: _runtime(table) for name, table in own["runtimes"].items()},
            enable_cdi=config.get("enableCDI"),
            cdi_spec_dirs=tuple(config.get("cdiSpecDirs") or ()),
        )
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as e:
        return Unknown(unknown=f"the answer of crictl info is not understood ({type(e).__name__}: {str(e)[:120]})")


def _runtime(table: Mapping[str, Any]) -> dict[str, Any]:
    """A runtime as the dump would name its keys, as far as gpuready compares them."""
    return {"runtime_type": table.get("runtimeType") or "", "options": dict(table.get("options") or {})}
