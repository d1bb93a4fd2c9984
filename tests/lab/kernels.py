"""Kernels for a machine that has none of its own: files in /boot and modules that modinfo(8) reads, and nothing boots.

A machine shares its host's kernel, so what would boot next is files alone; depmod(8) there makes their index.
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.lab.machine import Machine


def module(**fields: str) -> bytes:
    """An ELF object without code whose .modinfo section says that."""
    names = b"\0.shstrtab\0.modinfo\0"
    said = b"".join(f"{key}={value}".encode() + b"\0" for key, value in fields.items())
    sections = [(0, 0, 0, 0), (1, 3, 64, len(names)), (11, 1, 64 + len(names), len(said))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, kind, 0, 0, at, size, 0, 0, 1, 0) for n, kind, at, size in sections)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    at = 64 + len(names) + len(said)
    head += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(sections), 1)
    return head + names + said + table


def install(machine: Machine, kernel: str, **modules: bytes) -> None:
    """A kernel of that name, with modules by their file names without .ko."""
    place = machine.root / f"usr/lib/modules/{kernel}"
    for name, content in modules.items():
        path = place / f"updates/dkms/{name.replace('_', '-')}.ko"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    place.mkdir(parents=True, exist_ok=True)
    for listing in ("modules.order", "modules.builtin"):
        Path(place / listing).touch()
    (machine.root / f"boot/vmlinuz-{kernel}").touch()
    machine.run(f"depmod {kernel}")
