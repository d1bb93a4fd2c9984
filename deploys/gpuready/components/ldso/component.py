"""The driver's libraries in the dynamic linker's cache.

Why: on images that mount the driver (GCP Batch, COS: /usr/local/nvidia/lib64) nobody tells ldconfig. Programs that
only run CUDA may get by with LD_LIBRARY_PATH; Triton asks ``ldconfig -p`` and stops with "libcuda.so cannot found!".
A stubs or compat directory here breaks every CUDA program of the node, so those are refused.
Sources: ldconfig(8), ld.so(8), Triton's driver.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import join

from gpuready.core import ledger, resources
from gpuready.core.component import Applies, Change, Component, NotComparable, Value
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.linker import DRIVER_DIRS, library_version
from gpuready.state.model import Linker, NodeState, Unknown

MAIN, CONF = "/etc/ld.so.conf", "/etc/ld.so.conf.d/gpuready-nvidia.conf"
_FORBIDDEN = {"stubs", "compat"}


class Ldso(Component):
    """One file in ld.so.conf.d with the directories of the spec, and a cache that lists their libcuda."""

    name = "ldso"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.ldso == "off":
            return Applies(False, "ldso: off")
        if isinstance(state.linker, Unknown):
            return Applies(True, "the linker's cache must list libcuda")
        if spec.ldso == "auto" and not _auto(state, state.linker):
            if _stale(state, state.linker, ()):
                return Applies(True, "auto: the cache is older than the last driver update")
            return Applies(False, _why_not(state, state.linker))
        return Applies(True, "the linker's cache must list libcuda")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        linker = state.linker
        if isinstance(linker, Unknown):
            raise NotComparable(f"the linker's cache cannot be read: {linker.unknown}")
        dirs = _dirs(spec, state, linker)
        for d in dirs:
            for path, real in linker.libs.items():
                if path.rpartition("/")[0] == d and _FORBIDDEN & set(real.split("/")):
                    raise NotComparable(
                        f"{d} is really {real.rpartition('/')[0]}: a stubs or compat directory is never listed"
                    )
        want: dict[str, Value] = {"ldso.stale": ()}
        if dirs and not _included(state):
            raise NotComparable(
                f"{MAIN} does not include {CONF.rpartition('/')[0]}/*.conf, so ldconfig would not read {CONF}; add the "
                "line `include /etc/ld.so.conf.d/*.conf` there"
            )
        if dirs:
            want["ldso.conf"] = dirs
        return want | {f"ldso.cache.{d}": _libs(linker, d) for d in dirs if _libs(linker, d)}

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        linker = state.linker
        if isinstance(linker, Unknown):
            return {}
        conf = state.files[CONF].text if CONF in state.files else ""
        dirs = tuple(line for line in (raw.split("#")[0].strip() for raw in conf.splitlines()) if line)
        found: dict[str, Value] = {
            "ldso.conf": dirs,
            "ldso.stale": _stale(state, linker, _dirs(spec, state, linker)),
            **ledger.actual("ldso", state, [CONF]),
        }
        for d in {path.rpartition("/")[0] for path in linker.libs}:
            found[f"ldso.cache.{d}"] = tuple(name for name in _libs(linker, d) if _listed(linker, d, name))
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        return ledger.whole("ldso", state, [CONF])

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if diff[0].key.startswith("ldso.files."):
            yield from ledger.restore("ldso", diff, state, ldconfig=True)
            return
        dirs = next((c.expected for c in diff if c.key == "ldso.conf"), None)
        script = UpdateLinker()
        if isinstance(dirs, tuple):
            conf = resources.document("ldso/ldso.conf", dirs=dirs)
            script = UpdateLinker(dirs, (ledger.put(state, CONF, conf),))
        yield Step("ldso", script, summary="write ld.so.conf.d and run ldconfig")


@dataclass(frozen=True)
class UpdateLinker(Script):
    """Write the linker's configuration, whose directories must exist, and build its cache again."""

    template = "ldso/converge"
    dirs: tuple[str, ...] = ()
    puts: tuple[ledger.Put, ...] = ()


def _included(state: NodeState) -> bool:
    """Does ldconfig read our file? Without ld.so.conf nothing is known of it."""
    if MAIN not in state.files:
        return True
    words = [line.partition("#")[0].split() for line in state.files[MAIN].text.splitlines()]
    return any(w[0] == "include" and fnmatchcase(CONF, join("/etc", p)) for w in words if w for p in w[1:])


