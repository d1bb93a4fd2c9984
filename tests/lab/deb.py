"""Debian packages of the lab's own making: a control file, and files by path."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.lab.host import sh


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
