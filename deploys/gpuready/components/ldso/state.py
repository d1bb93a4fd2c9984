"""The driver's libraries as the dynamic linker sees them: its cache, their directories and versions.

Formats: ldconfig(8) -p, ld.so(8) LD_TRACE_LOADED_OBJECTS.
"""

import re
from collections.abc import Mapping

from pydantic import Field

from gpuready.base.facts import Facts, Unknown
from gpuready.base.records import Records
from gpuready.base.versions import leading

SONAMES = ("libcuda.so.1", "libnvidia-ml.so.1")
#: Where platforms put the driver's libraries if no package installs them.
DRIVER_DIRS = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/var/lib/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/wsl/lib",
    "/cm/local/apps/cuda/libs/current/lib64",
)
#: Where ldconfig looks without configuration. Packages of RHEL-like distributions put the driver's libraries there.
BUILT_IN = ("/usr/lib64",)


class Linker(Facts):
    """The dynamic linker's view: its cache, the driver libraries on disk, and the libcuda that the loader finds."""

    cache: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    libs: dict[str, str] = Field(default_factory=dict)
    loader: str = ""


def library_version(realpath: str) -> str:
    """``libcuda.so.580.159.04`` -> ``580.159.04``; empty for a name without a version."""
    m = re.search(r"\.so\.(\d{1,9}\.\d{1,9}(?:\.\d{1,9})?)$", realpath)
    return m[1] if m else ""


def other_library(linker: Linker | Unknown, loaded: str) -> str:
    """Return the version of the NVML library that the linker finds, if it differs from the loaded driver's."""
    if isinstance(linker, Unknown):
        return ""
    path = next(iter(linker.cache.get("libnvidia-ml.so.1", ())), "")
    version = library_version(linker.libs.get(path, path))
    return version if version != loaded else ""


def newest_versions(linker: Linker) -> dict[str, str]:
    """Return the newest version of each library's files in its directory: ``DIR/libcuda.so.1`` -> 580.159.04."""
    newest: dict[str, str] = {}
    for path in linker.libs:
        version = library_version(path)
        link = f"{path.removesuffix(version)}1"
        if version and leading(version, 3) > leading(newest.get(link, ""), 3):
            newest[link] = version
    return newest


def is_old_link(linker: Linker, newest: Mapping[str, str], path: str, loaded: str) -> bool:
    """Tell whether a link leads to another version than the loaded driver's, whose library is the newest beside it.

    ldconfig renews such a link. ``look_at_libraries`` in templates/lib/stale.sh.j2 has the same rule.
    """
    version = library_version(linker.libs.get(path, ""))
    return bool(version and loaded) and version != loaded == newest.get(path, "")


_CACHED = re.compile(r"^[ \t]+(\S+) \(([^)\n]*)\) => (.+)$", re.M)


def linker(r: Records) -> Linker | Unknown:
    """Parse the linker's cache, the libraries that the probe found, and the loader's trace."""
    cache, loader = r.run("ldcache"), r.run("loader")
    if cache is None or isinstance(cache, Unknown):
        return cache or Unknown(unknown="no /sbin/ldconfig on this node")
    found: dict[str, list[str]] = {}
    for soname, flags, path in _CACHED.findall(cache):
        # Only libcuda and NVML matter. Skip the 32-bit libraries of the same name.
        if soname.startswith(("libcuda.so", "libnvidia-ml.so")) and ("x86-64" in flags or "AArch64" in flags):
            found.setdefault(soname, []).append(path)
    traced = re.search(r"libcuda\.so\.1 => (\S+)", loader) if isinstance(loader, str) else None
    rows = (line.split("\t", 1) for line in r.text("libs").splitlines())
    return Linker(
        cache={k: tuple(v) for k, v in found.items()},
        libs={row[0]: row[1] for row in rows if len(row) == 2},
        loader=traced[1] if traced else "",
    )
