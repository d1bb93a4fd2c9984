"""The driver's real kernel module: Debian's packages, built by DKMS for Debian's kernel, which loads it and has no GPU.

A machine installs it, as fast as the host is; then a virtual machine boots what is on its disk. To compile the module
takes most of the time, so what DKMS built is kept, and is what its `make` finds the next time.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import VM, Lab, cache, disk
from tests.lab.fixtures import MachineFactory
from tests.system.driver_node import COMES_LATER, GPU, asked, summary
from tests.system.faults import problem
from tests.system.harness import Gpuready, Inventories, Result
from tests.system.host import Host

#: The newest of Debian's open modules that compiles for a kernel of its release, and the newest such kernel: later ones
#: have another pci_resize_resource().
DISTRO, VERSION, KERNEL = "debian12", "535.261.03", "6.1.0-50-amd64"
WANTED = {"policy": "install", "version": VERSION, "flavor": "open"}
BUILT = "/var/cache/lab-nvidia"
#: DKMS reads it after the package's own dkms.conf.
CONF = f"etc/dkms/nvidia-current-open-{VERSION}.conf"
FAILS = """MAKE[0]="echo 'nv-pci.c:237:9: error: too few arguments' >&2; false"\n"""
NAMES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")


@pytest.fixture(scope="module")
def node(module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> Host:
    """A machine with that kernel on its disk, without its headers."""
    found = Host(module_machine(DISTRO), gpuready, inventory)
    (found.root / CONF).parent.mkdir()
    for path, text in disk.INITRAMFS.items():
        (found.root / path).parent.mkdir(parents=True, exist_ok=True)
        (found.root / path).write_text(text, "utf-8")
    found.install(f"-o Dpkg::Options::=--force-confold linux-image-{KERNEL} initramfs-tools zstd")
    return found


@pytest.fixture(scope="module")
def vm(node: Host, vm_lab: Lab) -> Iterator[VM]:
    """That machine with a kernel of its own."""
    node.poweroff()
    with vm_lab.vm_of(node) as booted:
        yield booted


@pytest.fixture(scope="module")
def wanted(node: Host) -> Host:
    return asked(node, **WANTED).only("driver")


def archive(node: Host) -> dict[str, object]:
    """What the built module depends on."""
    package = node.sh("apt-cache madison nvidia-open-kernel-dkms | awk '{print $3; exit}'").strip()
    return {"package": package, "kernel": KERNEL}


def keep(node: Host, recipe: dict[str, object]) -> None:
    """Keep what DKMS has built, by the names that it was built as."""

    def pack(into: Path) -> None:
        for name in NAMES:
            there = f"lib/modules/{KERNEL}/updates/dkms/{name.replace('nvidia', 'nvidia-current-open')}.ko"
            shutil.copyfile(node.root / there, into / f"{name}.ko")

    cache.cached("nvidia-module", recipe, pack)


def apply(wanted: Host, code: int) -> Result:
    """An apply that may compile."""
    words = ("apply", "--yes", "--only", "driver")
    return wanted.gpuready(*words, inventory=wanted.where(), timeout=3600, code=code)


def test_a_build_that_fails_is_told_with_the_compilers_error(node: Host, wanted: Host) -> None:
    planned = wanted.plan().diff("driver")
    assert (planned["driver.version"], planned["driver.module"]) == ((None, VERSION), (None, "open"))
    (node.root / CONF).write_text(FAILS)
    failed = apply(wanted, 1)
    assert "DKMS cannot build the module: nv-pci.c:237:9: error: too few arguments (/var/lib/dkms/" in problem(failed)
    assert "nv-pci.c:237:9: error: too few arguments" in failed.check("driver.nextboot")["evidence"]
    again = apply(wanted, 1)
    assert "'dpkg --configure -a' fails: mend that first (installed nvidia-open-kernel-dkms package" in problem(again)
    assert "half-configured" in summary(again, "driver.packages")


def test_an_apply_has_dkms_build_the_module(node: Host, wanted: Host) -> None:
    (node.root / CONF).unlink(missing_ok=True)
    recipe = archive(node)
    if (kept := cache.entry("nvidia-module", recipe)).is_dir():
        node.put(kept, BUILT)
        (node.root / CONF).write_text(f'MAKE[0]="cp -a {BUILT}/. ."\n')
    apply(wanted, 0)
    keep(node, recipe)
    wanted.settled()
    assert node.sh("dkms status").splitlines() == [f"nvidia-current-open/{VERSION}, {KERNEL}, x86_64: installed"]
    verified = wanted.verify("--passive", code=None)
    assert summary(verified, "driver.nextboot") == f"{KERNEL} has nvidia {VERSION}"


@dataclass
class Booted:
    """The virtual machine, and runs of the driver component on it."""

    vm: VM
    gpuready: Gpuready
    inventories: Inventories

    def run(self, verb: str, *words: str, code: int | None = None) -> Result:
        where = self.inventories(self.vm, None, "gpu", driver=WANTED, ldso="off", **COMES_LATER)
        return self.gpuready(verb, "--only", "driver", *words, inventory=where, timeout=1200, code=code)

    def stays(self) -> None:
        """Nothing is to do; the module is built for this kernel, and not loaded, because there is no GPU."""
        again = self.run("apply", "--yes", code=0)
        assert (again.changed(), again.host()["outcome"]) == (set(), "ok"), again.explain()
        assert "driver.nextboot" in again.checks("pass") and "driver.loaded" in again.checks("skip"), again.explain()
        loaded = f"no NVIDIA GPU on the PCI bus, so module {VERSION} for {KERNEL} is not loaded"
        assert summary(again, "driver.loaded") == loaded
        assert summary(again, "gpu.count").endswith("; 0 of 1 GPU seen, none is on the PCI bus")


@pytest.fixture(scope="module")
def booted(vm: VM, gpuready: Gpuready, inventory: Inventories) -> Booted:
    return Booted(vm, gpuready, inventory)


def test_the_kernel_loads_it_and_has_no_gpu(booted: Booted) -> None:
    assert booted.vm.sh("uname -r").strip() == KERNEL
    refused = booted.vm.run("modprobe nvidia", check=False)
    assert refused.returncode == 1 and "No such device" in refused.stderr
    assert "NVRM: No NVIDIA GPU found." in booted.vm.sh("dmesg")
    booted.stays()


def test_a_gpu_that_the_module_does_not_find_is_no_reason_to_reboot(booted: Booted) -> None:
    """As with a GPU that this module does not drive, such as one that is too old for it."""
    booted.vm.sh(GPU)
    failed = booted.run("apply", "--yes", "--allow-disruption", "reboot", code=1)
    assert "No NVIDIA GPU found" in problem(failed)
    assert "a GPU is on the bus" in summary(failed, "driver.loaded")
    booted.vm.run("umount /sys/bus/pci/devices")
