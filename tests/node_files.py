"""A node's files and programs below a directory, and scripts whose absolute paths lead there.

It has two GPUs, a driver of version DRIVER and all that belongs to it. Its device nodes are links to /dev/null.
"""

import re
from pathlib import Path

DRIVER = "580.159.04"
VERSION = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build\n"
CACHE = "2 libs found in cache\n\tlibnvidia-ml.so.1 (libc6,x86-64) => {0}/usr/lib/libnvidia-ml.so.1\n"
CACHE += "\tlibcuda.so.1 (libc6,x86-64) => {0}/usr/lib/libcuda.so.1\n"
#: Beginnings of the absolute paths that lead below the directory.
_BELOW = r"(?<![\w/.$*}\]])/(?=dev/nvidia|proc/(\(?\[0-9|\$p/)|(dev/char|proc/(driver|devices)|sys|run|etc|boot|"
_BELOW += (
    r"lib/(firmware|modules)|sbin/ldconfig|var/(lib|run)|usr/(lib|lib64|src|local/nvidia|bin/nvidia-persistenced))\b)"
)


class NodeFiles:
    """A node on which all is well."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/driver/nvidia/version", VERSION)
        self.write("proc/devices", "Character devices:\n195 nvidia\n")
        self.write("sys/module/nvidia/version", f"{DRIVER}\n")
        for n in range(2):
            (root / f"proc/driver/nvidia/gpus/0000:0{n}:00.0").mkdir(parents=True)
            self.node(f"nvidia{n}")
        self.node("nvidiactl")
        self.node("nvidia-uvm")
        for name in ("libcuda", "libnvidia-ml"):
            self.library(name, DRIVER)
        (root / "run").mkdir()
        self.program("ldconfig", f"cat {root}/cache", "sbin")
        self.write("etc/ld.so.cache", "")
        self.write("etc/ld.so.conf", f"{root}/usr/lib\n")
        self.write("cache", CACHE.format(root))

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def node(self, name: str) -> None:
        (self.root / "dev").mkdir(exist_ok=True)
        (self.root / "dev" / name).symlink_to("/dev/null")

    def library(self, name: str, version: str) -> None:
        for old in self.root.glob(f"usr/lib/{name}.so.*.*"):
            old.unlink()
        self.write(f"usr/lib/{name}.so.{version}", "")
        link = self.root / f"usr/lib/{name}.so.1"
        link.unlink(missing_ok=True)
        link.symlink_to(f"{name}.so.{version}")

    def program(self, name: str, script: str, folder: str = "bin") -> None:
        self.write(f"{folder}/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)

    def below(self, script: str) -> str:
        """The script with its paths below the directory, whose programs come first."""
        found = re.sub(_BELOW, f"{self.root}/", script)
        assert "PATH=/usr/local/sbin" in found
        return found.replace("PATH=/usr/local/sbin", f"PATH={self.root}/bin:/usr/local/sbin")
