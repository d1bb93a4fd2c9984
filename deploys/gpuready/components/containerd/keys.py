"""The keys that gpuready manages in containerd's configuration, and their values on this node.

``nvidia`` is a copy of the default runtime with another program: the same shim and options. SystemdCgroup matters most:
with another cgroup driver than the kubelet's, pods are killed again and again (nvidia-docker issue 1788).
Sources: containerd's docs/cri/config.md, "Runtime classes"; nvidia-ctk runtime configure.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from gpuready.base import nvidia_ctk, toml_document
from gpuready.components.containerd.files import leaves
from gpuready.components.containerd.state import SECTIONS, Effective
from gpuready.components.toolkit_config.state import RUNTIME, RUNTIME_PATH
from gpuready.contract.component import Value, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri

_SAME = {RUNTIME: RUNTIME_PATH}
_RUNC = "io.containerd.runc."
_OPTIONS = ("binaryname", "systemdcgroup")
NVIDIA = "containerd.runtimes.nvidia."
PROGRAM = f"{NVIDIA}options.BinaryName"
#: A key of the default runtime. nvidia-ctk's drop-in omits it if the main file names no runtime (its issue 433).
RUNC = "containerd.runtimes.runc.runtime_type"
DEFAULT = "containerd.default_runtime_name"


def digest(dump: str) -> str:
    """Return the hash of a dump without its list of files."""
    said = "".join(line for line in dump.splitlines(keepends=True) if not line.startswith("imports = "))
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()


def others(found: Effective, want: Values) -> dict[tuple[str, ...], object]:
    """Return all values of a dump except gpuready's keys, the version and the list of files."""
    ours = {tuple(key.split(".")) for key in below(want)}
    return {
        path: value
        for path, value in leaves(found.whole).items()
        if path[0] not in ("imports", "version")
        and path[2:] not in ours
        and path[2:5] != ("containerd", "runtimes", "nvidia")
    }


def below(want: Values) -> dict[str, Value]:
    """Return the keys as paths below the CRI section."""
    return {key.removeprefix("containerd.") if key == "containerd.enable_cdi" else key: v for key, v in want.items()}


def wanted(spec: NodeSpec, found: Effective, first: str) -> dict[str, Value]:
    """Return the expected keys. ``first``: the default runtime before gpuready's first change."""
    asked = spec.runtimes.containerd_settings
    like = base(found, first)
    want: dict[str, Value] = {
        f"{NVIDIA}runtime_type": like.get("runtime_type") or f"{_RUNC}v2",
        PROGRAM: RUNTIME_PATH,
        f"{NVIDIA}options.SystemdCgroup": by_systemd(like),
    }
    if "nvidia" not in found.runtimes:  # an existing one may differ from the default runtime in other keys
        for path, value in leaves(like).items():
            if path[0] != "options" or path[-1].lower() not in _OPTIONS:
                want.setdefault(NVIDIA + ".".join(path), tuple(map(str, value)) if isinstance(value, list) else value)
    if found.default_runtime == "runc" and "runc" not in found.runtimes:  # CRI does not start without it
        want[RUNC] = f"{_RUNC}v2"
    if asked.default_runtime:
        want[DEFAULT] = "nvidia"
    elif "default_runtime" in asked.model_fields_set and found.default_runtime == "nvidia":
        want[DEFAULT] = "runc"
    if asked.cdi != "auto":
        want["containerd.enable_cdi"] = asked.cdi
    return want


def base(found: Effective, first: str) -> dict[str, Any]:
    """Return the runtime that nvidia copies: the default one, the earlier default, runc or crun.

    {} if none of them uses runc's shim.
    """
    for name in (found.default_runtime, first, "runc", "crun"):
        table = found.runtimes.get(name, {})
        if not name.startswith("nvidia") and str(table.get("runtime_type") or "").startswith(_RUNC):
            return table
    return {}


def staged(text: str) -> None:
    """Check the path in nvidia-ctk's result; nothing else of it is used. Raises ConvergeError."""
    try:
        document = toml_document.read(text)
    except toml_document.TomlError as e:
        raise nvidia_ctk.wrote(f"no TOML ({e})") from None
    paths = [
        toml_document.at(document, ("plugins", name, "containerd", "runtimes", "nvidia", "options", "BinaryName"))
        for name in SECTIONS.values()
    ]
    given = [path for path in paths if path]
    if not given or _SAME.get(str(given[0]), given[0]) != RUNTIME_PATH:
        what = f"the path {given[0]!r}" if given else "no runtime 'nvidia'"
        raise nvidia_ctk.wrote(f"{what} into its copy, not {RUNTIME_PATH}")


def by_systemd(table: Mapping[str, Any]) -> bool:
    """Tell whether a runtime uses systemd's cgroup driver."""
    return _option(table, "SystemdCgroup") is True


def _option(table: Mapping[str, Any], name: str) -> Any:
    """Return an option of a runtime; containerd ignores the case of its name."""
    options = table.get("options")
    given = options if isinstance(options, Mapping) else {}
    return given.get(name, next((value for key, value in given.items() if key.lower() == name.lower()), None))


def binary(found: Effective) -> str | None:
    path = _option(found.runtimes.get("nvidia", {}), "BinaryName")
    return _SAME.get(path, path) if isinstance(path, str) and path else None


def untrue(found: Effective, running: Cri) -> str:
    """Return how the running containerd differs from its files in gpuready's keys; empty if it does not."""
    pairs: list[tuple[str, object, object]] = [
        ("the default runtime", running.default_runtime, found.default_runtime),
        ("the runtime nvidia", leaves(running.runtimes.get("nvidia", {})), _compared(found.runtimes.get("nvidia", {}))),
    ]
    if running.enable_cdi is not None:
        pairs.append(("enable_cdi", running.enable_cdi, bool(found.cri.get("enable_cdi"))))
    return "; ".join(
        f"CRI runs with {what} {_shown(a)}, but the files say {_shown(b)}" for what, a, b in pairs if a != b
    )


def _compared(table: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    return {path: value for path, value in leaves(table).items() if path[0] in ("runtime_type", "options")}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{'.'.join(path)} = {inner!r}" for path, inner in value.items()) or "absent"
    return str(value)


def answer(found: Effective) -> str:
    """Return what CRI reports with this configuration, in the form of templates/containerd/install.sh.j2."""
    cdi = found.cri.get("enable_cdi")
    path = toml_document.at(found.runtimes, ("nvidia", "options", "BinaryName")) or ""
    return f"{found.default_runtime}|{path}|{'' if cdi is None else str(cdi).lower()}"
