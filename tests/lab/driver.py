"""NVIDIA's user-space driver libraries, for machines in which a driver's files must lie somewhere.

They are Debian's non-free packages of the machine's own distribution, unpacked and not installed: real libraries of a
real version, which load and then find no device. Nothing here pretends to be a GPU.
"""

import shutil
from pathlib import Path

from tests.lab.machine import Machine

# libcuda opens the PTX compiler by itself; the other two are what every use of a driver begins with.
PACKAGES = ("libcuda1", "libnvidia-ml1", "libnvidia-ptxjitcompiler1")
_FOLDER = "var/lib/gpuready-lab"
_SCRIPT = f"""
set -eu
mkdir /{_FOLDER} && cd /{_FOLDER}
apt-get -q update >/dev/null
apt-get -q -o APT::Sandbox::User=root download {" ".join(PACKAGES)} >/dev/null
for package in *.deb; do dpkg-deb -x "$package" files; done
"""


def recipe(image: Path) -> dict[str, object]:
    """What the libraries depend on: the distribution's archive as the image knows it, and what is done."""
    return {"image": image.parent.name, "script": _SCRIPT, "layout": 2}


def fill(into: Path, machine: Machine) -> None:
    """Collect lib*.so.VERSION from the packages, with the links that the loader and the linker look for."""
    into.mkdir()
    machine.run(_SCRIPT)
    for library in sorted((machine.root / _FOLDER / "files").rglob("lib*.so.*.*")):
        if library.is_symlink():
            continue
        shutil.copy2(library, into / library.name)
        plain, _, _ = library.name.partition(".so.")
        (into / f"{plain}.so.1").symlink_to(library.name)
        (into / f"{plain}.so").symlink_to(f"{plain}.so.1")


def version(libraries: Path) -> str:
    """The driver version of unpacked libraries, which is in their names."""
    return next(path.name for path in libraries.glob("libcuda.so.*.*")).removeprefix("libcuda.so.")
