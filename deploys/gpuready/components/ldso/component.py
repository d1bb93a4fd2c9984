"""The driver's libraries in the dynamic linker's cache.

Images that mount the driver (GCP Batch, COS: /usr/local/nvidia/lib64) do not register it with ldconfig. Programs that
only run CUDA may work with LD_LIBRARY_PATH, but Triton asks ``ldconfig -p`` and fails with "libcuda.so cannot found!".
A stubs or compat directory in the cache breaks every CUDA program on the node, so gpuready refuses those.
Sources: ldconfig(8), ld.so(8), Triton's driver.py.
"""

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from posixpath import join

from gpuready.base import resources
from gpuready.base.step import Script, Step, Steps
from gpuready.components.ldso.state import BUILT_IN, DRIVER_DIRS, SONAMES, is_old_link, library_version, newest_versions
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, NotComparable, Value, Values
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Linker, NodeState, Unknown

MAIN, CONF = "/etc/ld.so.conf", "/etc/ld.so.conf.d/gpuready-nvidia.conf"
_FORBIDDEN = {"stubs", "compat"}


class Ldso(WholeFiles):
    """The driver's directories in ld.so.conf.d, and a linker cache that lists their libcuda."""

    name = "ldso"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.ldso == "off":
            return Applies(False, "ldso: off")
        linker = state.linker
        if spec.ldso == "auto" and isinstance(linker, Linker) and not _auto(state, linker):
            if _stale(state, linker, ()):
                return Applies(True, "auto: the cache is older than the last driver update")
            return Applies(False, _why_not(state, linker))
        return Applies(True, "the linker's cache must list libcuda")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
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
        files = _by_directory(linker)
        return want | {f"ldso.cache.{d}": sonames for d in dirs if (sonames := _sonames(files.get(d, ())))}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        linker = state.linker
        if isinstance(linker, Unknown):
            return {}
        dirs = tuple(line for raw in state.text(CONF).splitlines() if (line := raw.split("#")[0].strip()))
        found: dict[str, Value] = {
            "ldso.conf": dirs,
            "ldso.stale": _stale(state, linker, _dirs(spec, state, linker)),
            **ledger.actual("ldso", state, [CONF]),
        }
        # ldconfig lists a directory only once, under the first of its names: so the real file counts, too.
        listed = {name: {linker.libs.get(path, path) for path in paths} for name, paths in linker.cache.items()}
        for d, names in _by_directory(linker).items():
            found[f"ldso.cache.{d}"] = tuple(
                name
                for name in _sonames(names)
                if linker.libs.get(f"{d}/{name}", f"{d}/{name}") in listed.get(name, ())
            )
        return found

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return (CONF,)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        return ledger.restore(self.name, diff, state, ldconfig=True)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        dirs = next((c.expected for c in diff if c.key == "ldso.conf"), None)
        script = UpdateLinker()
        if isinstance(dirs, tuple):
            conf = resources.document("ldso/ldso.conf", dirs=dirs)
            script = UpdateLinker(dirs, (ledger.put(state, CONF, conf),))
        yield Step("ldso", script, summary="write ld.so.conf.d and run ldconfig")


class UpdateLinker(Script, template="ldso/converge"):
    """Write the linker's configuration, whose directories must exist, and rebuild its cache."""

    dirs: tuple[str, ...] = ()
    puts: tuple[ledger.Put, ...] = ()


def _included(state: NodeState) -> bool:
    """Tell whether ldconfig reads gpuready's file. Without ld.so.conf this is unknown, and taken as yes."""
    if MAIN not in state.files:
        return True
    words = [line.partition("#")[0].split() for line in state.files[MAIN].text.splitlines()]
    return any(w[0] == "include" and fnmatchcase(CONF, join("/etc", p)) for w in words if w for p in w[1:])


def _dirs(spec: NodeSpec, state: NodeState, linker: Linker) -> tuple[str, ...]:
    return tuple(spec.ldso) if isinstance(spec.ldso, (list, tuple)) else _auto(state, linker)


def _by_directory(linker: Linker) -> dict[str, list[str]]:
    """Return the names of the driver's files by their directory."""
    found: dict[str, list[str]] = {}
    for path in linker.libs:
        directory, _, name = path.rpartition("/")
        found.setdefault(directory, []).append(name)
    return found


def _sonames(names: Collection[str]) -> tuple[str, ...]:
    """Return the driver's SONAMEs that ldconfig will find among these: versioned files give ``lib*.so.1``."""
    return tuple(
        f"{base}.so.1" for base in ("libcuda", "libnvidia-ml") if any(re.match(rf"{base}\.so\.\d", n) for n in names)
    )


def _stale(state: NodeState, linker: Linker, dirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the libraries in the cache that ldconfig, run now, would find elsewhere or not at all.

    On a read-only mount, ldconfig lists a name although it cannot create the link, if a file of the library is beside
    it. With ``dirs``, missing libraries have keys of their own.
    """
    version, newest = state.driver.loaded, newest_versions(linker)
    found = []
    for soname in SONAMES:
        for path in linker.cache.get(soname, ()):
            phantom = path not in linker.libs and path not in newest
            found += [path] if phantom or is_old_link(linker, newest, path, version) else []
        if version and not linker.cache.get(soname) and not dirs:
            places = (f"{d}/{soname}" for d in _configured(state))
            found += [path for path in places if library_version(linker.libs.get(path, "")) == version]
    return tuple(found)


def _configured(state: NodeState) -> Iterator[str]:
    """Yield the directories in which ldconfig looks, without those of 32-bit libraries."""
    yield from BUILT_IN
    for file in state.glob("/etc/ld.so.conf").values():
        for line in file.text.splitlines():
            directory = line.partition("#")[0].strip().rstrip("/")
            if directory.startswith("/") and not re.search(r"/(lib32|i[3-6]86[^/]*)(/|$)", directory):
                yield directory


def _candidates(state: NodeState, linker: Linker) -> set[str]:
    """Return the known directories with a libcuda of the loaded version, one name for each real directory."""
    version = state.driver.loaded
    places: dict[str, str] = {}
    for known in DRIVER_DIRS:
        for path, real in linker.libs.items():
            directory, _, name = path.rpartition("/")
            if directory == known and name.startswith("libcuda.so.") and version and library_version(real) == version:
                places.setdefault(real.rpartition("/")[0], directory)
    return set(places.values())


def _auto(state: NodeState, linker: Linker) -> tuple[str, ...]:
    """Return the directory for ``auto``: only if exactly one fits, and no other entry lists it already."""
    found = _candidates(state, linker)
    if len(found) != 1:
        return ()
    if CONF not in state.files and any(
        library_version(linker.libs.get(p, p)) == (state.driver.loaded) for p in linker.cache.get("libcuda.so.1", ())
    ):
        return ()
    return tuple(found)


def _why_not(state: NodeState, linker: Linker) -> str:
    if not state.driver.loaded:
        return "auto: no NVIDIA module is loaded, so the matching libraries are unknown"
    found = sorted(_candidates(state, linker))
    if len(found) > 1:
        return f"auto: several directories hold a fitting libcuda ({', '.join(found)}); name one in ldso"
    if not found:
        return "auto: no known directory outside the system's holds a libcuda of the loaded module's version"
    return "auto: the cache lists a fitting libcuda already"
