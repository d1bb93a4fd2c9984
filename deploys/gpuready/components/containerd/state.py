"""containerd's configuration: from its files (``containerd config dump``) and from its process (``crictl info``).

The dump is TOML with every default. Before 2.0, one plugin section has all CRI settings; since then there are several,
and the runtimes are in a section with another name. The dump shows the files of this moment, not the running process.
Before 2.0, it also lacks two deprecated tables, which the CRI plugin applies when it starts.
Sources: containerd's docs/PLUGINS.md and docs/cri/config.md, the CRI plugin's check of its configuration
(ValidatePluginConfig), cri-tools' info command; dumps and answers of 1.6, 1.7 and 2.1.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuready.base.documents import DocumentError, read_json, toml_values
from gpuready.base.facts import Cri, Unknown
from gpuready.base.records import Records

#: Version of a configuration file -> the plugin section that holds the runtimes.
SECTIONS = {1: "cri", 2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
IMAGES = "io.containerd.cri.v1.images"
#: Before 2.0: deprecated table -> the runtime that the CRI plugin makes of it when it starts, if the table has a type.
DEPRECATED = {"default_runtime": "default", "untrusted_workload_runtime": "untrusted"}


def section(version: int) -> str:
    """Return the plugin section with the runtimes in a file of that version."""
    return SECTIONS[min(max(version, 1), 3)]


@dataclass(frozen=True)
class Effective:
    """A parsed dump. ``whole``: all of it."""

    version: int
    whole: dict[str, Any] = field(default_factory=dict)

    @property
    def cri(self) -> dict[str, Any]:
        return _table(_table(self.whole.get("plugins")).get(section(self.version)))

    @property
    def serves_cri(self) -> bool:
        """Whether the CRI plugin is enabled. Docker's package of containerd disables it."""
        off = {str(name) for name in self.whole.get("disabled_plugins") or []}
        return not off & {"cri", SECTIONS[2], section(self.version)} and bool(self.cri)

    @property
    def imports(self) -> tuple[str, ...]:
        """Before 2.0, the files that were read; since then, the patterns from the file."""
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
        """The runtimes of the table ``runtimes`` only."""
        found = _table(_table(self.cri.get("containerd")).get("runtimes"))
        return {name: _table(table) for name, table in found.items()}

    @property
    def runtimes(self) -> dict[str, dict[str, Any]]:
        """The runtimes that CRI has after the next start."""
        return self.listed | {DEPRECATED[key]: table for key, table in self.deprecated.items()}

    @property
    def sandbox_image(self) -> str:
        images = _table(_table(self.whole.get("plugins")).get(IMAGES))
        return str(self.cri.get("sandbox_image") or _table(images.get("pinned_images")).get("sandbox") or "")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@functools.lru_cache(maxsize=64)
def effective(dump: str) -> Effective:
    """Parse a dump. Raises ValueError. The result is cached, so do not change it."""
    try:
        whole = toml_values(dump)
    except (DocumentError, RecursionError) as e:
        raise ValueError(f"containerd config dump: {e}") from None
    version = whole.get("version")
    if not isinstance(version, int):
        raise ValueError("containerd config dump: it has no version")
    return Effective(version, whole)


def cri(r: Records) -> Cri | Unknown | None:
    """Parse what ``crictl info`` reports about the running containerd; None if it was not asked."""
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
    """Return a runtime with the dump's names, as far as gpuready compares it."""
    return {"runtime_type": table.get("runtimeType") or "", "options": dict(table.get("options") or {})}
