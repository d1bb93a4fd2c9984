"""CDI specs as files on the node: what each defines, whether it fits the driver, and which ones collide.

A spec contains device nodes and the driver's libraries with their version, so a driver update makes it stale. If two
specs in one directory define the same device, the device is lost. Of two directories, the later one silently wins.
Sources: the CDI specification, pkg/nvcdi of the NVIDIA container toolkit, a recorded spec of an H200.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuready.base.documents import DocumentError, read_json, read_yaml
from gpuready.components.cdi.state import ENVIRONMENT, UNIT, target, writer
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

#: In the order of their priority: the last one wins.
DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
KIND = "nvidia.com/gpu"
#: Programs of the toolkit's packages in a spec's hooks; the GPU Operator's toolkit has other paths.
_TOOLKITS = ("/usr/bin/nvidia-ctk", "/usr/bin/nvidia-cdi-hook")
#: A driver's version has three digits before the first dot; libnvidia-egl-wayland.so.1.1.13 has a version of its own.
_VERSION = re.compile(r"(?:\.so\.|/firmware/nvidia/)(\d{3,}\.\d+(?:\.\d+)?)(?:/|$)")


@dataclass(frozen=True)
class CdiSpec:
    """One file. ``paths``: the host's files that it needs. ``made``: nvidia-ctk wrote it on this host.

    ``gids``: it has the field additionalGids of CDI 0.7. An engine that does not know a field refuses the whole file.
    """

    path: str
    kind: str = ""
    devices: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    made: bool = False
    gids: bool = False
    error: str = ""

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def drivers(self) -> tuple[str, ...]:
        """The driver versions of the libraries that it mounts; normally one."""
        return tuple(sorted({m[1] for path in self.paths if (m := _VERSION.search(path))}))

    def names(self, pattern: str) -> set[str]:
        return {name for name in self.devices if re.fullmatch(pattern, name)}


def owner(spec: NodeSpec, state: NodeState) -> str:
    """Return the unit that owns the node's CDI spec; empty if none does."""
    return writer(spec.toolkit.version, state.unit(UNIT), state.systemd)


def place(spec: NodeSpec, state: NodeState) -> str:
    """Return the path of the node's CDI spec."""
    return target(owner(spec, state), state.text(ENVIRONMENT))


def specs(state: NodeState) -> tuple[CdiSpec, ...]:
    """Return all specs of the node, in the order of their directories and paths."""
    return tuple(read(path, state.files[path].text) for d in DIRECTORIES for path in state.glob(f"{d}/"))


@functools.lru_cache(maxsize=256)
def read(path: str, text: str) -> CdiSpec:
    """Parse one file; ``error`` says why it is not a CDI spec."""
    try:
        found = read_json(text) if path.endswith(".json") else read_yaml(text)
        if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
            return CdiSpec(path, error="it is not a CDI spec (no kind)")
        edits = [found, *_items(found, "devices")]
        needs = [p for edit in edits for p in _paths(edit)]
        hooks = [hook for edit in edits for hook in _edits(edit, "hooks")]
        return CdiSpec(
            path,
            found["kind"],
            tuple(str(d.get("name")) for d in _items(found, "devices")),
            tuple(dict.fromkeys(needs)),
            found["kind"] == KIND and any(hook.get("path") in _TOOLKITS for hook in hooks),
            any("additionalGids" in node for each in edits for node in _edits(each, "deviceNodes")),
        )
    except DocumentError as e:
        return CdiSpec(path, error=str(e))
    except ValueError as e:
        return CdiSpec(path, error=f"it cannot be read ({str(e)[:100]})")


def _items(holder: Any, key: str) -> Iterator[dict[str, Any]]:
    found = holder.get(key) if isinstance(holder, dict) else None
    yield from (item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def _edits(holder: Any, key: str) -> Iterator[dict[str, Any]]:
    yield from _items(holder.get("containerEdits"), key)


def _paths(holder: Any) -> Iterator[str]:
    for key, names in (("deviceNodes", ("hostPath", "path")), ("mounts", ("hostPath",)), ("hooks", ("path",))):
        for item in _edits(holder, key):
            path = next((item[n] for n in names if item.get(n)), None)
            if isinstance(path, str):
                yield path


def wanted_devices(state: NodeState, spec: CdiSpec | None) -> tuple[str, ...] | Unknown | None:
    """Return the names that the node's GPUs should have in a spec, in the spec's own naming; None if it is unknown.

    By default, nvidia-ctk names devices by index and UUID. MIG devices are GPU:INDEX; nvidia-smi does not report their
    UUIDs.
    """
    smi = state.driver.smi
    if smi is None or isinstance(smi, Unknown):
        return smi
    index = spec is None or bool(spec.names(r"\d+(:\d+)?"))
    uuid = spec is None or bool(spec.names(r"GPU-.*"))
    if not index and not uuid:
        return None
    names: set[str] = set()
    for number, block in enumerate(smi.split("<gpu id=")[1:]):
        migs = re.findall(r"<mig_device>\s*<index>(\d+)</index>", block)
        gpu = re.search(r"<uuid>(GPU-[^<]*)</uuid>", block)
        if _mig(block):
            names |= {f"{number}:{mig}" for mig in migs if index}
        else:
            names |= ({str(number)} if index else set()) | ({gpu[1]} if gpu and uuid else set())
    return tuple(sorted(names))


def seen_devices(state: NodeState, spec: CdiSpec) -> tuple[str, ...]:
    """Return the names in a spec that :func:`wanted_devices` can predict."""
    smi = state.driver.smi if isinstance(state.driver.smi, str) else ""
    apart = {"all"}
    for number, block in enumerate(smi.split("<gpu id=")[1:]):
        gpu = re.search(r"<uuid>(GPU-[^<]*)</uuid>", block)
        apart |= {str(number), gpu[1] if gpu else ""} if _mig(block) else set()
    return tuple(sorted(name for name in spec.devices if name not in apart and not name.startswith("MIG-")))


def _mig(block: str) -> bool:
    return "<current_mig>Enabled</current_mig>" in block


def missing(state: NodeState, spec: CdiSpec) -> tuple[str, ...]:
    return tuple(path for path in spec.paths if path in state.cdi_missing)


@dataclass(frozen=True)
class Collision:
    """Two specs that define the same ``devices``. ``last`` hides ``first``; in one directory neither counts."""

    first: CdiSpec
    last: CdiSpec
    devices: tuple[str, ...]


def collisions(state: NodeState) -> tuple[Collision, ...]:
    """Return the pairs of readable specs that define the same devices of one kind."""
    found = [spec for spec in specs(state) if not spec.error]
    return tuple(
        Collision(one, other, common)
        for i, one in enumerate(found)
        for other in found[i + 1 :]
        if one.kind == other.kind and (common := tuple(sorted(set(one.devices) & set(other.devices))))
    )
