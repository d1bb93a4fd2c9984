"""What the probe tells of the next boot: modinfo's blocks, GRUB's lines, Secure Boot's byte; and who made a package."""

import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.components.driver import next_boot
from gpuready.components.driver import packages as driverset
from gpuready.model.parse import parse
from gpuready.model.state import NodeState
from tests.components.driver.test_driver_verdicts import DEBIAN, NEXT, NOW, NVIDIA, UBUNTU, module, node, packages
from tests.model.probe_answers import lines

#: As modinfo prints two files in one call; the first is Debian's proprietary module, unsigned.
MODINFO = f"""nouveau: {NEXT}
older: /boot/initrd.img-{NOW}
older: /boot/initrd.img-{NOW}
filename:       /lib/modules/{NOW}/updates/dkms/nvidia-current.ko.xz
alias:          char-major-195-*
version:        550.163.01
license:        NVIDIA
firmware:       nvidia/550.163.01/gsp_tu10x.bin
filename:       /lib/modules/{NEXT}/kernel/nvidia-580srv-open/nvidia.ko
version:        580.95.05
license:        Dual MIT/GPL
sig_id:         PKCS#7
signer:         Canonical Ltd. Kernel Module Signing: x
sig_key:        14:34
"""
VALUES = f"""vmlinuz={NOW}
vmlinuz={NEXT}
vmlinuz=0-rescue-0123
modules_of={NOW}
dkms=nvidia-current/550.163.01
dkms_failed=DKMS make.log for nvidia-current
secure_boot=   1
lockdown=none [integrity] confidentiality
sig_enforce=N
"""


def read(values: str = "", modules: str = "", grub: str = "") -> NodeState:
    """The state from these records of the probe."""
    outs = {"modules": modules} if modules else {}
    return parse(lines(texts={"values": f"kernel={NOW}\n{values}", "grub": grub}, outs=outs))


def test_the_whole_answer_is_read() -> None:
    found = read(VALUES, MODINFO, '  set default="0"\n\tlinux /vmlinuz-x ro\n').boots
    assert found.kernels == (NOW, NEXT), "a rescue image is no kernel that boots next"
    assert [(m.kernel, m.version, bool(m.signer), m.open) for m in found.modules] == [
        (NOW, "550.163.01", False, False),
        (NEXT, "580.95.05", True, True),
    ]
    assert (found.nouveau_for, found.older_initramfs) == ((NEXT,), (f"/boot/initrd.img-{NOW}",))
    assert (found.secure_boot, found.lockdown) == (True, "integrity")
    assert (found.shim_insecure, found.sig_enforce) == (False, False)
    assert found.grub == ('set default="0"', "linux /vmlinuz-x ro")
    assert (found.dkms, found.installed) == (("nvidia-current/550.163.01",), (NOW,))
    assert found.dkms_failed == ("DKMS make.log for nvidia-current",)


def test_an_empty_answer_is_empty() -> None:
    found = read().boots
    assert (found.kernels, found.modules, found.secure_boot, found.modules_unknown) == ((), (), None, "")


def test_modinfo_that_fails_is_unknown() -> None:
    state = parse(lines(texts={"values": "kernel=x\n"}, failed={"modules": (1, "modinfo: ERROR: no such file")}))
    assert "no such file" in state.boots.modules_unknown


@pytest.mark.parametrize(
    ("grub", "next", "certain"),
    [
        ((), (NEXT,), True),
        ((f"linux\t/boot/vmlinuz-{NOW} root=/dev/sda", "linux /vmlinuz-x"), (NOW,), True),
        ((f"linuxefi /vmlinuz-{NOW} ro",), (NOW,), True),
        (('set default="${next_entry}"', 'set default="0"', f"linux /vmlinuz-{NOW}"), (NOW,), True),
        (('set default="2"', f"linux /vmlinuz-{NOW}"), (NEXT, NOW), False),
        ((f"saved_entry=4f-{NOW}",), (NOW,), True),
        ((f"saved_entry=4f-{NOW}", f"next_entry=4f-{NEXT}"), (NEXT, NOW), False),
    ],
)
def test_which_kernels_may_boot_next(grub: tuple[str, ...], next: tuple[str, ...], certain: bool) -> None:
    assert next_boot.kernels(node(module(NOW), grub=grub)) == (next, certain)


