"""Verdicts on where the driver came from, its packages and the next boot."""

from typing import Any

import pytest

from gpuready.base import resources
from gpuready.catalogue import BY_ID
from gpuready.components.driver.component import UNATTENDED
from gpuready.components.driver.state import Boots, Module
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, Linker, NodeState, Package, Unknown
from tests.gpu.test_libcuda_verdicts import REAL, leading, linker
from tests.model.probe_answers import DRIVER, h200
from tests.verdicts import (
    GPU,
    LOADED,
    UNREADABLE,
    WITHOUT_GPUS,
    Row,
    fails,
    held,
    is_unknown,
    passes,
    root_files,
    skips,
    state,
    warns,
)

DEBIAN = "Debian NVIDIA Maintainers <pkg-nvidia-devel@lists.alioth.debian.org>"
UBUNTU = "Ubuntu Core Developers <ubuntu-devel-discuss@lists.ubuntu.com>"
NVIDIA = "cudatools <cudatools@nvidia.com>"
NOW, NEXT = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
KEY = "DKMS module signing key"
MOUNTED = "36 35 98:0 / /usr/local/nvidia ro - erofs /dev/vdb ro"
IN_A_CONTAINER = "36 35 98:0 / /var/lib/docker/overlay2/1/merged/usr/lib/libcuda.so.580.95.05 ro - erofs /dev/vdb ro"


def packages(*names: str, version: str = "550.163.01-2", maker: str = DEBIAN, **fields: Any) -> dict[str, Package]:
    """Packages of one version by one maker."""
    return {name: Package(version=version, arch="amd64", maker=maker, **fields) for name in names}


SET = packages("libcuda1", "libnvidia-ml1", "nvidia-kernel-dkms")
#: What lies beside a driver on many a node, and is none of it.
OTHERS = (
    packages("nvidia-container-toolkit", "libnvidia-container1", version="1.20.1-1", maker=NVIDIA)
    | packages("cuda-compat-13-0", "cuda-toolkit-13-0", version="580.95.05-0ubuntu1", maker=NVIDIA)
    | packages("nvidia-persistenced", "nvidia-settings", version="535.171.04-1")
    | packages("nvidia-modprobe", version="570.133.07-1")
    | packages("nvidia-support", "nvidia-kernel-common", version="20240109+1")
    | packages("linux-modules-nvidia-535-server-6.8.0-40-generic", version="6.8.0-40.40+1", maker=UBUNTU)
)


def pinning(pin: str) -> dict[str, Package]:
    """NVIDIA's package that pins a version or branch of the driver."""
    return packages(f"nvidia-driver-pinning-{pin}", version=f"{pin}-1ubuntu1", maker=NVIDIA)


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


BOTH = (module(NOW), module(NEXT))
ABSENT = node(*BOTH, driver=Driver())
SIGNED = (module(NOW, signer=KEY), module(NEXT, signer=KEY))
KEYED = (module(NOW), module(NEXT, signer=KEY).model_copy(update={"key": "3e41"}))
MOK = {"secure_boot": True, "mok": "/var/lib/dkms/mok.pub", "mok_serial": "3e41"}
IMAGE = f"/boot/initrd.img-{NEXT}"
OLD = {"older_initramfs": (f"/boot/initrd.img-{NOW}", IMAGE)}
HOLD = {"driver": {"policy": "hold"}}
UPGRADES = packages("unattended-upgrades", version="2.12", maker="")
CUDA = packages("nvidia-driver-cuda", version="580.95.05-0ubuntu1", maker=NVIDIA)
MANAGER = packages("nvidia-fabricmanager-580", version="580.95.05-1", maker=NVIDIA)
NEWER = packages("nvidia-driver-cuda", version="595.91.07-1", maker=NVIDIA)
TRANSITIONAL = packages("nvidia-utils-535-server", version="535.309.01-0ubuntu1", transitional=True)
KEPT_OUT = root_files({UNATTENDED: resources.document("driver/unattended.conf", names=["libcuda1"])})
BOUND = {"nouveau_bound": ("0000:00:06.0",)}


def modprobed(text: str, **fields: Any) -> NodeState:
    """A node whose next kernel has nouveau, and this file in modprobe.d."""
    return node(*BOTH, nouveau_for=(NEXT,), files=root_files({"/etc/modprobe.d/x.conf": text}), **fields)


