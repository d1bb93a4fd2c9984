"""Predict where Triton finds libcuda, by Triton's version, from the linker cache and files of a host or a container.

Triton compiles a small launcher and links it against libcuda, which it searches itself. A program that only uses CUDA
gets the libcuda that the loader finds. Sources: Triton's python/triton/common/build.py (2.0 and 2.1) and
third_party/nvidia/backend/driver.py (3.x), ``libcuda_dirs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sight:
    """What Triton's search depends on.

    ``cache``: what ``ldconfig -p`` lists for names that begin with libcuda.so, None without ldconfig. ``files``: paths
    that exist, each with its real path. ``env``: TRITON_LIBCUDA_PATH and LD_LIBRARY_PATH.
    """

    cache: Mapping[str, Sequence[str]] | None
    files: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)

    def listed(self, name: str) -> list[str]:
        """Return the paths in the cache whose soname contains ``name``."""
        return [path for soname, paths in (self.cache or {}).items() for path in paths if name in soname]


def triton2(sight: Sight) -> str:
    """Return the directory that Triton 2.x links from: one with libcuda.so that ldconfig lists. Empty if none."""
    return _first(sight, map(_directory, sight.listed("libcuda.so")), "libcuda.so")


def triton3(sight: Sight) -> str:
    """Return the directory that Triton 3.x uses; empty if none.

    Triton uses TRITON_LIBCUDA_PATH without checking it. It reads LD_LIBRARY_PATH only if ldconfig lists no
    libcuda.so.1, so a stale cache entry hides LD_LIBRARY_PATH.
    """
    if named := sight.env.get("TRITON_LIBCUDA_PATH"):
        return named
    if sight.cache is None:
        return ""  # Triton runs /sbin/ldconfig, and fails without it
    listed = sight.listed("libcuda.so.1")
    return _first(sight, map(_directory, listed) if listed else search_path(sight), "libcuda.so.1")


def search_path(sight: Sight) -> list[str]:
    return [d.rstrip("/") for d in sight.env.get("LD_LIBRARY_PATH", "").split(":") if d]


def phantoms(sight: Sight) -> list[str]:
    """Return the paths that the cache lists but that do not exist."""
    return [path for path in sight.listed("libcuda.so") if path not in sight.files]


def copies(sight: Sight) -> list[str]:
    """Return the distinct real files that the cache lists as libcuda.so.1; there should be only one."""
    return list(dict.fromkeys(sight.files[path] for path in sight.listed("libcuda.so.1") if path in sight.files))


def _first(sight: Sight, directories: Sequence[str] | map[str], name: str) -> str:
    return next((d for d in directories if f"{d}/{name}" in sight.files), "")


def _directory(path: str) -> str:
    return path.rpartition("/")[0]
