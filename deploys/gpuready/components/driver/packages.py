"""The packages of the NVIDIA driver on a node, whether they are held, and every source of a driver there. Pure.

A package belongs to the driver by its name *and* its version: everything built from the driver's sources has the
driver's version. Not part of it: tools with their own sources (nvidia-settings, nvidia-persistenced), the container
toolkit, CUDA, and packages that follow the kernel (linux-modules-nvidia-*).

NVIDIA's repository also has nvidia-driver-pinning-VERSION, which makes apt prefer that version or branch of the driver
and of its companions (priority 1000).
Sources: Debian's nvidia-graphics-drivers, Ubuntu's nvidia-graphics-drivers-* and linux-restricted-modules, NVIDIA's
repositories (Maintainer and Vendor name who built a package), nvidia-installer's README (nvidia-uninstall); dpkg(1);
for pinning packages NVIDIA's Driver Installation Guide ("Version locking") and gpu-driver-container#857 (2026-07).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.model.state import NodeState, Package

_NAMES = re.compile(
    r"(lib(nvidia|cuda|nvcuvid|nvoptix|nvsdm|egl-nvidia|gl1?-nvidia|gles-nvidia|glx-nvidia|xnvctrl)"
    r"|nvidia-|firmware-nvidia|xserver-xorg-video-nvidia|cuda-drivers|kmod-(64k-)?nvidia|dkms-nvidia|akmod-nvidia|xorg-x11-nvidia)[\w.+-]*"
)
_OTHERS = re.compile(
    r"libnvidia-(container|egl-(wayland|gbm|x11|xcb))|libxnvctrl|libcuda(rt|inj|cxx|-compat)"
    r"|nvidia-(container|docker|cuda-(?!mps)|fs|gds|prime|support|settings|persistenced|modprobe|xconfig|ctk)"
    r"|nvidia-(driver-(pinning|assistant|local)|installer-cleanup|texture|nsight|vaapi)"
)
PINNING = "nvidia-driver-pinning-"
#: A driver's version. Its branch has three digits.
_VERSION = re.compile(r"(?:\d+:)?(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.])")
#: Packages that accompany a driver and often come from another source. They do not show who installed it.
_BESIDE = re.compile(r"(cuda-drivers-fabric|nvidia-fabric-?manager|nvidia-imex|libnvidia-nscq|libnvsdm|firmware-)")
_MAKERS = (
    (r"ubuntu\.com|Canonical", "Ubuntu"),
    (r"debian\.(org|net)", "Debian"),
    (r"nvidia\.com|^NVIDIA", "NVIDIA's repository"),
    (r"RPM ?Fusion", "RPM Fusion"),
    (r"ELRepo", "ELRepo"),
)
#: Where platforms mount a whole driver, or container runtimes mount single libraries.
_MOUNTED = re.compile(
    r"(/usr/local/nvidia|/var/lib/nvidia|/home/kubernetes/bin/nvidia)(/|$)|/lib(cuda|nvidia-ml)\.so\.\d"
)
UNINSTALL = "nvidia-uninstall"


@dataclass(frozen=True)
class Owner:
    """A source of a driver on the node. ``evidence``: what shows it."""

    name: str
    evidence: str


def version(package: Package) -> str:
    """Return the driver's version in a package's version; empty if the package has another kind of version."""
    found = _VERSION.match(package.version)
    return found[1] if found else ""


def plain(name: str) -> str:
    """Return the name without the architecture, which the probe adds to a name that occurs twice."""
    return name.partition(":")[0]


def is_named(name: str) -> bool:
    """Tell whether a package with this name could belong to the driver. Its version decides."""
    return bool(_NAMES.fullmatch(plain(name))) and not _OTHERS.match(plain(name))


def members(packages: Mapping[str, Package]) -> dict[str, Package]:
    """Return the driver's packages by name.

    Transitional packages do not count: they are empty and keep the version of an earlier driver.
    """
    there = ((name, package) for name, package in sorted(packages.items()) if not package.transitional)
    return {name: package for name, package in there if is_named(name) and version(package)}


def pinning(state: NodeState) -> str:
    """Return the version or branch that a pinning package names; empty without one. They exclude each other."""
    found = (re.fullmatch(rf"{PINNING}(\d{{3}}(?:\.\d{{1,3}}){{0,2}})", plain(name)) for name in state.installed)
    return next((m[1] for m in found if m), "")


def pins(pin: str, version: str) -> bool:
    """Tell whether the version or branch of a pinning package includes a driver version."""
    return version == pin or version.startswith(f"{pin}.")


def versions(members: Mapping[str, Package]) -> list[str]:
    """Return the versions of the driver's packages; a healthy node has one."""
    return sorted({version(package) for package in members.values()})


def maker(package: Package) -> str:
    """Return who built the package, as messages name it; empty if unknown."""
    return next((name for pattern, name in _MAKERS if re.search(pattern, package.maker)), "")


def owners(state: NodeState) -> tuple[Owner, ...]:
    """Return every source of a driver; packages count once per builder. A healthy node has exactly one."""
    found: dict[str, Owner] = {}
    core = {name: package for name, package in members(state.installed).items() if not _BESIDE.match(name)}
    for name, package in core.items():
        by = maker(package)
        if by or not any(maker(other) for other in core.values()):
            source = f"packages of {by}" if by else "packages"
            found.setdefault(source, Owner(source, f"{name} {package.version}"))
    others = []
    if UNINSTALL in state.have:
        others.append(Owner("NVIDIA's .run installer", f"{UNINSTALL} is on PATH"))
    if "operator_driver" in state.marks:
        others.append(Owner("the GPU Operator's driver container", "/run/nvidia/driver"))
    places = [place for line in state.mounts if (place := _place(line)) and not place.startswith("/run/nvidia/driver")]
    if mounted := next((place for place in places if _MOUNTED.search(place)), ""):
        others.append(Owner("a mount", mounted))
    return (*found.values(), *others)


def _place(line: str) -> str:
    """Return the mount point in a line of mountinfo; empty for mounts of containers."""
    fields = line.split()
    place = fields[4] if len(fields) > 4 else ""
    return "" if place.startswith(("/var/lib/docker/", "/run/containerd/", "/var/lib/containers/")) else place