def _found(out: str, rc: int = 0) -> dict[str, Any]:
    return {"done": {}, "initramfs": {"rc": rc, "out": out}}


OLD_NVML = {"libnvidia-ml.so.1": ("/l/libnvidia-ml.so.550.54.15",)}
VERDICTS: list[Row] = [
    # driver.owner
    skips("driver.owner", "no driver", node(of=OTHERS, driver=Driver())),
    skips("driver.owner", "source of the running driver is unknown", node(of=OTHERS)),
    is_unknown("driver.owner", "could not be read", node(of=UNREADABLE)),
    passes("driver.owner", "the driver came from packages of Debian", node(of=SET | OTHERS)),
    passes("driver.owner", "of Ubuntu", node(of=packages("libnvidia-compute-535", maker=UBUNTU))),
    passes("driver.owner", "the driver came from packages", node(of=packages("libcuda1", maker=""))),
    passes("driver.owner", ".run installer", node(of={}, have=("apt-get", "nvidia-uninstall"))),
    passes("driver.owner", "a mount", node(of=OTHERS, mounts=(MOUNTED,))),
    passes("driver.owner", "of Debian", node(mounts=(IN_A_CONTAINER,))),
    passes("driver.owner", "the GPU Operator", node(of={}, marks=("operator_driver",))),
    passes("driver.owner", "of Debian", node(of=SET | packages("nvidia-fabricmanager", maker=NVIDIA))),
    fails("driver.owner", "packages of Debian (libcuda1 550.163.01-2)", node(have=("apt-get", "nvidia-uninstall"))),
    fails("driver.owner", "2 drivers on one node", node(mounts=(MOUNTED,))),
    fails("driver.owner", "/run/nvidia/driver", node(marks=("operator_driver",))),
    fails("driver.owner", "of NVIDIA's repository (nvidia-driver-cuda 580.95.05-0ubuntu1)", node(of=SET | CUDA)),
    # driver.packages
    skips("driver.packages", "no packages of the driver", node(of=OTHERS)),
    skips("driver.packages", "no packages on this node", node(of=UNREADABLE, have=())),
    is_unknown("driver.packages", "could not be read", node(of=UNREADABLE)),
    passes("driver.packages", "3 packages at 550.163.01", node(of=SET | OTHERS)),
    passes("driver.packages", "2 packages at 580.95.05", node(of=CUDA | MANAGER)),
    passes("driver.packages", "3 packages at 550.163.01", node(of=SET | TRANSITIONAL)),
    fails("driver.packages", "have 2 versions", node(of=SET | packages("libnvidia-ml1", version="535.247.01-1"))),
    fails("driver.packages", "half-configured: libcuda1", node(of=SET | packages("libcuda1", configured=False))),
    # driver.held
    skips("driver.held", "driver.policy: observe", node()),
    skips("driver.held", "no packages of the driver", node(of=OTHERS), HOLD),
    skips("driver.held", "no packages on this node", node(of=UNREADABLE, have=()), HOLD),
    is_unknown("driver.held", "could not be read", node(of=UNREADABLE), HOLD),
    warns("driver.held", "unattended-upgrades may change the driver", node(of=SET | UPGRADES)),
    passes("driver.held", "all 3 packages", node(of=packages(*SET, held=True) | UPGRADES)),
    fails("driver.held", "nvidia-kernel-dkms are not held", node(of=SET | packages("libcuda1", held=True)), HOLD),
    passes("driver.held", "nvidia-driver-pinning-595.91.07 keeps", node(of=NEWER | pinning("595.91.07") | UPGRADES)),
    passes("driver.held", "nvidia-driver-pinning-595.91.07 keeps", node(of=NEWER | pinning("595.91.07")), HOLD),
    warns("driver.held", "does not keep 595.91.07", node(of=NEWER | pinning("595") | UPGRADES)),
    fails("driver.held", "does not keep 595.91.07", node(of=NEWER | pinning("595")), HOLD),
    skips("driver.held", "observe", node(of=NEWER | pinning("595"))),
    warns("driver.held", "apt upgrade replaces the driver", node(of=NEWER | pinning("610"))),
    warns("driver.held", "apt upgrade replaces the driver", node(of=NEWER | pinning("595.9"))),
    passes(
        "driver.held", "all 1 packages", node(of=packages(*NEWER, version="595.91.07-1", held=True) | pinning("610"))
    ),
    passes("driver.packages", "1 package at 595.91.07", node(of=NEWER | pinning("610"))),
    # driver.config
    skips("driver.config", "driver.policy: observe", node()),
    fails("driver.config", "driver.libcuda1.held", node(), HOLD),
    is_unknown("driver.config", "could not be read", node(of=UNREADABLE), HOLD),
    passes("driver.config", "as the spec says", node(of=packages("libcuda1", held=True), files=KEPT_OUT), HOLD),
    # driver.nextboot
    passes("driver.nextboot", f"{NEXT} has nvidia 550.163.01", node(*BOTH)),
    passes("driver.nextboot", f"{NEXT} has nvidia 550.163.01", node(*BOTH, of=OTHERS)),
    fails("driver.nextboot", f"{NEXT} has no nvidia module", node(module(NOW))),
    fails("driver.nextboot", f"{NEXT} has no nvidia module", node(dkms=("nvidia-current/550.163.01",))),
    fails("driver.nextboot", "the packages are 550.163.01", node(module(NOW), module(NEXT, "535.247.01"))),
    passes("driver.nextboot", f"{NOW} has nvidia", node(module(NOW), grub=(f"saved_entry=0123-{NOW}",))),
    fails("driver.nextboot", f"{NEXT} has no nvidia module", node(module(NOW), grub=())),
    warns("driver.nextboot", "an entry other than the first", node(module(NOW), grub=('set default="1>2"',))),
    warns("driver.nextboot", "other than the first", node(module(NOW), grub=("saved_entry=gnulinux-advanced",))),
    passes("driver.nextboot", f"{NOW} has nvidia", node(module(NOW), kernels=())),
    skips("driver.nextboot", "no kernel to check", node(dkms=("nvidia/1",), kernels=(), installed=())),
    is_unknown("driver.nextboot", "exit 1", node(modules_unknown="modules: exit 1")),
    is_unknown("driver.nextboot", "could not be read", node(*BOTH, of=UNREADABLE)),
    skips("driver.nextboot", "driver container", node(marks=("operator_driver",))),
    skips("driver.nextboot", "the platform provides it", node()),
    skips("driver.nextboot", "no nvidia module on this node", node(driver=Driver())),
    # driver.nouveau
    skips("driver.nouveau", "nouveau holds no GPU; no nvidia module on this node", node(driver=Driver(pci=(GPU,)))),
    skips("driver.nouveau", "nouveau holds no GPU; the loaded module is not below /lib/modules", node()),
    skips("driver.nouveau", "nouveau holds no GPU; no nvidia module is built yet", node(dkms=("550.163.01",))),
    skips("driver.nouveau", "no GPU on this node", node(*BOTH, gpu=False)),
    passes("driver.nouveau", "the next kernel has no nouveau", node(*BOTH)),
    warns("driver.nouveau", "nothing keeps nouveau", node(*BOTH, nouveau_for=(NEXT,))),
    passes("driver.nouveau", "by /etc/modprobe.d/x.conf", modprobed("# x\nblacklist nouveau\n")),
    warns("driver.nouveau", "nothing keeps nouveau", modprobed("# blacklist nouveau\nblacklist nouveaux\n")),
    passes("driver.nouveau", "command line", modprobed("", cmdline="quiet modprobe.blacklist=pcspkr,nouveau ro")),
    fails("driver.nouveau", "nouveau holds 0000:00:06.0", node(*BOTH, **BOUND)),
    fails("driver.nouveau", "by the kernel's command line", node(*BOTH, **BOUND, cmdline="nouveau.modeset=0")),
    # driver.secureboot
    skips("driver.secureboot", "no Secure Boot", node(*BOTH)),
    skips("driver.secureboot", "Secure Boot is off", node(*BOTH, secure_boot=False)),
    skips("driver.secureboot", "Secure Boot is off", node(*BOTH, secure_boot=True, shim_insecure=True)),
    skips("driver.secureboot", "the platform provides it", node(secure_boot=True)),
    fails("driver.secureboot", f"nvidia module of {NEXT} is not signed", node(*BOTH, secure_boot=True)),
    fails("driver.secureboot", "is not signed", node(*BOTH, sig_enforce=True)),
    fails("driver.secureboot", "is not signed", node(*BOTH, lockdown="integrity")),
    passes("driver.secureboot", f"signed by {KEY}", node(*SIGNED, secure_boot=True)),
    passes("driver.secureboot", "no module yet", node(module(NOW), secure_boot=True)),
    fails(
        "driver.secureboot",
        "DKMS's key, which signed it, is not enrolled",
        node(*KEYED, **MOK, mok_state="not enrolled"),
    ),
    fails("driver.secureboot", "is queued for enrolment", node(*KEYED, **MOK, mok_state="queued", driver=Driver())),
    passes("driver.secureboot", f"signed by {KEY}", node(*KEYED, **MOK, mok_state="enrolled", driver=Driver())),
    warns("driver.secureboot", "signed by new key", node(SIGNED[0], module(NEXT, signer="new key"), secure_boot=True)),
    # driver.initramfs
    skips("driver.initramfs", "no initramfs of the next kernel is older", node(*BOTH)),
    skips("driver.initramfs", "only verify", node(*BOTH, **OLD)),
    is_unknown("driver.initramfs", "not found", node(*BOTH, **OLD, active=_found("lsinitrd: not found\n", 127))),
    is_unknown("driver.initramfs", "was cut", node(*BOTH, **OLD, active={"initramfs": {"unknown": "was cut"}})),
    passes("driver.initramfs", f"no nvidia module in {IMAGE}", node(*BOTH, **OLD, active=_found(""))),
    fails("driver.initramfs", f"{IMAGE} contains an older", node(*BOTH, **OLD, active=_found(f"{IMAGE}\n"))),
    # driver.loaded
    passes("driver.loaded", DRIVER, state(LOADED)),
    passes("driver.loaded", "570.86.15", state({"proc_version": "570.86.15"})),
    fails("driver.loaded", "no nvidia module", state({"pci": (GPU,)})),
    fails("driver.loaded", "no nvidia module", state({"pci": ("0000:01:00.0 0x030000 0x1234",)})),
    skips("driver.loaded", "no NVIDIA GPU"),
    skips("driver.loaded", "no NVIDIA GPU", state({"pci": ("0000:07:00.0 0x068000 0x22a3",)})),
    skips("driver.loaded", f"no NVIDIA GPU on the PCI bus, so module 550.163.01 for {NOW} is not loaded", ABSENT),
    skips("driver.loaded", "no NVIDIA GPU on this node", node(module(NEXT), gpu=False, driver=Driver())),
    skips("driver.loaded", "hardware.gpus: none", state({"pci": (GPU,)}), WITHOUT_GPUS),
    # driver.floor
    passes("driver.floor", "580.178.04 has all fixes", state({"proc_version": "580.178.04"})),
    passes("driver.floor", "580.179 has all fixes", state({"proc_version": "580.179"})),
    warns("driver.floor", "580.178.04 fixes them", state({"proc_version": "580.159.04"})),
    warns("driver.floor", "branch 570 gets no security updates", state({"proc_version": "570.211.01"})),
    warns("driver.floor", "fixes them, but branch 535 gets no security", state({"proc_version": "535.261.03"})),
    warns("driver.floor", "branch 550 gets no security updates", state({"proc_version": "550.163.01"})),
    warns("driver.floor", "branch 535 gets no security updates", state({"proc_version": "535.309.01"})),
    passes("driver.floor", "615.71.09 has all fixes", state({"proc_version": "615.71.09"})),
    warns("driver.floor", "610.57.04 fixes them", state({"proc_version": "610.43.02"})),
    skips("driver.floor", "no security bulletin for branch 620", state({"proc_version": "620.10"})),
    skips("driver.floor", "no nvidia module"),
    # driver.match
    skips("driver.match", "no nvidia module"),
    is_unknown("driver.match", "could not be read", state(LOADED, linker=UNREADABLE)),
    passes("driver.match", DRIVER, leading(REAL)),
    passes("driver.match", DRIVER, state(LOADED, linker=linker())),
    fails("driver.match", "libraries have another version", leading("/x/libcuda.so.535.1.2")),
    fails("driver.match", "libraries have another version", state(LOADED, linker=Linker(cache=OLD_NVML))),
    warns("driver.match", "next boot loads 590.1.2", state(LOADED | {"on_disk_version": "590.1.2"}, linker=linker())),
    # gpu.count
    passes("gpu.count", "2", state({"gpus": ("a", "b")}), {"hardware": {"gpus": 2}}),
    fails("gpu.count", "2 of 8", state({"gpus": ("a", "b")}), {"hardware": {"gpus": 8}}),
    fails("gpu.count", "0 of 1 GPU seen, none is on the PCI bus", spec={"hardware": {"gpus": 1}}),
    fails("gpu.count", "1 of 2", state({"smi": '<gpu id="a">', "gpus": ("a", "b")}), {"hardware": {"gpus": 2}}),
    warns("gpu.count", "does not say how many", state({"gpus": ("a",)})),
    is_unknown("gpu.count", "is not listed"),
    is_unknown("gpu.count", "could not be read", state({"smi": UNREADABLE, "gpus": ("a",)}), {"hardware": {"gpus": 1}}),
    skips("gpu.count", "hardware.gpus: none", state({"gpus": ("a",)}), WITHOUT_GPUS),
    # gpu.model
    skips("gpu.model", "not set", h200()),
    passes("gpu.model", "NVIDIA H200", h200(), {"hardware": {"model": "h200"}}),
    fails("gpu.model", "expected B200, found NVIDIA H200", h200(), {"hardware": {"model": "B200"}}),
    is_unknown("gpu.model", "could not be read", state({"smi": UNREADABLE}), {"hardware": {"model": "H200"}}),
    is_unknown("gpu.model", "lists no GPU", spec={"hardware": {"model": "H200"}}),
]
test_verdict = held(VERDICTS)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, True),
        ({"pci": ("0000:01:00.0 0x030200 0x2335 none",)}, False),
        ({"proc_version": "580.95.05"}, False),
        ({"smi": '<gpu id="a"><gpu id="b">'}, False),
    ],
)
def test_a_machine_without_a_gpu_is_not_told_to_look_for_a_broken_one(facts: dict[str, Any], told: bool) -> None:
    verdict = BY_ID["gpu.count"].judge(NodeSpec.model_validate({"hardware": {"gpus": 1}}), state(facts))
    assert (verdict.status, "type of this machine" in verdict.remedy) == ("fail", told)
    assert ("none is on the PCI bus" in verdict.summary) == (not facts.keys() & {"pci", "smi"})


