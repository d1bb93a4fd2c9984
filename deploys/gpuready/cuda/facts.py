"""What the predictor is asked about: a host with one GPU, and an image. Frozen, made from anything."""

from __future__ import annotations

from dataclasses import dataclass

from gpuready.cuda import tables
from gpuready.cuda.tables import Gpu
from gpuready.cuda.versions import Version

STACKS = ("none", "mount", "ldconfig", "hook", "disabled")
"""How an image's libcuda comes into play: no container at all, or what the container toolkit does with it."""


@dataclass(frozen=True)
class Note:
    """The ELF note of a compatibility library: its CUDA, the driver branches and the NVML brands that it works with."""

    cuda: str = ""
    driver: frozenset[int] = frozenset()
    device: frozenset[int] = frozenset()


@dataclass(frozen=True)
class CompatLib:
    """One libcuda of an image's compat directory; ``note`` is None where it has none."""

    version: Version
    note: Note | None = None

    @property
    def cuda(self) -> Version:
        """The CUDA that this libcuda speaks."""
        return tables.newest_cuda(self.version)


@dataclass(frozen=True)
class Host:
    """A node as far as this matters. ``toolkit``: the container toolkit's version, None where it is not known.

    ``gate``: whether NVIDIA_REQUIRE_* is evaluated before a container starts. ``drives``: the driver under which
    nvidia-smi listed this GPU, which is proof against any table.
    """

    driver: Version
    gpu: Gpu
    stack: str = "hook"
    toolkit: Version | None = None
    gate: bool = False
    drives: Version | None = None


@dataclass(frozen=True)
class Image:
    """An image, or a bare environment. ``compat``: what lies in /usr/local/cuda/compat.

    ``own_compat``: what the image's entrypoint itself may prefer (compat/lib.real of NVIDIA's NGC images).
    """

    cuda: Version
    compat: tuple[CompatLib, ...] = ()
    own_compat: tuple[CompatLib, ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageFacts:
    """``image`` is None where it names no CUDA or an unknown one, and ``unknown`` says so. ``notes`` are for people.

    ``sure``: it was read, not concluded.
    """

    image: Image | None
    unknown: str = ""
    notes: tuple[str, ...] = ()
    sure: bool = True


def stack_of(toolkit: Version | None) -> str:
    """What a toolkit does unless it is told otherwise, for ``--runtime=nvidia``; None: a current one."""
    if toolkit is None or toolkit >= tables.since("jit_cdi_since"):
        return "hook"
    if toolkit >= tables.since("mode_since"):
        return "ldconfig"
    if toolkit >= tables.since("hook_since"):
        return "hook"
    return "disabled" if toolkit >= tables.since("mount_by_default_before") else "mount"


def gated(stack: str, toolkit: Version | None) -> bool:
    """Is NVIDIA_REQUIRE_* evaluated? By libnvidia-container always, by CDI never; the hook belongs to both."""
    if stack == "hook":
        return toolkit is not None and toolkit < tables.since("jit_cdi_since")
    return stack != "none"


def cannot_be(stack: str, toolkit: Version) -> str:
    """Why a toolkit of that version cannot use that stack, and what it does; empty where it can."""
    first = {"hook": "hook_since", "ldconfig": "mode_since", "disabled": "mount_by_default_before"}.get(stack)
    if first is None or toolkit >= tables.since(first):
        return ""
    since = ".".join(map(str, tables.since(first)))
    return f"there is no {stack} before toolkit {since}; this one does {stack_of(toolkit)}"
