"""A stand-in for the NVIDIA kernel module on a machine: what a loaded one shows in /proc, and nothing that it does.

Mounts lie over /proc, so that the driver's real tools find a version, device numbers and permissions. There is no GPU,
and no program comes further than that: nvidia-smi and cuInit fail as they do where a module does not answer.

A machine shares its host's kernel, so what would boot next is files alone: kernels in /boot, modules that modinfo(8)
reads, and the index that depmod(8) makes of them.
"""

import struct
from pathlib import Path

from tests.lab.machine import Machine

_SCRIPT = r"""
read -r version uvm </etc/lab-module
for f in /proc/driver /proc/devices; do while umount -q "$f"; do :; done; done
mount -t tmpfs lab-module /proc/driver && mkdir -p /proc/driver/nvidia/gpus /run/lab-module
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $version  Stand-in of a test machine" >/proc/driver/nvidia/version
printf '%s\n' 'ModifyDeviceFiles: 1' 'DeviceFileUID: 0' 'DeviceFileGID: 0' 'DeviceFileMode: 438' \
  >/proc/driver/nvidia/params
sed "/^Block/i 195 nvidia\n195 nvidiactl\n$uvm nvidia-uvm\n" /proc/devices | sed '/./,/^$/!d' >/run/lab-module/devices
mount --bind /run/lab-module/devices /proc/devices
"""
_UNIT = """[Unit]
Before=nvidia-cdi-refresh.service gpuready-reconverge.service docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /usr/local/lib/lab-module.sh

[Install]
WantedBy=multi-user.target
"""


def load(machine: Machine, version: str, uvm: int = 507) -> None:
    """From now on, and after boots, that version seems to be loaded, with that major number of nvidia-uvm."""
    (machine.root / "etc/lab-module").write_text(f"{version} {uvm}\n", "utf-8")
    (machine.root / "usr/local/lib/lab-module.sh").write_text(_SCRIPT, "utf-8")
    (machine.root / "etc/systemd/system/lab-module.service").write_text(_UNIT, "utf-8")
    machine.run("systemctl enable -q lab-module && systemctl restart lab-module")


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