@pytest.mark.parametrize(
    ("installed", "kernel", "fix"),
    [
        ("kmod-nvidia-open-580.95.05-5.14.0-570.12.1", "5.14.0-611.5.1.el9_7.x86_64",
         "dnf install kmod-nvidia-open-580.95.05-5.14.0-611.5.1; if no"),
        ("kmod-64k-nvidia-open-580.95.05-6.12.0-211.50.1", "6.12.0-211.51.1.el10_2.aarch64+64k",
         "dnf install kmod-64k-nvidia-open-580.95.05-6.12.0-211.51.1; if no"),
        ("kmod-nvidia-open-dkms", "5.14.0-611.5.1.el9_7.x86_64", "kernel-devel"),
        ("kmod-nvidia-open-580.95.05-5.14.0-570.12.1", "6.12.0-100.el9uek.x", "kernel-devel"),
    ],
)  # fmt: skip
def test_a_new_kernel_needs_its_own_precompiled_module(installed: str, kernel: str, fix: str) -> None:
    state = node(module(NOW), of=packages(installed, version="580.95.05-3.el9_6"), kernels=(kernel,), grub=())
    verdict = BY_ID["driver.nextboot"].judge(NodeSpec(), state)
    assert verdict.status == "fail" and kernel in verdict.summary and fix in verdict.remedy


@pytest.mark.parametrize(("kernel", "told"), [(NEXT, True), ("5.10.0-30-amd64", False)])
def test_the_log_of_dkms_counts_for_its_kernel_alone(kernel: str, told: bool) -> None:
    """What is left of an older build says nothing of this kernel, whose headers may be missing."""
    log = (f"DKMS make.log for nvidia-current-550.163.01 for kernel {kernel} (x86_64)", "nv.c:7:9: error: no")
    verdict = BY_ID["driver.nextboot"].judge(NodeSpec(), node(module(NOW), dkms_failed=log))
    assert (verdict.evidence, f"linux-headers-{NEXT}" in verdict.remedy) == (
        "nv.c:7:9: error: no" if told else "",
        not told,
    )