def test_the_newest_kernel_is_told_by_its_numbers() -> None:
    assert next_boot.kernels(node(kernels=("6.1.0-9-amd64", "6.1.0-10-amd64"), grub=())) == (("6.1.0-10-amd64",), True)


#: As Debian, Ubuntu, RHEL and NVIDIA's repositories name the packages of a driver, and what is none of it.
OF_THE_DRIVER = """
libcuda1 libcuda1:i386 libnvidia-compute-535-server libnvidia-tesla-535-cuda1 nvidia-open nvidia-driver-cuda
nvidia-fabricmanager-580 libnvidia-nscq nvidia-cuda-mps firmware-nvidia-gsp xserver-xorg-video-nvidia cuda-drivers
"""
OF_OTHERS = """
nvidia-persistenced nvidia-container-toolkit nvidia-docker2 libnvidia-container1 libnvidia-egl-wayland1
linux-modules-nvidia-580-generic cuda-compat-13-0 cuda-toolkit-13-0 nvidia-cuda-toolkit nvidia-driver-pinning-580
libcudart12
"""


def test_what_belongs_to_the_driver() -> None:
    names = f"{OF_THE_DRIVER} {OF_OTHERS}".split()
    assert sorted(driverset.members(packages(*names))) == sorted(OF_THE_DRIVER.split())


@pytest.mark.parametrize(("version", "is_one"), [("3:580.95.05-1.el9", True), ("20240109+1", False)])
def test_a_package_of_the_driver_has_its_version(version: str, is_one: bool) -> None:
    assert bool(driverset.members(packages("nvidia-kernel-common", version=version))) is is_one


@pytest.mark.parametrize(
    ("maker", "said"),
    [
        (DEBIAN, "Debian"),
        (UBUNTU, "Ubuntu"),
        (NVIDIA, "NVIDIA's repository"),
        ("NVIDIA Corporation", "NVIDIA's repository"),
        ("RPM Fusion", "RPM Fusion"),
        ("", ""),
        ("me <me@example.com>", ""),
    ],
)
def test_who_made_a_package(maker: str, said: str) -> None:
    answer = lines(outs={"dpkg": f"libcuda1\tamd64\t550.163.01-2\tii \t{maker}\n"})
    found = parse(answer).packages
    assert isinstance(found, dict)
    assert driverset.maker(found["libcuda1"]) == said


#: What the module is called: upstream, by Debian's current, open and tesla packages, and by what comes for old cards.
@pytest.mark.parametrize(
    "name", ["nvidia", "nvidia-current", "nvidia-current-open", "nvidia-tesla-535", "nvidia-legacy-390xx"]
)
def test_every_name_of_the_module_is_known(name: str, tmp_path: Path) -> None:
    place = tmp_path / NEXT
    (place / "updates").mkdir(parents=True)
    listed = [f"updates/{each}.ko" for each in (name, f"{name}-uvm", "nvidiafb")]
    for each in listed:
        (place / each).touch()
    (place / "modules.dep").write_text("".join(f"{each}:\n" for each in listed))
    script = resources.script("probe/driver").replace("/lib/modules", str(tmp_path))
    script += 'modinfo() { printf "filename: %s\n" "$@"; }; driver_modules\n'
    said = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True).stdout
    (found,) = read(modules=said).boots.modules
    assert found.path == str(place / listed[0])


def test_what_a_reload_would_bring_is_the_running_kernels_module() -> None:
    assert read(VALUES, MODINFO).driver.on_disk_version == "550.163.01"
    assert read(VALUES, MODINFO.replace(NOW, "6.1.0-other")).driver.on_disk_version == ""
