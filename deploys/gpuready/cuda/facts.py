"""The input of the predictor: a host with one GPU model, and an image. Frozen."""

from dataclasses import dataclass

from gpuready.base.versions import Version
from gpuready.cuda import tables
from gpuready.cuda.tables import Gpu

STACKS = ("none", "mount", "ldconfig", "hook", "disabled")
"""What happens to an image's libcuda: ``none`` without a container, else what the container toolkit does with it."""


@dataclass(frozen=True)
class Note:
    """The ELF note of a compatibility library: its CUDA, and the driver branches and NVML brands that it supports."""

    cuda: str = ""
    driver: frozenset[int] = frozenset()
    device: frozenset[int] = frozenset()


@dataclass(frozen=True)
class CompatLib:
    """One libcuda in an image's compat directory. ``note`` is None if it has no ELF note."""

    version: Version
    note: Note | None = None

    @property
    def cuda(self) -> Version:
        """The newest CUDA that this libcuda supports."""
        return tables.newest_cuda(self.version)


@dataclass(frozen=True)
class Host:
    """The parts of a node that matter here. ``toolkit``: the container toolkit's version, None if unknown.

    ``gate``: whether NVIDIA_REQUIRE_* is evaluated before a container starts. ``drives``: the driver with which
    nvidia-smi listed this GPU; this proves that the driver supports it, whatever the tables say.
    """

    driver: Version
    gpu: Gpu
    stack: str = "hook"
    toolkit: Version | None = None
    gate: bool = False
    drives: Version | None = None


@dataclass(frozen=True)
class Image:
    """An image, or an environment without a container. ``compat``: the libcudas in /usr/local/cuda/compat.

    ``own_compat``: the libcudas that the image's entrypoint may choose (compat/lib.real of NVIDIA's NGC images).
    """

    cuda: Version
    compat: tuple[CompatLib, ...] = ()
    own_compat: tuple[CompatLib, ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageFacts:
    """``image`` is None if its CUDA is missing or unknown; ``unknown`` then says why. ``notes`` are for people.

    ``sure``: the facts were read, not inferred.
    """

    image: Image | None
    unknown: str = ""
    notes: tuple[str, ...] = ()
    sure: bool = True


def stack_of(toolkit: Version | None) -> str:
    """Return what a toolkit does by default with ``--runtime=nvidia``; None: a current toolkit."""
    if toolkit is None or toolkit >= tables.since("jit_cdi_since"):
        return "hook"
    if toolkit >= tables.since("mode_since"):
        return "ldconfig"
    if toolkit >= tables.since("hook_since"):
        return "hook"
    return "disabled" if toolkit >= tables.since("mount_by_default_before") else "mount"


def gated(stack: str, toolkit: Version | None) -> bool:
    """Tell whether NVIDIA_REQUIRE_* is evaluated. libnvidia-container always does, CDI never; both use the hook."""
    if stack == "hook":
        return toolkit is not None and toolkit < tables.since("jit_cdi_since")
    return stack != "none"


def cannot_be(stack: str, toolkit: Version) -> str:
    """Return why a toolkit of that version cannot use that stack, and what it does instead; empty if it can."""
    first = {"hook": "hook_since", "ldconfig": "mode_since", "disabled": "mount_by_default_before"}.get(stack)
    if first is None or toolkit >= tables.since(first):
        return ""
    since = ".".join(map(str, tables.since(first)))
    return f"{stack} needs toolkit {since} or newer; this one uses {stack_of(toolkit)}"
