"""Disks of the virtual machines: the machines' root image with Debian's full kernel, a boot loader and RDMA's tools.

The disk boots as a server's does, BIOS, GRUB, the kernel and initrd that GRUB's menu names, so that a rebuilt initramfs
or a changed kernel command line counts after the next reboot, without the lab's help. It is made without mounting it,
and without a boot: mke2fs fills the file system, and GRUB's two parts go where grub-install would put them.
"""

import shutil
import struct
from pathlib import Path

from tests.lab import host

HOST_PACKAGES = ("qemu-system-x86", "qemu-utils", "e2fsprogs")
SIZE = 8 << 30  # bytes; the file is sparse
_START = 1 << 20  # where the only partition begins, behind GRUB's core image
# Named one by one, because what mke2fs adds by default depends on its release, and GRUB of Debian 12 cannot read all.
_FEATURES = (
    "none,has_journal,ext_attr,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,huge_file,dir_nlink,"
    "extra_isize,metadata_csum"
)
_KERNEL = "linux-image-amd64"
_PACKAGES = (
    f"{_KERNEL} initramfs-tools zstd udev grub-pc-bin grub2-common rdma-core rdmacm-utils ibverbs-utils "
    "ibverbs-providers perftest prometheus-node-exporter"
)
# What the container image masks because a container must not do it, and what a VM waits for in vain.
_UNMASKED = (
    "systemd-modules-load.service sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount "
    "dev-hugepages.mount dev-mqueue.mount"
)
# What would begin nothing here, at the price of a program to run at each boot and each daemon-reload; each release has
# some of them.
_GENERATORS = (
    "cryptsetup getty gpt-auto hibernate-resume integritysetup rc-local run ssh system-update sysv tpm2 veritysetup"
)
_FSTAB = "/dev/vda1 / ext4 errors=remount-ro 0 1\n"
# panic=1: QEMU without KVM now and then trips two processors over code that the kernel patches; it boots again then.
_GRUB = """\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_RECORDFAIL_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=ttyS0 net.ifnames=0 panic=1 systemd.default_device_timeout_sec=900"
GRUB_TERMINAL=serial
"""
# Until the VM runs update-grub for the first time: to look for the root disk it has to be running.
_GRUB_CFG = """\
linux /vmlinuz root=/dev/vda1 ro console=ttyS0 net.ifnames=0 panic=1 systemd.default_device_timeout_sec=900 quiet
initrd /initrd.img
boot
"""
# An initramfs of all modules, Debian's default, takes a VM minutes to pack without KVM. The hooks are the same ones.
INITRAMFS = {
    "etc/initramfs-tools/conf.d/gpuready-lab": "MODULES=list\nCOMPRESSLEVEL=1\n",
    "etc/initramfs-tools/modules": "ext4\nvirtio_blk\nvirtio_pci\n",
}
# The second disk is a tar of the VM's own files; they are taken over once.
_IDENTITY = """\
[Unit]
Description=Name, keys and addresses of this machine
DefaultDependencies=no
After=dev-vdb.device local-fs.target
Wants=dev-vdb.device
Before=sysinit.target
ConditionPathExists=!/var/lib/gpuready-lab-identity
[Service]
Type=oneshot
ExecStart=/bin/tar -x -C / --no-overwrite-dir -f /dev/vdb
ExecStart=/bin/hostname -F /etc/hostname
ExecStart=/bin/touch /var/lib/gpuready-lab-identity
[Install]
WantedBy=sysinit.target
"""
_NETWORK = """\
[Unit]
Description=Addresses of this machine
After=sys-subsystem-net-devices-eth0.device sys-subsystem-net-devices-eth1.device
Wants=sys-subsystem-net-devices-eth0.device sys-subsystem-net-devices-eth1.device
Before=network.target network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/ip -batch /etc/gpuready-lab-network
[Install]
WantedBy=multi-user.target
"""
_FILES = {
    "etc/fstab": _FSTAB,
    "etc/default/grub": _GRUB,
    **INITRAMFS,
    "etc/systemd/system/gpuready-lab-identity.service": _IDENTITY,
    "etc/systemd/system/gpuready-lab-network.service": _NETWORK,
}
# A VM has none of Debian's package lists, whatever its release: apt goes through their 60 MB at every call.
_UNLIST = "rm -f /var/lib/apt/lists/*_dists_* /var/cache/apt/*.bin"
# Docker (by docker.socket) and node_exporter begin when asked: without KVM Docker takes half of a boot, and few
# tests need it; what a VM installs takes it minutes.
_INSTALL = f"""
for unit in {_UNMASKED}; do rm -f /etc/systemd/system/$unit; done
for unit in modprobe@drm.service modprobe@fuse.service; do ln -s /dev/null /etc/systemd/system/$unit; done
mkdir -p /etc/systemd/system-generators
for name in {_GENERATORS}; do ln -s /dev/null /etc/systemd/system-generators/systemd-$name-generator; done
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -qy -o Dpkg::Options::=--force-confold install --no-install-recommends {_PACKAGES}
apt-get clean
{_UNLIST}
rm -f /etc/resolv.conf
systemctl enable gpuready-lab-identity.service gpuready-lab-network.service
systemctl disable grub-common.service docker.service containerd.service prometheus-node-exporter.service
mkdir -p /boot/grub/i386-pc
cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /usr/lib/grub/i386-pc/boot.img /boot/grub/i386-pc
grub-mkimage -O i386-pc -p '(hd0,msdos1)/boot/grub' -o /boot/grub/i386-pc/core.img biosdisk part_msdos ext2
touch /etc/.updated /var/.updated
"""
# In its own mount namespace, so that nothing stays mounted whatever ends it.
_MERGE = """
mount -t overlay -o "lowerdir=$LOWER,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work,volatile" overlay "$SCRATCH/root"
cd "$SCRATCH/root"
mount -t proc proc proc
cp "$RESOLV" etc/resolv.conf
chroot . sh -euc "$INSTALL"
umount proc
cp "$(readlink -f vmlinuz)" "$INTO/vmlinuz"
cp boot/grub/i386-pc/boot.img boot/grub/i386-pc/core.img "$SCRATCH"
printf %s "$GRUB_CFG" > boot/grub/grub.cfg
for data in docker containerd; do rm -rf "var/lib/$data"; cp -a "$SEED/$data" "var/lib/$data"; done
mke2fs -q -t ext4 -O "$FEATURES" -E "offset=$OFFSET" -d . "$INTO/disk.raw" "$BLOCKS"
"""


