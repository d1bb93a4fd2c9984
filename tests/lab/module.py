"""A stand-in for the NVIDIA kernel module on a machine: what a loaded one shows in /proc, and nothing that it does.

Mounts lie over /proc, so that the driver's real tools find a version, device numbers and permissions. There is no GPU,
and no program comes further than that: nvidia-smi and cuInit fail as they do where a module does not answer.
"""

from __future__ import annotations

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
