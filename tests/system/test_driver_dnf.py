"""The driver by dnf 4 and 5, from stand-ins for NVIDIA's packages (tests/lab/driver_rpm.py); the rest is real."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.components.driver.component import FILES
from gpuready.components.driver.install import STREAM
from gpuready.components.reconverge.component import FILES as HOOKS
from tests.lab import Lab, driver_rpm, signing
from tests.lab.driver_rpm import BROKEN, KERNEL, NEWER_KERNEL
from tests.lab.image import DNF, DNF5
from tests.lab.module import install as install_module
from tests.system.dnf_node import locks
from tests.system.driver_node import asked, summary, waits_for_a_reboot
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host

OLD, NEW = "580.95.05", "580.105.08"
STREAMS = (f"{OLD}-dkms", f"{NEW}-open")
FOLDER, REPO = "/srv/driver", "etc/yum.repos.d/cuda-rhel9.repo"
_DRIVER = "rpm -qa --qf '%{NAME} %{VERSION}\\n' '*nvidia*' | sort"
_SOURCE = """[cuda-rhel9-x86_64]
name=cuda
baseurl=file://{folder}
enabled=1
gpgcheck=1
repo_gpgcheck=1
gpgkey=file://{folder}/gpgkey
{more}
"""
USER = ("nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common", "nvidia-persistenced")
OPEN, PROPRIETARY = "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"
#: NVIDIA's precompiled module in its repository, and Red Hat's in another one, there also for a newer kernel.
NVIDIAS, *RED_HATS = (
    f"kmod-nvidia-{OLD}-{KERNEL}", f"kmod-nvidia-open-{NEW}-{KERNEL}", f"kmod-nvidia-open-{NEW}-{NEWER_KERNEL}",
)  # fmt: skip
EXTENSIONS = "etc/yum.repos.d/extensions.repo"
PLUGIN = {"dnf-plugin-nvidia": "2.4"}


@pytest.fixture(scope="module", params=[DNF, DNF5])
def node(request: pytest.FixtureRequest, lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Host]:
    """The module's machines: a kernel that boots next and for which headers are published."""
    with lab.machine(request.param) as machine:
        found = Host(machine, gpuready, inventory)
        install_module(found, KERNEL)
        found.run(f"ln -s /usr/src/kernels/{KERNEL} /lib/modules/{KERNEL}/build")
        yield found


def release(node: Host, version: str) -> None:
    """Rocky's version of the node; Fedora's stays."""
    if node.distro == DNF5:
        return
    node.run(f"sed -i 's/^VERSION_ID=.*/VERSION_ID=\"{version}\"/' /etc/os-release")


def publish(node: Host, folder: Path, modular: bool = False, precompiled: Sequence[str] = ()) -> None:
    """NVIDIA's repository is on the node."""
    driver_rpm.publish(folder, STREAMS, modular, precompiled)
    node.run(f"rm -rf {FOLDER} /var/cache/*dnf*/cuda-*")
    node.put(folder, FOLDER)
    node.run(f"chmod -R a+rX {FOLDER}")
    source(node)


def source(node: Host, more: str = "") -> None:
    """Write the repository's entry."""
    (node.root / REPO).write_text(_SOURCE.format(folder=FOLDER, more=more), "utf-8")


def installed(node: Host) -> dict[str, str]:
    """The driver's packages and their versions."""
    rows = (row.split() for row in node.run(_DRIVER).stdout.splitlines())
    return {row[0]: row[1] for row in rows}


def held(version: str, *kmod: str) -> set[str]:
    """The locks of a driver; nvidia-persistenced has none, because the driver requires its version."""
    return {f"{name}-3:{version}-1.el9" for name in (*USER[:3], *kmod)}


def remove_driver(node: Host) -> None:
    """gpuready leaves, and the driver stays; then it goes, too."""
    before = installed(node)
    asked(node, "hold").only("driver").remove()
    assert installed(node) == before
    assert locks(node) == set() and not [f for f in FILES if (node.root / f[1:]).exists()]
    node.run("dnf -y remove '*nvidia*' dkms kernel-devel")