def recipe(image: Path, seed: Path) -> dict[str, object]:
    """What a disk depends on."""
    return {
        "image": image.parent.name,
        "seed": seed.name,
        "files": [_FILES, _GRUB_CFG],
        "scripts": [_INSTALL, _MERGE],
        "features": _FEATURES,
        "size": SIZE,
    }


def fill(into: Path, image: Path | str, seed: Path, resolv: Path, with_kernel: bool = True) -> None:
    """Write disk.raw, and its kernel beside it: with that one the lab finds out what this host's KVM can do.

    The image may be several directories, as overlay names them, and may have a kernel of its own.
    """
    scratch = into / "scratch"
    for part in ("upper", "work", "root"):
        (scratch / part).mkdir(parents=True)
    for path, text in _FILES.items():
        target = scratch / "upper" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    with (into / "disk.raw").open("wb") as disk:
        disk.truncate(SIZE)
    values = {
        "LOWER": image,
        "INTO": into,
        "SCRATCH": scratch,
        "RESOLV": resolv,
        "INSTALL": _INSTALL if with_kernel else _INSTALL.replace(f"{_KERNEL} ", ""),
        "SEED": seed,
        "GRUB_CFG": _GRUB_CFG,
        "FEATURES": _FEATURES,
        "OFFSET": _START,
        "BLOCKS": f"{(SIZE - _START) >> 10}K",
    }
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **{key: str(value) for key, value in values.items()}}
    host.sh("unshare", "--mount", "sh", "-euc", _MERGE, env=env)
    with (into / "disk.raw").open("r+b") as disk:
        disk.write(_boot_record((scratch / "boot.img").read_bytes()) + (scratch / "core.img").read_bytes())
        if disk.tell() > _START:
            raise host.LabError("GRUB's core image is larger than the space before the partition")
    shutil.rmtree(scratch)


def overlay(disk: Path, over: Path) -> None:
    """A disk that starts as the other one is, and keeps for itself what is written to it."""
    host.sh("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", disk, over)


def _boot_record(code: bytes) -> bytes:
    """A master boot record with GRUB's code, which loads what begins in the next sector, and one Linux partition."""
    sector = 512
    entry = struct.pack(
        "<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", _START // sector, (SIZE - _START) // sector
    )
    return code[:440] + bytes(6) + entry + bytes(48) + b"\x55\xaa"
