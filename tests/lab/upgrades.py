"""Packages that wait in a repository on the machine itself: empty ones of higher versions, or stand-ins with files.

What is installed may well be real; what an upgrade would bring is empty and says so, because only its version counts.
"""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.lab import deb
from tests.lab.host import architecture, run_root, sh
from tests.lab.machine import Machine

ORIGIN = "gpuready-lab-upgrades"
_FOLDER = "/srv/upgrades"
_CONTROL = """Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: gpuready lab <lab@localhost>
Section: utils
Priority: optional
{relations}Description: stand-in for a package of this name
 Made for gpuready's test machines: it contains nothing that is real.
"""


def offer(
    machine: Machine,
    versions: Iterable[tuple[str, str]],
    relations: Mapping[str, str] = {},
    files: Mapping[str, Mapping[str, str]] = {},
) -> None:
    """A repository of these packages (name, version) becomes one of apt's sources; its lists are read.

    ``relations``: lines of a package's control file, such as Depends. ``files``: those of a package, by path.
    """
    with tempfile.TemporaryDirectory(prefix="upgrades-", dir=run_root()) as scratch:
        flat = Path(scratch, "flat")
        flat.mkdir()
        for name, version in versions:
            fields = {"name": name, "version": version, "architecture": architecture()}
            control = _CONTROL.format(**fields, relations=relations.get(name, ""))
            deb.build(flat, control, files.get(name, {}))
        (flat / "Packages").write_text(sh("apt-ftparchive", "packages", ".", cwd=flat), "utf-8")
        head = [word for key in ("Origin", "Label") for word in ("-o", f"APT::FTPArchive::Release::{key}={ORIGIN}")]
        (flat / "Release").write_text(sh("apt-ftparchive", *head, "release", ".", cwd=flat), "utf-8")
        machine.put(flat, _FOLDER)
    source = machine.root / "etc/apt/sources.list.d/upgrades.list"
    source.write_text(f"deb [trusted=yes] file:{_FOLDER} ./\n", "utf-8")
    only = f"-o Dir::Etc::sourcelist=/{source.relative_to(machine.root)} -o Dir::Etc::sourceparts=-"
    machine.run(f"chmod -R a+rX {_FOLDER}; apt-get -q update {only} -o APT::Get::List-Cleanup=0")
