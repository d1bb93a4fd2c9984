"""Secure Boot for real: a firmware with Microsoft's keys, Debian's shim, GRUB and kernel, and a module that DKMS signs.

A machine installs Debian's driver, as fast as the host is. DKMS compiles a module of a few lines in place of the
driver's, which takes a quarter of an hour, and signs it as it signs any other: like the driver's, it finds no GPU. Then
a virtual machine boots that disk with Secure Boot. A script at its console does what a person does in MokManager.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.lab import VM, Lab, disk, uefi
from tests.lab.fixtures import MachineFactory
from tests.system.driver_node import COMES_LATER, asked, summary
from tests.system.faults import problem
from tests.system.harness import Gpuready, Inventories, Result
from tests.system.host import Host

DISTRO, VERSION = "debian13", "550.163.01"
WANTED = {"policy": "install", "version": VERSION, "flavor": "open"}
PASSWORD = "Enrol4567"
SIGN = {"sign": "mok", "mok_password": "env:GPUREADY_MOK"}
ENV = {"GPUREADY_MOK": PASSWORD}
SOURCE = "/usr/src/lab-nvidia"
NAMES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")
MODULE = f"""
#include <linux/module.h>
static int __init begin(void) {{ return -ENODEV; }}
static void __exit end(void) {{ }}
module_init(begin);
module_exit(end);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("{VERSION}");
"""
#: For /etc/dkms/NAME-VERSION.conf, which DKMS reads after the package's own dkms.conf.
MAKE = f'MAKE[0]="cp {SOURCE}/* . && make KERNEL=$kernel_source_dir"\n'
#: Kbuild takes the place of the driver's own file, which the kernel reads before a Makefile.
BUILD = {
    "Makefile": "default:\n\t$(MAKE) -C $(KERNEL) M=$(CURDIR) modules\n",
    "Kbuild": f"obj-m := {' '.join(f'{name}.o' for name in NAMES)}\n",
    **{f"{name}.c": MODULE for name in NAMES},
}
CONTENTS = "cd /opt; apt-get -q download nvidia-open-kernel-dkms >&2; dpkg-deb -c nvidia-open-kernel-dkms_*.deb"


@pytest.fixture(scope="module")
def node(module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> Host:
    """A machine with that driver, Debian's signed kernel, and what starts it."""
    found = Host(module_machine(DISTRO), gpuready, inventory)
    files = {f"{SOURCE[1:]}/{name}": text for name, text in BUILD.items()}
    for path, text in {**disk.INITRAMFS, **files}.items():
        (found.root / path).parent.mkdir(parents=True, exist_ok=True)
        (found.root / path).write_text(text, "utf-8")
    kept = "-o Dpkg::Options::=--force-confold"
    found.install(f"{kept} linux-image-amd64 linux-headers-amd64 initramfs-tools zstd {uefi.PACKAGES}")
    (conf,) = re.findall(r"/usr/src/(\S+)/dkms\.conf", found.sh(CONTENTS))
    (found.root / "etc/dkms").mkdir(exist_ok=True)
    (found.root / f"etc/dkms/{conf}.conf").write_text(MAKE, "utf-8")
    wanted = asked(found, **WANTED).only("driver")
    found.gpuready("apply", "--yes", "--only", "driver", inventory=wanted.where(), timeout=3600, code=0)
    return found


@pytest.fixture(scope="module")
def vm(node: Host, vm_lab: Lab) -> Iterator[VM]:
    """That machine with a kernel of its own, and Secure Boot."""
    node.poweroff()
    with vm_lab.vm_of(node, secure_boot=True) as booted:
        yield booted


@dataclass
class Booted:
    """The virtual machine, and runs of the driver component on it."""

    vm: VM
    gpuready: Gpuready
    inventories: Inventories

    def run(self, verb: str, *words: str, code: int | None = None, **driver: str) -> Result:
        spec = {**WANTED, **driver}
        where = self.inventories(self.vm, None, "gpu", driver=spec, ldso="off", **COMES_LATER)
        return self.gpuready(verb, "--only", "driver", *words, inventory=where, timeout=1200, code=code, env=ENV)

    def modprobe(self) -> str:
        """Why the module cannot be loaded."""
        refused = self.vm.run("modprobe nvidia", check=False)
        assert refused.returncode == 1
        return refused.stderr


@pytest.fixture(scope="module")
def booted(vm: VM, gpuready: Gpuready, inventory: Inventories) -> Booted:
    return Booted(vm, gpuready, inventory)


@pytest.mark.fault("secure-boot-key")
def test_a_key_that_nobody_enrolled_is_named(booted: Booted) -> None:
    assert booted.vm.sh("mokutil --sb-state").strip() == "SecureBoot enabled"
    assert "Key was rejected by service" in booted.modprobe()
    verified = booted.run("verify", "--passive", code=3)
    assert "DKMS's key, which signed it, is not enrolled" in summary(verified, "driver.secureboot")
    assert "driver: {sign: mok}" in verified.check("driver.secureboot")["remedy"]


@pytest.mark.fault("secure-boot-key")
def test_another_driver_is_refused_without_sign(booted: Booted) -> None:
    refused = booted.run("apply", "--yes", code=1, version="550.1.1")
    assert "Secure Boot is on" in problem(refused) and "driver: {sign: mok}" in problem(refused)


@pytest.mark.fault("secure-boot-key")
def test_an_apply_queues_the_key_once_and_a_remove_takes_it_back(booted: Booted) -> None:
    for _ in range(2):
        waits = booted.run("apply", "--yes", code=7, **SIGN)
        assert "Enroll MOK" in waits.component("driver")["pending_reason"]
        assert booted.vm.sh("mokutil --list-new").count("SHA1 Fingerprint") == 1
    assert booted.vm.sh(f"grep -rls {PASSWORD} /var/lib/gpuready /var/log /run/gpuready* || true") == ""
    booted.run("remove", "--yes", code=0, **SIGN)
    assert "SHA1 Fingerprint" not in booted.vm.run("mokutil --list-new", check=False).stdout
    booted.run("apply", "--yes", code=7, **SIGN)
    verified = booted.run("verify", "--passive", code=3, **SIGN)
    assert "queued for enrolment" in summary(verified, "driver.secureboot")


@pytest.mark.fault("secure-boot-key")
def test_after_the_console_the_module_loads(booted: Booted) -> None:
    vm = booted.vm
    before = vm.run("cat /proc/sys/kernel/random/boot_id").stdout
    with vm.at_console() as person:
        vm.run("systemctl reboot", check=False)
        person.expect("Press any key to perform MOK management")
        person.expect("Booting in 9 seconds")  # a key that comes before the countdown is lost
        person.type(*"xxx")  # any key ends it, and a menu ignores this one
        person.choose("Enroll MOK")  # below "Continue boot"
        person.choose("Continue")  # below "View key 0"
        person.choose("Yes")
        person.expect("Password:")
        person.type(*PASSWORD, uefi.ENTER)
        person.expect("Reboot")  # the first line
        person.type(uefi.ENTER)
    vm.await_boot(before)
    assert "is already enrolled" in vm.run("mokutil --test-key /var/lib/dkms/mok.pub", check=False).stdout
    assert "No such device" in booted.modprobe()
    done = booted.run("apply", "--yes", code=0, **SIGN)
    assert done.host()["outcome"] == "ok", done.explain()
    verified = booted.run("verify", "--passive", **SIGN)
    assert summary(verified, "driver.secureboot") == "signed by DKMS module signing key"