@pytest.mark.parametrize("node", [DNF], indirect=True)
def test_what_cannot_be_installed_is_found_before_anything_changes(node: Host, tmp_path: Path) -> None:
    release(node, "10.1")
    publish(node, tmp_path / "plain")
    wanted = asked(node, "install", version=NEW, flavor="open").only("driver")
    source(node, more="excludepkgs=kernel-devel")
    wanted.fails(f"there is no kernel-devel-{KERNEL}", "nothing was changed")
    source(node)
    node.run("mount -t tmpfs -o size=50m none /var/cache")
    wanted.fails("/var/cache has", "500 MiB are needed; nothing was changed")
    node.run("umount /var/cache")
    node.put(signing.public("other"), f"{FOLDER}/gpgkey")
    wanted.fails("the packages cannot be fetched", "nothing was changed")  # the metadata is not fetched again
    node.run("rm -r /var/cache/*dnf*/cuda-*")
    wanted.fails("the repositories cannot be read")
    assert installed(node) == {} and locks(node) == set()
    assert not [f for f in FILES if (node.root / f[1:]).exists()]

    node.put(signing.public("lab"), f"{FOLDER}/gpgkey")
    node.run(f"touch {BROKEN}")
    wanted.fails(f"the nvidia module for {KERNEL} is not there: DKMS make.log: Bad return status")
    assert locks(node) == held(NEW, OPEN), "no upgrade may move them meanwhile"
    node.run(f"rm {BROKEN}")
    assert wanted.plan().diff("driver")["driver.module"] == (None, "open")
    assert wanted.apply().changed() == {"driver"}
    assert f"{KERNEL} has nvidia {NEW}" in summary(wanted.verify(code=None), "driver.nextboot")
    remove_driver(node)


@pytest.mark.parametrize("node", [DNF5], indirect=True)
def test_plain_packages_are_installed_held_and_moved(node: Host, tmp_path: Path) -> None:
    release(node, "10.1")
    publish(node, tmp_path / "plain")
    wanted, newer, none = (
        asked(node, "install", version=version, flavor=flavor).only("driver")
        for version, flavor in ((OLD, "proprietary"), (NEW, "open"), ("595.1.1", "open"))
    )
    hook = resources.document("reconverge/reconverge.dnf5", script="/srv/hook")
    (node.root / HOOKS[-1][1:]).write_text(hook, "utf-8")
    node.run("echo 'echo $1 >>/srv/hooked' >/srv/hook")
    none.fails("driver 595.1.1 (open) is not available", f"the repositories have {NEW}, {OLD}")
    assert wanted.apply().changed() == {"driver"}
    assert node.run("sort -u /srv/hooked").stdout == "hook\n"
    assert installed(node) == dict.fromkeys((*USER, PROPRIETARY), OLD)
    assert locks(node) == held(OLD, PROPRIETARY)
    wanted.settled()
    assert f"{KERNEL} has nvidia {OLD}" in summary(wanted.verify(code=None), "driver.nextboot")
    assert "Nothing to do" in node.run("dnf -y upgrade").stdout, "neither does dnf-automatic move it"

    assert newer.apply().changed() == {"driver"}
    assert installed(node) == dict.fromkeys((*USER, OPEN), NEW)
    assert locks(node) == held(NEW, OPEN), "a package that went has no lock"
    waits_for_a_reboot(node, newer)
    remove_driver(node)


