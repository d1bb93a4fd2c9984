"""Debian packages: of the lab's own making (a control file, and files by path), and unpacked from the archive."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.lab.host import LabError, archives, sh

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def build(into: Path, control: str, files: Mapping[str, str] = {}) -> None:
    """Write a .deb into a folder: files below /etc are conffiles, those that begin with ``#!`` are programs."""
    with tempfile.TemporaryDirectory(prefix="gpuready-lab-deb-") as scratch:
        tree = Path(scratch, "tree")
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(control, "utf-8")
        kept = [path for path in files if path.startswith("/etc/")]
        (tree / "DEBIAN/conffiles").write_text("".join(f"{path}\n" for path in kept), "utf-8")
        for path, text in files.items():
            file = tree / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            file.chmod(0o755 if text.startswith("#!") else 0o644)
        sh("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, into)


def unpack(suite: str, packages: Iterable[str], folder: Path, root: Path | None = None) -> None:
    """Unpack packages of a suite into files/ of an empty directory.

    With a machine's root come those that they depend on, as far as it lacks them.
    """
    found = archives()
    if found is None:
        raise LabError(f"{', '.join(packages)} come from Debian's archive, and this host's apt knows none")
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "archives/partial").mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {found[0]} {suite} main\n", "utf-8")
    own = {
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": root / "var/lib/dpkg/status" if root else "/dev/null",
        "Dir::Cache": folder,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    options = [word for key, value in own.items() for word in ("-o", f"{key}={value}")]
    verb = ["install", "--download-only", "--no-install-recommends", "--yes"] if root else ["download"]
    sh("apt-get", *options, "-q", "update")
    sh("apt-get", *options, "-q", *verb, *packages, cwd=folder)
    for package in folder.glob("**/*.deb"):
        sh("dpkg-deb", "-x", package, folder / "files")
