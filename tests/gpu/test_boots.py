"""What the probe tells of the next boot: modinfo's blocks, GRUB's lines, Secure Boot's byte; and who made a package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuready.components.driver import next_boot
from gpuready.components.driver import packages as driverset
from gpuready.core import resources
from gpuready.state.model import NodeState, Package
from gpuready.state.parse import parse
from tests.components.driver.driver_verdicts import DEBIAN, NEXT, NOW, NVIDIA, UBUNTU, module, node
from tests.state.probe_answers import lines

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
    assert (found.secure_boot, found.shim_insecure, found.lockdown, found.sig_enforce) == (
        True,
        False,
        "integrity",
        False,
    )
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
    ("kernels", "grub", "expected"),
    [
        ((NOW, NEXT), (), ((NEXT,), True)),
        (("6.1.0-9-amd64", "6.1.0-10-amd64"), (), (("6.1.0-10-amd64",), True)),
        ((NOW, NEXT), (f"linux\t/boot/vmlinuz-{NOW} root=/dev/sda", "linux /vmlinuz-x"), ((NOW,), True)),
        ((NOW, NEXT), (f"linuxefi /vmlinuz-{NOW} ro",), ((NOW,), True)),
        ((NOW, NEXT), ('set default="${next_entry}"', 'set default="0"', f"linux /vmlinuz-{NOW}"), ((NOW,), True)),
        ((NOW, NEXT), ('set default="2"', f"linux /vmlinuz-{NOW}"), ((NEXT, NOW), False)),
        ((NOW, NEXT), (f"saved_entry=4f-{NOW}",), ((NOW,), True)),
        ((NOW, NEXT), (f"saved_entry=4f-{NOW}", f"next_entry=4f-{NEXT}"), ((NEXT, NOW), False)),
        ((), (), ((NOW,), True)),
    ],
)
def test_which_kernels_may_boot_next(
    kernels: tuple[str, ...], grub: tuple[str, ...], expected: tuple[tuple[str, ...], bool]
) -> None:
    assert next_boot.kernels(node(module(NOW), kernels=kernels, grub=grub)) == expected


@pytest.mark.parametrize(
    ("name", "version", "is_one"),
    [
        ("libcuda1", "550.163.01-2", True),
        ("libcuda1:i386", "550.163.01-2", True),
        ("libnvidia-compute-535-server", "535.274.02-0ubuntu0.24.04.2", True),
        ("libnvidia-tesla-535-cuda1", "535.274.02-1~deb13u1", True),
        ("nvidia-open", "610.43.02-1ubuntu1", True),
        ("nvidia-driver-cuda", "3:580.95.05-1.el9", True),
        ("nvidia-fabricmanager-580", "580.95.05-1", True),
        ("libnvidia-nscq", "580.95.05-1", True),
        ("nvidia-cuda-mps", "550.163.01-2", True),
        ("firmware-nvidia-gsp", "550.163.01-2", True),
        ("xserver-xorg-video-nvidia", "550.163.01-2", True),
        ("cuda-drivers", "580.95.05-0ubuntu1", True),
        ("nvidia-persistenced", "550.163.01-1", False),
        ("nvidia-container-toolkit", "1.20.0-1", False),
        ("nvidia-docker2", "2.13.0-1", False),
        ("libnvidia-container1", "1.20.0-1", False),
        ("libnvidia-egl-wayland1", "1:1.1.18-1", False),
        ("linux-modules-nvidia-580-generic", "6.8.0-90.91", False),
        ("nvidia-kernel-common", "20240109+1", False),
        ("cuda-compat-13-0", "580.95.05-0ubuntu1", False),
        ("cuda-toolkit-13-0", "13.0.2-1", False),
        ("nvidia-cuda-toolkit", "12.4.131~12.4.1-2", False),
        ("nvidia-driver-pinning-580", "580-1ubuntu1", False),
        ("libcudart12", "12.4.127~12.4.1-2", False),
    ],
)
def test_what_belongs_to_the_driver(name: str, version: str, is_one: bool) -> None:
    assert bool(driverset.members({name: Package(version=version, arch="amd64")})) is is_one


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
    packages = parse(answer).packages
    assert isinstance(packages, dict)
    assert driverset.maker(packages["libcuda1"]) == said


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
