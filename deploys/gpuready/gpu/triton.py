"""Where Triton looks for libcuda, by its generations, over a cache and files that were read: a host's or a container's.

Triton compiles a small launcher and links it against libcuda, which it searches on its own; a program that only runs
CUDA is content with what the loader finds. Sources: Triton's python/triton/common/build.py (2.0 and 2.1) and
third_party/nvidia/backend/driver.py (3.x), ``libcuda_dirs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sight:
    """What a search can see.

    ``cache``: what ``ldconfig -p`` lists for names that begin with libcuda.so, None where there is no ldconfig;
    ``files``: paths that exist, each with its real one; ``env``: TRITON_LIBCUDA_PATH and LD_LIBRARY_PATH.
    """

    cache: Mapping[str, Sequence[str]] | None
    files: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)

    def listed(self, name: str) -> list[str]:
        """Paths of the cache whose line holds ``name``."""
        return [path for soname, paths in (self.cache or {}).items() for path in paths if name in soname]


def triton2(sight: Sight) -> str:
    """The directory that Triton 2.x links from, else empty: it needs libcuda.so beside what ldconfig lists."""
    return _first(sight, map(_directory, sight.listed("libcuda.so")), "libcuda.so")


def triton3(sight: Sight) -> str:
    """The directory that Triton 3.x takes, else empty.

    TRITON_LIBCUDA_PATH is taken unseen. LD_LIBRARY_PATH counts only where ldconfig lists nothing at all, so that a
    cache with a path that is gone hides it.
    """
    if named := sight.env.get("TRITON_LIBCUDA_PATH"):
        return named
    if sight.cache is None:
        return ""  # it runs /sbin/ldconfig, and ends there
    listed = sight.listed("libcuda.so.1")
    return _first(sight, map(_directory, listed) if listed else search_path(sight), "libcuda.so.1")


def search_path(sight: Sight) -> list[str]:
    """The directories of LD_LIBRARY_PATH."""
    return [d.rstrip("/") for d in sight.env.get("LD_LIBRARY_PATH", "").split(":") if d]


def phantoms(sight: Sight) -> list[str]:
    """Paths that the cache lists and that are not there."""
    return [path for path in sight.listed("libcuda.so") if path not in sight.files]


def copies(sight: Sight) -> list[str]:
    """The real files behind what the cache lists as libcuda.so.1, each once; more than one is one too many."""
    return list(dict.fromkeys(sight.files[path] for path in sight.listed("libcuda.so.1") if path in sight.files))


def _first(sight: Sight, directories: Sequence[str] | map[str], name: str) -> str:
    return next((d for d in directories if f"{d}/{name}" in sight.files), "")


def _directory(path: str) -> str:
    return path.rpartition("/")[0]