def _dirs(spec: NodeSpec, state: NodeState, linker: Linker) -> tuple[str, ...]:
    return tuple(spec.ldso) if isinstance(spec.ldso, (list, tuple)) else _auto(state, linker)


def _libs(linker: Linker, directory: str) -> tuple[str, ...]:
    """SONAMEs of the driver that ldconfig will find in a directory: versioned files give ``lib*.so.1``."""
    names = {path.rpartition("/")[2] for path in linker.libs if path.rpartition("/")[0] == directory}
    return tuple(
        f"{base}.so.1" for base in ("libcuda", "libnvidia-ml") if any(re.match(rf"{base}\.so\.\d", n) for n in names)
    )


def _listed(linker: Linker, directory: str, name: str) -> bool:
    """Is this very file in the cache? ldconfig lists a place once, under the first of its names."""
    path, listed = f"{directory}/{name}", linker.cache.get(name, ())
    return path in listed or (path in linker.libs and linker.libs[path] in [linker.libs.get(p) for p in listed])


def _stale(state: NodeState, linker: Linker, dirs: tuple[str, ...]) -> tuple[str, ...]:
    """Libraries of the cache that ldconfig, run now, would find elsewhere or not at all.

    Where a file of theirs is beside it ldconfig lists a name although it cannot make the link (a read-only mount). With
    ``dirs``, what is not listed has keys of its own.
    """
    version = state.driver.loaded
    found = []
    for soname, base in (("libcuda.so.1", "libcuda.so."), ("libnvidia-ml.so.1", "libnvidia-ml.so.")):
        for path in linker.cache.get(soname, ()):
            directory = path.rpartition("/")[0]
            beside = {library_version(p) for p in linker.libs if p.startswith(f"{directory}/{base}")} - {""}
            leads = library_version(linker.libs.get(path, ""))
            newest = max(beside, key=_order, default="")
            if (path not in linker.libs and not beside) or (leads and version and version == newest != leads):
                found.append(path)
        if version and not linker.cache.get(soname) and not dirs:
            listed = (f"{d}/{soname}" for d in _configured(state))
            found += [path for path in listed if library_version(linker.libs.get(path, "")) == version]
    return tuple(found)


def _configured(state: NodeState) -> Iterator[str]:
    """The directories that ldconfig is told of, but for those of 32-bit libraries, which are never asked for here."""
    for file in state.glob("/etc/ld.so.conf").values():
        for line in file.text.splitlines():
            directory = line.partition("#")[0].strip().rstrip("/")
            if directory.startswith("/") and not re.search(r"/(lib32|i[3-6]86[^/]*)(/|$)", directory):
                yield directory


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _candidates(state: NodeState, linker: Linker) -> set[str]:
    """Known directories with a libcuda of the loaded module's version, one name (the usual) for each real place."""
    version = state.driver.module_version or state.driver.proc_version
    places: dict[str, str] = {}
    for known in DRIVER_DIRS:
        for path, real in linker.libs.items():
            directory, _, name = path.rpartition("/")
            if directory == known and name.startswith("libcuda.so.") and version and library_version(real) == version:
                places.setdefault(real.rpartition("/")[0], directory)
    return set(places.values())


def _auto(state: NodeState, linker: Linker) -> tuple[str, ...]:
    """What ``auto`` lists: exactly one fitting directory, and only if nobody else's entry serves it already."""
    found = _candidates(state, linker)
    if len(found) != 1:
        return ()
    if CONF not in state.files and any(
        library_version(linker.libs.get(p, p)) == (state.driver.module_version or state.driver.proc_version)
        for p in linker.cache.get("libcuda.so.1", ())
    ):
        return ()
    return tuple(found)


def _why_not(state: NodeState, linker: Linker) -> str:
    if not state.driver.module_version and not state.driver.proc_version:
        return "auto: no NVIDIA module is loaded, so the matching libraries are unknown"
    found = sorted(_candidates(state, linker))
    if len(found) > 1:
        return f"auto: several directories hold a fitting libcuda ({', '.join(found)}); name one in ldso"
    if not found:
        return "auto: no known directory outside the system's holds a libcuda of the loaded module's version"
    return "auto: the cache lists a fitting libcuda already"
