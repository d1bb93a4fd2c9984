"""The verdicts on where the driver came from, its packages and the next boot, as rows of test_checks.py's table."""

from __future__ import annotations

from typing import Any

from gpuready.components.driver.component import UNATTENDED
from gpuready.core import resources
from gpuready.gpu.facts.boots import Boots, Module
from gpuready.state.model import Driver, File, NodeState, Package, Unknown

Row = tuple[str, str, NodeState, dict[str, Any], str]
UNREADABLE = Unknown(unknown="it could not be read")
DEBIAN = "Debian NVIDIA Maintainers <pkg-nvidia-devel@lists.alioth.debian.org>"
UBUNTU = "Ubuntu Core Developers <ubuntu-devel-discuss@lists.ubuntu.com>"
NVIDIA = "cudatools <cudatools@nvidia.com>"
NOW, NEXT = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
GPU = "0000:00:06.0 0x030200 0x2335"
KEY = "DKMS module signing key"
MOUNTED = "36 35 98:0 / /usr/local/nvidia ro - erofs /dev/vdb ro"
IN_A_CONTAINER = "36 35 98:0 / /var/lib/docker/overlay2/1/merged/usr/lib/libcuda.so.580.95.05 ro - erofs /dev/vdb ro"


def packages(*names: str, version: str = "550.163.01-2", maker: str = DEBIAN, **fields: Any) -> dict[str, Package]:
    """Packages of one version by one maker."""
    return {name: Package(version=version, arch="amd64", maker=maker, **fields) for name in names}


SET = packages("libcuda1", "libnvidia-ml1", "nvidia-kernel-dkms")
#: What lies beside a driver on many a node, and is none of it.
OTHERS = (
    packages("nvidia-container-toolkit", "libnvidia-container1", version="1.20.0-1", maker=NVIDIA)
    | packages("cuda-compat-13-0", "cuda-toolkit-13-0", version="580.95.05-0ubuntu1", maker=NVIDIA)
    | packages("nvidia-persistenced", "nvidia-settings", version="535.171.04-1")
    | packages("nvidia-modprobe", version="570.133.07-1")
    | packages("nvidia-support", "nvidia-kernel-common", version="20240109+1")
    | packages("linux-modules-nvidia-535-server-6.8.0-40-generic", version="6.8.0-40.40+1", maker=UBUNTU)
)


def module(kernel: str, version: str = "550.163.01", signer: str = "") -> Module:
    """That kernel's module, by DKMS."""
    path = f"/lib/modules/{kernel}/updates/dkms/nvidia-current.ko.xz"
    return Module(kernel=kernel, path=path, version=version, signer=signer)


def node(*modules: Module, of: dict[str, Package] | Unknown = SET, gpu: bool = True, **fields: Any) -> NodeState:
    """A node with two kernels, of which GRUB takes the newer one, whatever of both has a module."""
    given: dict[str, Any] = {
        "kernels": (NOW, NEXT),
        "installed": (NOW, NEXT),
        "modules": modules,
        "grub": (f"linux /boot/vmlinuz-{NEXT} root=/dev/vda1 ro quiet", f"linux /vmlinuz-{NOW} root=/dev/vda1"),
    }
    given |= {key: fields.pop(key) for key in (*fields,) if key in Boots.model_fields}
    driver = Driver(module_version="550.163.01", pci=(GPU,) if gpu else ())
    state: dict[str, Any] = {"kernel": NOW, "have": ("apt-get",), "packages": of, "driver": driver}
    return NodeState(**{**state, "boots": Boots(**given), **fields})


def says(path: str, text: str) -> dict[str, File]:
    """One file."""
    return {path: File(text=text, mode=0o644, uid=0, gid=0, mtime=1)}


BOTH = (module(NOW), module(NEXT))
SIGNED = (module(NOW, signer=KEY), module(NEXT, signer=KEY))
IMAGE = f"/boot/initrd.img-{NEXT}"
OLD = {"older_initramfs": (f"/boot/initrd.img-{NOW}", IMAGE)}
HOLD = {"driver": {"policy": "hold"}}
UPGRADES = packages("unattended-upgrades", version="2.12", maker="")


def _found(out: str, rc: int = 0) -> dict[str, Any]:
    return {"done": True, "initramfs": {"rc": rc, "out": out}}


