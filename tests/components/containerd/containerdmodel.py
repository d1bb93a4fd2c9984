"""What ``containerd config dump`` says for some files: the rules of 1.6, 1.7 and 2.1, over their own recorded defaults.

The system tests ask the real ones; test_containerd_model.py beside this holds the model to answers that they gave.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import dirname, join
from typing import Any

import tomli_w

from gpuready.base.documents import toml_values

CONFIG = "/etc/containerd/config.toml"
_DEFAULTS = Path(__file__).parents[2] / "data" / "containerd"
_OLD, _NEW = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"


def dump(version: str, files: Mapping[str, str]) -> str:
    """The dump of containerd ``version`` (1.6, 1.7, 2.1) with these files (path -> text)."""
    found = toml_values((_DEFAULTS / f"{version}.toml").read_text("utf-8"))
    modern = version.startswith("2")
    read = _read(files)
    given: dict[str, Any] = {}
    for _, document in read:
        for key, value in document.items():
            if key == "plugins":
                sections = given.setdefault("plugins", {})
                for name, table in ((_renamed(each, modern), table) for each, table in value.items()):
                    # A section of a later file: laid over the earlier one, or in its place.
                    sections[name] = over(sections.get(name), table) if modern else table
            elif key != "version":
                given[key] = value
    for name, table in given.pop("plugins", {}).items():
        if not modern and name not in found["plugins"]:
            continue  # it reads the sections of its own plugins only
        section = found["plugins"].setdefault(name, {})
        if not modern and "runtimes" in table.get("containerd", {}):
            section["containerd"]["runtimes"] = {}
        found["plugins"][name] = over(section, table)
    found = over(found, given)
    found["imports"] = (
        [pattern for _, d in read for pattern in d.get("imports", [])] if modern else [p for p, _ in read]
    )
    return tomli_w.dumps(found)


def cri(text: str) -> dict[str, Any]:
    """What a containerd answers through CRI that was started with that dump, as NodeState has it."""
    whole = toml_values(text)
    old = whole["version"] < 3
    section = whole["plugins"][_OLD if old else _NEW]
    own = section["containerd"]
    runtimes, default = dict(own["runtimes"]), own["default_runtime_name"]
    if old and own["untrusted_workload_runtime"]["runtime_type"]:
        runtimes["untrusted"] = own["untrusted_workload_runtime"]
    if old and own["default_runtime"]["runtime_type"]:
        runtimes["default"], default = own["default_runtime"], "default"
    return {
        "default_runtime": default,
        "runtimes": {
            name: {"runtime_type": table.get("runtime_type", ""), "options": table.get("options", {})}
            for name, table in runtimes.items()
        },
        "enable_cdi": section.get("enable_cdi"),
        "cdi_spec_dirs": section.get("cdi_spec_dirs", ()),
    }


def _read(files: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    pending, done = [CONFIG] if CONFIG in files else [], []
    while pending:
        path = pending.pop(0)
        document = toml_values(files[path])
        done.append((path, document))
        for pattern in document.get("imports", []):
            pending += sorted(p for p in files if fnmatchcase(p, join(dirname(path), pattern)))
    return done


def _renamed(name: str, modern: bool) -> str:
    if modern:
        return _NEW if name == _OLD else name
    return _OLD if name == "cri" else name


def over(base: Any, top: Any) -> Any:
    """Mappings are merged key by key, all else replaces; ``!`` before a key replaces a mapping whole."""
    if not isinstance(base, dict) or not isinstance(top, dict):
        return top
    merged = dict(base)
    for key, value in top.items():
        if key.startswith("!"):
            merged[key[1:]] = value
        else:
            merged[key] = over(base.get(key), value)
    return merged
