"""Our keys of containerd's configuration: which they are, and what they should be beside the node's other runtimes.

``nvidia`` is started as the default runtime is, with another program: the same shim and the same options, above all
SystemdCgroup, because pods whose cgroup driver is not the kubelet's are killed again and again (nvidia-docker issue
1788). Source: containerd's docs/cri/config.md, "Runtime classes"; nvidia-ctk runtime configure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from gpuready.components.containerd.files import leaves
from gpuready.components.containerd.state import SECTIONS, Effective
from gpuready.core import toml_document
from gpuready.core.component import Value
from gpuready.core.errors import ConvergeError
from gpuready.spec.model import ContainerdSpec, NodeSpec
from gpuready.state.model import Cri

BINARY = "/usr/bin/nvidia-container-runtime"
_SAME = {"nvidia-container-runtime": BINARY}
_RUNC = "io.containerd.runc."
_OPTIONS = ("binaryname", "systemdcgroup")
NVIDIA = "containerd.runtimes.nvidia."
#: Of the default runtime, which nvidia-ctk's drop-in for a file that names none leaves out (its issue 433).
RUNC = "containerd.runtimes.runc.runtime_type"
DEFAULT = "containerd.default_runtime_name"


def registers(want: Mapping[str, Value]) -> bool:
    return want.get(f"{NVIDIA}options.BinaryName") == BINARY


def digest(dump: str) -> str:
    """Of what a dump says, whatever file it came from."""
    said = "".join(line for line in dump.splitlines(keepends=True) if not line.startswith("imports = "))
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()


def others(found: Effective, want: Mapping[str, Value]) -> dict[tuple[str, ...], object]:
    """All that a dump says, but for our keys and for the files it came from."""
    ours = {tuple(key.split(".")) for key in below(want)}
    return {
        path: value
        for path, value in leaves(found.whole).items()
        if path[0] not in ("imports", "version")
        and path[2:] not in ours
        and path[2:5] != ("containerd", "runtimes", "nvidia")
    }


def below(want: Mapping[str, Value]) -> dict[str, Value]:
    """Our keys as paths below the CRI section, which has a table ``containerd`` itself."""
    return {key.removeprefix("containerd.") if key == "containerd.enable_cdi" else key: v for key, v in want.items()}


def wanted(spec: NodeSpec, found: Effective, first: str) -> dict[str, Value]:
    """Our keys; ``first`` is the default runtime from before our first touch."""
    asked = spec.runtimes.required_containerd or ContainerdSpec()
    like = base(found, first)
    want: dict[str, Value] = {
        f"{NVIDIA}runtime_type": like.get("runtime_type") or f"{_RUNC}v2",
        f"{NVIDIA}options.BinaryName": BINARY,
        f"{NVIDIA}options.SystemdCgroup": by_systemd(like),
    }
    if "nvidia" not in found.runtimes:  # one that is there may differ from the default runtime in what is not ours
        for path, value in leaves(like).items():
            if path[0] != "options" or path[-1].lower() not in _OPTIONS:
                want.setdefault(NVIDIA + ".".join(path), tuple(map(str, value)) if isinstance(value, list) else value)
    if found.default_runtime == "runc" and "runc" not in found.runtimes:  # CRI does not come up without it
        want[RUNC] = f"{_RUNC}v2"
    if asked.default_runtime:
        want[DEFAULT] = "nvidia"
    elif "default_runtime" in asked.model_fields_set and found.default_runtime == "nvidia":
        want[DEFAULT] = "runc"
    if asked.cdi != "auto":
        want["containerd.enable_cdi"] = asked.cdi
    return want


def base(found: Effective, first: str) -> dict[str, Any]:
    """The runtime that nvidia is like: the default one, the one from before it was nvidia, runc or crun; {} when none
    of them is started as runc is."""
    for name in (found.default_runtime, first, "runc", "crun"):
        table = found.runtimes.get(name, {})
        if not name.startswith("nvidia") and str(table.get("runtime_type") or "").startswith(_RUNC):
            return table
    return {}


def staged(text: str) -> None:
    """nvidia-ctk's own answer must be the path that is wanted; all else of it is not used."""
    try:
        document = toml_document.read(text)
    except toml_document.TomlError as e:
        raise ConvergeError(f"nvidia-ctk runtime configure wrote no TOML ({e}); nothing was changed") from None
    paths = [
        toml_document.at(document, ("plugins", name, "containerd", "runtimes", "nvidia", "options", "BinaryName"))
        for name in SECTIONS.values()
    ]
    given = [path for path in paths if path]
    if not given or _SAME.get(str(given[0]), given[0]) != BINARY:
        what = f"the path {given[0]!r}" if given else "no runtime 'nvidia'"
        raise ConvergeError(
            f"nvidia-ctk runtime configure wrote {what} into its copy, not {BINARY}; nothing was changed"
        )


def by_systemd(table: Mapping[str, Any]) -> bool:
    """SystemdCgroup of a runtime."""
    return _option(table, "SystemdCgroup") is True


def _option(table: Mapping[str, Any], name: str) -> Any:
    """An option of a runtime, whose name may also begin in lower case: to containerd that is the same one."""
    options = table.get("options")
    given = options if isinstance(options, Mapping) else {}
    return given.get(name, next((value for key, value in given.items() if key.lower() == name.lower()), None))


def binary(found: Effective) -> str | None:
    path = _option(found.runtimes.get("nvidia", {}), "BinaryName")
    return _SAME.get(path, path) if isinstance(path, str) and path else None


def untrue(found: Effective, running: Cri) -> str:
    """How the containerd that runs differs from its files in what is ours; empty where it does not."""
    pairs: list[tuple[str, object, object]] = [
        ("the default runtime", running.default_runtime, found.default_runtime),
        ("the runtime nvidia", leaves(running.runtimes.get("nvidia", {})), _compared(found.runtimes.get("nvidia", {}))),
    ]
    if running.enable_cdi is not None:
        pairs.append(("enable_cdi", running.enable_cdi, bool(found.cri.get("enable_cdi"))))
    return "; ".join(f"CRI runs with {what} {_shown(a)}, the files say {_shown(b)}" for what, a, b in pairs if a != b)


def _compared(table: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    return {path: value for path, value in leaves(table).items() if path[0] in ("runtime_type", "options")}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{'.'.join(path)} = {inner!r}" for path, inner in value.items()) or "absent"
    return str(value)


def answer(found: Effective) -> str:
    """What CRI has to answer when it runs with this dump, as templates/containerd/install.sh.j2 reads it."""
    cdi = found.cri.get("enable_cdi")
    path = toml_document.at(found.runtimes, ("nvidia", "options", "BinaryName")) or ""
    return f"{found.default_runtime}|{path}|{'' if cdi is None else str(cdi).lower()}"