VERDICTS: list[Row] = [
    # driver.owner
    ("driver.owner", "skip", node(of=OTHERS, driver=Driver()), {}, "no driver"),
    ("driver.owner", "skip", node(of=OTHERS), {}, "source of the running driver is unknown"),
    ("driver.owner", "unknown", node(of=UNREADABLE), {}, "could not be read"),
    ("driver.owner", "pass", node(of=SET | OTHERS), {}, "the driver came from packages of Debian"),
    ("driver.owner", "pass", node(of=packages("libnvidia-compute-535", maker=UBUNTU)), {}, "of Ubuntu"),
    ("driver.owner", "pass", node(of=packages("libcuda1", maker="")), {}, "the driver came from packages"),
    ("driver.owner", "pass", node(of={}, have=("apt-get", "nvidia-uninstall")), {}, ".run installer"),
    ("driver.owner", "pass", node(of=OTHERS, mounts=(MOUNTED,)), {}, "a mount"),
    ("driver.owner", "pass", node(mounts=(IN_A_CONTAINER,)), {}, "of Debian"),
    ("driver.owner", "pass", node(of={}, marks=("operator_driver",)), {}, "the GPU Operator"),
    ("driver.owner", "pass", node(of=SET | packages("nvidia-fabricmanager", maker=NVIDIA)), {}, "of Debian"),
    (
        "driver.owner",
        "fail",
        node(have=("apt-get", "nvidia-uninstall")),
        {},
        "packages of Debian (libcuda1 550.163.01-2)",
    ),
    ("driver.owner", "fail", node(mounts=(MOUNTED,)), {}, "2 drivers on one node"),
    ("driver.owner", "fail", node(marks=("operator_driver",)), {}, "/run/nvidia/driver"),
    (
        "driver.owner",
        "fail",
        node(of=SET | packages("nvidia-driver-cuda", version="580.95.05-1", maker=NVIDIA)),
        {},
        "packages of NVIDIA's repository (nvidia-driver-cuda 580.95.05-1)",
    ),
    # driver.packages
    ("driver.packages", "skip", node(of=OTHERS), {}, "no packages of the driver"),
    ("driver.packages", "skip", node(of=UNREADABLE, have=()), {}, "no packages on this node"),
    ("driver.packages", "unknown", node(of=UNREADABLE), {}, "could not be read"),
    ("driver.packages", "pass", node(of=SET | OTHERS), {}, "3 packages, all of 550.163.01"),
    (
        "driver.packages",
        "pass",
        node(
            of=packages("libnvidia-compute-580", version="580.95.05-0ubuntu1", maker=NVIDIA)
            | packages("nvidia-fabricmanager-580", version="580.95.05-1", maker=NVIDIA)
        ),
        {},
        "2 packages, all of 580.95.05",
    ),
    (
        "driver.packages",
        "pass",
        node(of=SET | packages("nvidia-utils-535-server", version="535.309.01-0ubuntu1", transitional=True)),
        {},
        "3 packages, all of 550.163.01",
    ),
    (
        "driver.packages",
        "fail",
        node(of=SET | packages("libnvidia-ml1", version="535.247.01-1")),
        {},
        "of 2 versions",
    ),
    (
        "driver.packages",
        "fail",
        node(of=SET | packages("libcuda1", configured=False)),
        {},
        "half-configured: libcuda1",
    ),
    # driver.held
    ("driver.held", "skip", node(), {}, "driver.policy: observe"),
    ("driver.held", "skip", node(of=OTHERS), HOLD, "no packages of the driver"),
    ("driver.held", "skip", node(of=UNREADABLE, have=()), HOLD, "no packages on this node"),
    ("driver.held", "unknown", node(of=UNREADABLE), HOLD, "could not be read"),
    ("driver.held", "warn", node(of=SET | UPGRADES), {}, "unattended-upgrades may move the driver"),
    ("driver.held", "pass", node(of=packages(*SET, held=True) | UPGRADES), {}, "all 3 packages"),
    (
        "driver.held",
        "fail",
        node(of=SET | packages("libcuda1", held=True)),
        HOLD,
        "nvidia-kernel-dkms are not held",
    ),
    # driver.config
    ("driver.config", "skip", node(), {}, "driver.policy: observe"),
    ("driver.config", "fail", node(), HOLD, "driver.libcuda1.held"),
    ("driver.config", "unknown", node(of=UNREADABLE), HOLD, "could not be read"),
    (
        "driver.config",
        "pass",
        node(
            of=packages("libcuda1", held=True),
            files=says(UNATTENDED, resources.document("driver/unattended.conf", names=["libcuda1"])),
        ),
        HOLD,
        "as the spec says",
    ),
    # driver.nextboot
    ("driver.nextboot", "pass", node(*BOTH), {}, f"{NEXT} has nvidia 550.163.01"),
    ("driver.nextboot", "pass", node(*BOTH, of=OTHERS), {}, f"{NEXT} has nvidia 550.163.01"),
    ("driver.nextboot", "fail", node(module(NOW)), {}, f"{NEXT} has no nvidia module"),
    ("driver.nextboot", "fail", node(dkms=("nvidia-current/550.163.01",)), {}, f"{NEXT} has no nvidia module"),
    ("driver.nextboot", "fail", node(module(NOW), module(NEXT, "535.247.01")), {}, "the packages are 550.163.01"),
    ("driver.nextboot", "pass", node(module(NOW), grub=(f"saved_entry=0123-{NOW}",)), {}, f"{NOW} has nvidia"),
    ("driver.nextboot", "fail", node(module(NOW), grub=()), {}, f"{NEXT} has no nvidia module"),
    ("driver.nextboot", "warn", node(module(NOW), grub=('set default="1>2"',)), {}, "another entry"),
    (
        "driver.nextboot",
        "warn",
        node(module(NOW), grub=("saved_entry=gnulinux-advanced",)),
        {},
        "another entry",
    ),
    ("driver.nextboot", "pass", node(module(NOW), kernels=()), {}, f"{NOW} has nvidia"),
    ("driver.nextboot", "skip", node(dkms=("nvidia/1",), kernels=(), installed=()), {}, "no kernel to judge"),
    ("driver.nextboot", "unknown", node(modules_unknown="modules: exit 1"), {}, "exit 1"),
    ("driver.nextboot", "unknown", node(*BOTH, of=UNREADABLE), {}, "could not be read"),
    ("driver.nextboot", "skip", node(marks=("operator_driver",)), {}, "driver container"),
    ("driver.nextboot", "skip", node(), {}, "the platform brings it"),
    ("driver.nextboot", "skip", node(driver=Driver()), {}, "no nvidia module on this node"),
    # driver.nouveau
    ("driver.nouveau", "skip", node(), {}, "no nvidia module"),
    ("driver.nouveau", "skip", node(*BOTH, gpu=False), {}, "nouveau does not matter"),
    ("driver.nouveau", "pass", node(*BOTH), {}, "the next kernel has no nouveau"),
    ("driver.nouveau", "warn", node(*BOTH, nouveau_for=(NEXT,)), {}, "nothing keeps nouveau"),
    (
        "driver.nouveau",
        "pass",
        node(*BOTH, nouveau_for=(NEXT,), files=says("/etc/modprobe.d/x.conf", "# x\nblacklist nouveau\n")),
        {},
        "by /etc/modprobe.d/x.conf",
    ),
    (
        "driver.nouveau",
        "warn",
        node(
            *BOTH,
            nouveau_for=(NEXT,),
            files=says("/etc/modprobe.d/x.conf", "# blacklist nouveau\nblacklist nouveaux\n"),
        ),
        {},
        "nothing keeps nouveau",
    ),
    (
        "driver.nouveau",
        "pass",
        node(*BOTH, nouveau_for=(NEXT,), cmdline="quiet modprobe.blacklist=pcspkr,nouveau ro"),
        {},
        "command line",
    ),
    ("driver.nouveau", "fail", node(*BOTH, nouveau_bound=("0000:00:06.0",)), {}, "nouveau holds 0000:00:06.0"),
    (
        "driver.nouveau",
        "fail",
        node(*BOTH, nouveau_bound=("0000:00:06.0",), cmdline="nouveau.modeset=0"),
        {},
        "it is blacklisted by the kernel's command line",
    ),
    # driver.secureboot
    ("driver.secureboot", "skip", node(*BOTH), {}, "no Secure Boot"),
    ("driver.secureboot", "skip", node(*BOTH, secure_boot=False), {}, "Secure Boot is off"),
    ("driver.secureboot", "skip", node(*BOTH, secure_boot=True, shim_insecure=True), {}, "Secure Boot is off"),
    ("driver.secureboot", "skip", node(secure_boot=True), {}, "the platform brings it"),
    ("driver.secureboot", "fail", node(*BOTH, secure_boot=True), {}, f"nvidia module of {NEXT} is not signed"),
    ("driver.secureboot", "fail", node(*BOTH, sig_enforce=True), {}, "is not signed"),
    ("driver.secureboot", "fail", node(*BOTH, lockdown="integrity"), {}, "is not signed"),
    ("driver.secureboot", "pass", node(*SIGNED, secure_boot=True), {}, f"signed by {KEY}"),
    ("driver.secureboot", "pass", node(module(NOW), secure_boot=True), {}, "no module yet"),
    (
        "driver.secureboot",
        "warn",
        node(SIGNED[0], module(NEXT, signer="new key"), secure_boot=True),
        {},
        "signed by new key",
    ),
    # driver.initramfs
    ("driver.initramfs", "skip", node(*BOTH), {}, "no initramfs of the next kernel is older"),
    ("driver.initramfs", "skip", node(*BOTH, **OLD), {}, "only verify"),
    ("driver.initramfs", "unknown", node(*BOTH, **OLD, active=_found("lsinitrd: not found\n", 127)), {}, "not found"),
    ("driver.initramfs", "pass", node(*BOTH, **OLD, active=_found("")), {}, f"no nvidia module in {IMAGE}"),
    (
        "driver.initramfs",
        "fail",
        node(*BOTH, **OLD, active=_found(f"{IMAGE}\n")),
        {},
        f"{IMAGE} holds an nvidia module",
    ),
]
