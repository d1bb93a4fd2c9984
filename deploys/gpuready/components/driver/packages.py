"""The packages of the NVIDIA driver on a node, and everybody who brought a driver there. Pure.

The set is told by name *and* version: all that is built from the driver's sources carries its version. The tools with
sources of their own (nvidia-settings, nvidia-persistenced), the container toolkit, CUDA and the packages that follow
the kernel (linux-modules-nvidia-*, which demand the driver's own version of nvidia-kernel-common) do not. Sources:
Debian's nvidia-graphics-drivers, Ubuntu's nvidia-graphics-drivers-* and linux-restricted-modules, NVIDIA's repositories
(Maintainer and Vendor name who built a package), nvidia-installer's README (nvidia-uninstall).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.state.model import NodeState, Package

_NAMES = re.compile(
    r"(lib(nvidia|cuda|nvcuvid|nvoptix|nvsdm|egl-nvidia|gl1?-nvidia|gles-nvidia|glx-nvidia|xnvctrl)"
    r"|nvidia-|firmware-nvidia|xserver-xorg-video-nvidia|cuda-drivers|kmod-nvidia|dkms-nvidia|akmod-nvidia)[\w.+-]*"
)
_OTHERS = re.compile(
    r"libnvidia-(container|egl-(wayland|gbm|x11|xcb))|libxnvctrl|libcuda(rt|inj|cxx|-compat)"
    r"|nvidia-(container|docker|cuda-(?!mps)|fs|gds|prime|support|settings|persistenced|modprobe|xconfig|ctk)"
    r"|nvidia-(driver-(pinning|assistant|local)|installer-cleanup|texture|nsight|vaapi)"
)
#: A driver's version: its branch has three digits.
_VERSION = re.compile(r"(?:\d+:)?(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.])")
#: What comes beside a driver, often from elsewhere: it owns none.
_BESIDE = re.compile(r"(cuda-drivers-fabric|nvidia-fabric-?manager|nvidia-imex|libnvidia-nscq|libnvsdm|firmware-)")
_MAKERS = (
    (r"ubuntu\.com|Canonical", "Ubuntu"),
    (r"debian\.(org|net)", "Debian"),
    (r"nvidia\.com|^NVIDIA", "NVIDIA's repository"),
    (r"RPM ?Fusion", "RPM Fusion"),
    (r"ELRepo", "ELRepo"),
)
#: Where platforms mount a whole driver, and the libraries that container runtimes mount one by one.
_MOUNTED = re.compile(
    r"(/usr/local/nvidia|/var/lib/nvidia|/home/kubernetes/bin/nvidia)(/|$)|/lib(cuda|nvidia-ml)\.so\.\d"
)
UNINSTALL = "nvidia-uninstall"


@dataclass(frozen=True)
class Owner:
    """Somebody who brought a driver to the node; ``evidence`` is where that shows."""

    name: str
    evidence: str


def version(package: Package) -> str:
    """The driver's version in that of a package; empty where it is none of the driver's."""
    found = _VERSION.match(package.version)
    return found[1] if found else ""


def plain(name: str) -> str:
    """The name without the architecture that the probe adds to the second of two."""
    return name.partition(":")[0]


def is_named(name: str) -> bool:
    """Could a package of this name be the driver's? Its version has the last word."""
    return bool(_NAMES.fullmatch(plain(name))) and not _OTHERS.match(plain(name))


def members(packages: Mapping[str, Package]) -> dict[str, Package]:
    """The driver's packages among those that are installed, by name.

    A transitional one keeps the version with which it became empty, beside the driver that took its place.
    """
    there = ((name, package) for name, package in sorted(packages.items()) if not package.transitional)
    return {name: package for name, package in there if is_named(name) and version(package)}


def maker(package: Package) -> str:
    """Who built the package, in the words of a sentence; empty where that is not known."""
    return next((name for pattern, name in _MAKERS if re.search(pattern, package.maker)), "")


def owners(state: NodeState) -> tuple[Owner, ...]:
    """Everybody who brought a driver, packages by who built them; one is as it should be."""
    found: dict[str, Owner] = {}
    packages = state.packages if isinstance(state.packages, dict) else {}
    core = {name: package for name, package in members(packages).items() if not _BESIDE.match(name)}
    for name, package in core.items():
        by = maker(package)
        if by or not any(maker(other) for other in core.values()):
            said = f"packages of {by}" if by else "packages"
            found.setdefault(said, Owner(said, f"{name} {package.version}"))
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
    """The mount point of a line of mountinfo; what containers see is theirs."""
    fields = line.split()
    place = fields[4] if len(fields) > 4 else ""
    return "" if place.startswith(("/var/lib/docker/", "/run/containerd/", "/var/lib/containers/")) else place
