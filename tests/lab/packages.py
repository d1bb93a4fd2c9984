"""NVIDIA's container toolkit as Debian packages: built from source, packed by its own packaging.

The toolkit is Apache-2.0 Go and its module, as the module proxy serves it, has the packaging and the systemd units,
too; so the four commands, their maintainer scripts and their relations are the real ones of each version.
libnvidia-container (C, built against the driver) cannot be had that way: its two packages are empty and say so.
"""

import os
import shutil
from pathlib import Path

from tests.lab import cache, deb, golang
from tests.lab.host import LabError, architecture, sh

VERSIONS = ("1.18.2", "1.19.1", "1.20.1")
NAMES = (
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit-base",
    "nvidia-container-toolkit",
)
_MODULE = "github.com/NVIDIA/nvidia-container-toolkit"
_COMMANDS = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-runtime-hook", "nvidia-cdi-hook")
# As in the toolkit's Makefile: NVML's symbols are resolved at run time, from the driver's library.
_EXTLD = "-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy"
_CHANGELOG = """nvidia-container-toolkit ({version}) UNRELEASED; urgency=medium

  * Built from the released source for gpuready's test machines.

 -- gpuready lab <lab@localhost>  Thu, 01 Jan 2026 00:00:00 +0000
"""
_EMPTY = """Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: gpuready lab <lab@localhost>
Section: utils
Priority: optional
{depends}Description: empty stand-in for NVIDIA's package of this name
 Made for gpuready's test machines. NVIDIA's library of this name is built
 against the driver and is not part of this package: it contains no
 {missing}, and containers that need it fail.
"""
_STAND_INS = {
    "libnvidia-container1": ("", "libnvidia-container.so"),
    "libnvidia-container-tools": ("Depends: libnvidia-container1 (= {version})\n", "nvidia-container-cli"),
}


def asked() -> str:
    """The version that tests are to run with, as the environment has it; empty: the one that gpuready pins."""
    version = os.environ.get("GPUREADY_LAB_TOOLKIT", "")
    if version and version not in VERSIONS:
        raise LabError(f"GPUREADY_LAB_TOOLKIT={version}: the lab has {', '.join(VERSIONS)}")
    return version


def build(version: str) -> Path:
    """A cached directory with the four .deb files of that version."""
    recipe = {
        "version": version,
        "extldflags": _EXTLD,
        "changelog": _CHANGELOG,
        "empty": _EMPTY,
        "stand-ins": _STAND_INS,
        "architecture": architecture(),
    }

    def fill(into: Path) -> None:
        tree = into / "build"
        _compile(version, tree)
        _pack(f"{version}-1", tree)
        _stand_ins(f"{version}-1", into)
        shutil.rmtree(tree)

    return cache.cached("toolkit", recipe, fill)


def source(version: str) -> Path:
    """The toolkit's module of that version, with its packaging."""
    return golang.module(f"{_MODULE}@v{version}")


def _compile(version: str, tree: Path) -> None:
    """The commands, the units and the packaging side by side, as NVIDIA's own build lays them out."""
    tree.mkdir()
    go = golang.go()
    here = golang.environment() | {
        "GOBIN": str(tree),
        "GOFLAGS": "-trimpath",
        "CGO_ENABLED": "1",
        "CGO_CFLAGS": "-O2 -w",
    }
    flags = f"-s -w '-extldflags={_EXTLD}' -X {_MODULE}/internal/info.version={version}"
    sh(go, "install", "-ldflags", flags, *(f"{_MODULE}/cmd/{name}@v{version}" for name in _COMMANDS), env=here)
    module = source(version)
    parts = {"deployments/systemd": tree, "deployments/udev": tree, "packaging/debian": tree / "debian"}
    for folder, target in parts.items():
        if (module / folder).exists():  # udev: from 1.20.1 on
            shutil.copytree(module / folder, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for name in _COMMANDS:
        (tree / name).chmod(0o755)
    for path in (tree, tree / "debian"):
        path.chmod(0o755)


def _pack(version: str, tree: Path) -> None:
    """Run the module's own debian/rules; the .deb files come to lie beside the tree."""
    debian = tree / "debian"
    (debian / "changelog").write_text(_CHANGELOG.format(version=version), "utf-8")
    (debian / "rules").chmod(0o755)
    # NVIDIA builds a fifth package there which it does not publish; its commands are not built here.
    control = (debian / "control").read_text("utf-8").split("\n\n")
    (debian / "control").write_text("\n\n".join(part for part in control if "operator-ext" not in part), "utf-8")
    (debian / "nvidia-container-toolkit-operator-extensions.install").unlink(missing_ok=True)
    sh("bash", "debian/prepare", env={"VERSION": version, "SECTION": ""}, cwd=tree)
    sh("make", "-f", "debian/rules", "binary", env={"DPKG_DEB_COMPRESSOR_TYPE": "gzip"}, cwd=tree)


def _stand_ins(version: str, into: Path) -> None:
    for name, (depends, missing) in _STAND_INS.items():
        fields = {"name": name, "version": version, "architecture": architecture(), "missing": missing}
        deb.build(into, _EMPTY.format(**fields, depends=depends.format(version=version)))