@pytest.mark.parametrize("node", [DNF], indirect=True)
def test_precompiled_modules_come_for_each_kernel_or_not_at_all(node: Host, tmp_path: Path) -> None:
    release(node, "9.6")
    publish(node, tmp_path / "modular", modular=True, precompiled=[NVIDIAS])
    driver_rpm.publish(tmp_path / "extensions", (), precompiled=RED_HATS)
    node.put(tmp_path / "extensions", "/srv/extensions")
    old, new, newer = (name.partition(".el")[0] for name in (NVIDIAS, *RED_HATS))
    wanted, moved = (
        asked(node, "install", version=version, flavor=flavor).only("driver")
        for version, flavor in ((OLD, "proprietary"), (NEW, "open"))
    )
    plan = wanted.plan()
    assert plan.diff("driver")["driver.stream"] == (None, "580 or 580-dkms")
    assert f"apply installs {old}, if the repositories have it" in " ".join(plan.component("driver")["notes"])
    assert wanted.apply().changed() == {"driver"}
    assert installed(node) == dict.fromkeys((*USER, old), OLD) | PLUGIN
    assert locks(node) == held(OLD) | {f"{old}-3:{OLD}-3.el9_6"}
    assert "580 [e]" in node.run("dnf -q module list --enabled nvidia-driver").stdout
    wanted.settled()
    assert f"{KERNEL} has nvidia {OLD}" in summary(wanted.verify(code=None), "driver.nextboot")
    upgrade = node.run("dnf -y upgrade").stdout
    assert "Nothing to do" in upgrade and "NVIDIA driver: filtering" in upgrade

    offer = _SOURCE.replace("[cuda-rhel9-x86_64]", "[extensions]")
    without = offer.format(folder="/srv/extensions", more=f"excludepkgs={newer}")
    (node.root / EXTENSIONS).write_text(without, "utf-8")
    assert moved.apply().changed() == {"driver"}
    assert installed(node) == dict.fromkeys((*USER, new), NEW) | PLUGIN
    assert locks(node) == held(NEW) | {f"{new}-3:{NEW}-3.el9_6"}, "those of another version go with their package"
    assert "580-open [e]" in node.run("dnf -q module list --enabled nvidia-driver").stdout
    assert f"{KERNEL} has nvidia {NEW}" in summary(moved.verify(code=None), "driver.nextboot")

    install_module(node, NEWER_KERNEL)
    found = moved.verify(code=None).check("driver.nextboot")
    assert f"{NEWER_KERNEL} has no nvidia module" in found["summary"] and f"dnf install {newer}" in found["remedy"]
    moved.fails(
        f"there is no {newer}; by DKMS, for dnf: there is no kernel-devel-{NEWER_KERNEL}", "nothing was changed"
    )
    assert installed(node) == dict.fromkeys((*USER, new), NEW) | PLUGIN
    (node.root / EXTENSIONS).write_text(offer.format(folder="/srv/extensions", more=""), "utf-8")
    assert moved.apply().changed() == {"driver"}
    assert installed(node) == dict.fromkeys((*USER, new, newer), NEW) | PLUGIN
    assert locks(node) == held(NEW) | {f"{new}-3:{NEW}-3.el9_6", f"{newer}-3:{NEW}-3.el9_7"}
    assert f"{NEWER_KERNEL} has nvidia {NEW}" in summary(moved.verify(code=None), "driver.nextboot")
    remove_driver(node)
    node.run(f"rm -r /{EXTENSIONS} /boot/vmlinuz-{NEWER_KERNEL} /usr/lib/modules/{NEWER_KERNEL}")


@pytest.mark.parametrize("node", [DNF], indirect=True)
def test_the_stream_of_the_branch_is_enabled_and_comes_back(node: Host, tmp_path: Path) -> None:
    release(node, "9.6")
    publish(node, tmp_path / "modular", modular=True)
    node.run("dnf -y module enable nvidia-driver:580-dkms; dnf -y install cuda-drivers")
    node.run("dnf versionlock add nvidia-driver-cuda")  # somebody's own lock
    before = (node.root / STREAM[1:]).read_text("utf-8")
    wanted = asked(node, "install", version=NEW, flavor="open").only("driver")
    assert wanted.plan().diff("driver") == {
        "driver.version": (OLD, NEW),
        "driver.module": (None, "open"),  # nobody built it for this kernel
        "driver.stream": ("580-dkms", "580-open"),
        "driver.nouveau": (None, "kept away"),
    }
    assert wanted.apply().changed() == {"driver"}
    assert installed(node) == dict.fromkeys((*USER, OPEN), NEW)
    assert locks(node) == held(NEW, OPEN)
    assert "580-open [e]" in node.run("dnf -q module list --enabled nvidia-driver").stdout

    asked(node, "hold").only("driver").remove()
    assert (node.root / STREAM[1:]).read_text("utf-8") == before
    assert locks(node) == {f"nvidia-driver-cuda-3:{NEW}-1.el9"}
