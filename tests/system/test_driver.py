"""The driver's packages and the next boot, on a machine with Debian's real libcuda and unattended-upgrades.

Nothing here can load a module, and no kernel is booted: what the next boot would find are files (tests/lab/kernels.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpuready.components.driver.component import FILES, UNATTENDED
from tests.lab import Lab, Machine
from tests.lab.kernels import install as install_module
from tests.lab.kernels import module
from tests.lab.upgrades import ORIGIN, offer
from tests.system.faults import problem
from tests.system.harness import Gpuready, Inventories, Result

NEWER = "550.999.01-1"
NOW, NEXT = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
PACKAGES = "libcuda1 unattended-upgrades initramfs-tools-core cpio"
ALLOWED = f"""
#clear Unattended-Upgrade::Origins-Pattern;
Unattended-Upgrade::Origins-Pattern {{ "origin={ORIGIN}"; }};
"""
#: A host of which the spec says that it has no GPU is refused.
COMES_LATER: dict[str, object] = {
    "hardware": {"gpus": 1},
    "verify": {"waive": [{"check": "gpu.count", "reason": "no GPU in a test machine", "until": "2099-01-01"}]},
}
SET = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' '*nvidia*' libcuda1 | grep ' 55[01][.]'"


@dataclass
class Node:
    """The machine, and runs on it."""

    machine: Machine
    gpuready: Gpuready
    inventory: Inventories

    def __call__(self, verb: str, *words: str, policy: str = "hold", **driver: str) -> Result:
        spec = COMES_LATER if policy == "install" else {}
        where = self.inventory(self.machine, driver={"policy": policy, **driver}, ldso="off", **spec)
        yes = ("--yes",) if verb in ("apply", "remove") else ()
        return self.gpuready(verb, *yes, *words, inventory=where)

    def upgrade(self) -> str:
        return self.machine.run("unattended-upgrade --debug 2>&1").stdout

    def packages(self) -> dict[str, tuple[str, str]]:
        rows = (row.split() for row in self.machine.run(SET).stdout.splitlines())
        return {row[0]: (row[1], row[2]) for row in rows}


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine() as machine:
        machine.run(
            "export DEBIAN_FRONTEND=noninteractive; apt-get -q update >&2; "
            f"apt-get -q -y --no-install-recommends install {PACKAGES} >&2"
        )
        yield Node(machine, gpuready, inventory)


def summary(result: Result, check: str) -> str:
    """What a check says."""
    return str(next(c["summary"] for c in result.host()["checks"] if c["id"] == check))


def test_the_next_boot_is_told_before_it_comes(node: Node) -> None:
    machine = node.machine
    install_module(
        machine, NOW, nvidia_current=module(version="550.163.01", license="NVIDIA"), nouveau=module(license="GPL")
    )
    install_module(machine, NEXT, nouveau=module(license="GPL"))
    dkms = "/var/lib/dkms/nvidia-current/550.163.01"
    machine.run(
        f"mkdir -p {dkms}/build; ln -s /usr/src {dkms}/source; echo 'DKMS make.log for {NEXT}' >{dkms}/build/make.log"
    )
    result = node("verify", "--passive", policy="observe")
    assert f"{NEXT} has no nvidia module" in summary(result, "driver.nextboot"), result.explain()
    check = next(c for c in result.host()["checks"] if c["id"] == "driver.nextboot")
    assert f"DKMS make.log for {NEXT}" in check["evidence"] and f"dkms autoinstall -k {NEXT}" in check["remedy"]
    assert summary(result, "driver.owner") == "the driver came from packages of Debian"
    assert "550.163.01" in summary(result, "driver.packages")
    assert "unattended-upgrades may change the driver" in summary(result, "driver.held")

    # The initramfs was made with the module in it; then another one came, of another version.
    machine.run(
        f"cd / && mkdir -p /tmp/x && find usr/lib/modules/{NOW} | cpio -o -H newc >/boot/initrd.img-{NEXT} 2>/dev/null"
    )
    machine.run('until [ "$(date +%s)" -gt "$(stat -c %Z /boot/initrd.img-*)" ]; do sleep 0.1; done')
    install_module(machine, NEXT, nvidia_current=module(version="535.247.01", license="NVIDIA"))
    result = node("verify", policy="observe")
    assert "the next boot loads module 535.247.01" in summary(result, "driver.nextboot"), result.explain()
    install_module(machine, NEXT, nvidia_current=module(version="550.163.01", license="NVIDIA"))
    result = node("verify", policy="observe")
    assert f"{NEXT} has nvidia 550.163.01" in summary(result, "driver.nextboot"), result.explain()
    assert f"/boot/initrd.img-{NEXT} contains an older nvidia module" in summary(result, "driver.initramfs")
    machine.run(f"echo x | cpio -o -H newc >/boot/initrd.img-{NEXT} </dev/null 2>/dev/null")
    assert "driver.initramfs" in node("verify", policy="observe").checks("skip")


def test_unattended_upgrades_cannot_move_a_driver_that_is_held(node: Node) -> None:
    machine, before = node.machine, node.packages()
    assert {"libcuda1", "libnvidia-ptxjitcompiler1", "nvidia-alternative"} <= set(before), before
    machine.run("apt-mark hold nvidia-alternative")  # somebody's own hold
    before = node.packages()
    machine.run("rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*; rm -rf /var/lib/apt/lists/*")  # apt reads less
    offer(machine, [(name, NEWER) for name in before])
    (machine.root / "etc/apt/apt.conf.d/60lab").write_text(ALLOWED, "utf-8")
    result = node("apply", "--only", "driver")
    assert result.code == 0, result.explain()
    assert {name: (version, "hi") for name, (version, _) in before.items()} == node.packages()
    said = node.upgrade()
    assert "libcuda1" in said and {v for v, _ in node.packages().values()} == {v for v, _ in before.values()}, said

    machine.run("apt-mark unhold libcuda1")  # by mistake: the list of names still keeps it
    result = node("verify", "--passive")
    assert result.diff("driver") == {"driver.libcuda1.held": (False, True)}
    assert "libcuda1 is not held" in summary(result, "driver.held")
    said = node.upgrade()
    assert "skipping blacklisted package libcuda1" in said
    assert node.packages()["libcuda1"][0] == before["libcuda1"][0], said
    assert node("apply", "--only", "driver").changed() == {"driver"}
    assert node("apply", "--only", "driver").changed() == set()

    result = node("remove", "--only", "driver")
    assert result.code == 0, result.explain()
    assert node.packages() == before, "and somebody's own hold stays"
    assert machine.run(f"test ! -e {UNATTENDED} && echo gone").stdout == "gone\n"
    said = node.upgrade()
    after = node.packages()
    assert after["libcuda1"] == (NEWER, "ii"), said
    assert after["nvidia-alternative"] == before["nvidia-alternative"]
    result = node("plan", "--only", "driver")
    assert "different versions (550.163.01, 550.999.01)" in result.component("driver")["error"]["message"], (
        result.explain()
    )


GPU = """
mount -t tmpfs none /sys/bus/pci/devices; mkdir /sys/bus/pci/devices/0000:00:06.0; cd /sys/bus/pci/devices/0000:00:06.0
echo 0x10de >vendor; echo 0x030200 >class; echo 0x2335 >device
"""


def test_one_version_is_installed_in_one_transaction(node: Node) -> None:
    machine = node.machine
    # What the test above left of Debian's goes; a libcuda of another version stays.
    gone = " ".join(set(node.packages()) - {"libcuda1"})
    machine.run(f"dpkg --force-depends --purge {gone}; apt-mark hold libcuda1")
    before = node.packages()
    names = {*before, "libnvidia-ml1", "nvidia-smi", "nvidia-open-kernel-dkms"}
    version, newer = "551.10", "551.20-1"
    offer(machine, [(name, each) for name in names for each in (f"{version}-1", newer)])

    def install(verb: str = "apply", version: str = version, flavor: str = "open") -> Result:
        return node(verb, "--only", "driver", policy="install", version=version, flavor=flavor)

    said = str(install("plan", flavor="auto").component("driver")["error"])
    assert "there is no GPU to choose" in said
    assert f"there is no linux-headers-{NEXT}" in problem(install())
    said = problem(install(version="580.95.05"))
    assert "driver 580.95.05 (open) is not available" in said and "the repositories have 551.10, 551.20" in said
    machine.run("touch /usr/bin/nvidia-uninstall; chmod 755 /usr/bin/nvidia-uninstall")
    assert "does not mix drivers: nvidia-uninstall" in problem(install())
    machine.run("rm /usr/bin/nvidia-uninstall")
    assert node.packages() == before and not [f for f in FILES if (machine.root / f[1:]).exists()]

    machine.run(f"mkdir -p /lib/modules/{NEXT}/build; touch /lib/modules/{NEXT}/build/Makefile")
    machine.run(f"rm /lib/modules/{NEXT}/updates/dkms/nvidia-current.ko")  # the closed one's package took it along
    install_module(machine, NEXT, nvidia_current_open=module(version=version))
    planned = install("plan").diff("driver")
    result = install()
    assert result.code == 0, result.explain()
    assert planned["driver.version"] == ("550.999.01", version) and planned["driver.module"] == (None, "open")
    assert node.packages() == dict.fromkeys(names, (f"{version}-1", "hi"))
    again = install()
    assert (again.code, again.changed(), again.host()["execs"]) == (0, set(), 1), again.explain()
    said = machine.run("apt-mark unhold nvidia-smi >/dev/null; apt-cache policy nvidia-smi").stdout
    assert f"Candidate: {version}-1" in said, "the pin alone keeps it"
    assert install().changed() == {"driver"}

    # With a GPU the module counts, too; here none can be loaded, so that it takes a reboot, and knows so the next time.
    machine.run("sh -e", stdin=GPU)
    result = install()
    assert result.code == 7, result.explain()
    assert "for a reboot: nvidia cannot be loaded" in result.component("driver")["waits"]
    result = install(flavor="auto")
    assert (result.code, result.component("driver")["disruption"]) == (7, "reboot"), result.explain()
    assert "maintenance: {reboot: idle}" in result.component("driver")["waits"]
    machine.run("umount /sys/bus/pci/devices")

    result = node("remove", "--only", "driver")
    assert result.code == 0, result.explain()
    assert {name: status for name, (_, status) in node.packages().items()} == {
        name: "hi" if name == "libcuda1" else "ii" for name in names
    }, "the driver stays, and so does somebody's hold"
    assert not [f for f in FILES if (machine.root / f[1:]).exists()]
