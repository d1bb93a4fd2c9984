"""The driver's packages and the next boot, on a machine with Debian's real libcuda and unattended-upgrades.

Nothing here can load a module, and no kernel is booted: what the next boot would find are files (tests/lab/kernels.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpuready.components.driver import UNATTENDED
from tests.lab import Lab, Machine
from tests.lab.kernels import install, module
from tests.lab.upgrades import ORIGIN, offer
from tests.system.harness import Gpuready, Inventories, Result

NEWER = "550.999.01-1"
NOW, NEXT = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
PACKAGES = "libcuda1 unattended-upgrades initramfs-tools-core cpio"
ALLOWED = f"""
#clear Unattended-Upgrade::Origins-Pattern;
Unattended-Upgrade::Origins-Pattern {{ "origin={ORIGIN}"; }};
"""
SET = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' '*nvidia*' libcuda1 | grep ' 550[.]'"


@dataclass
class Node:
    """The machine, and runs on it."""

    machine: Machine
    gpuready: Gpuready
    inventory: Inventories

    def __call__(self, verb: str, *words: str, policy: str = "hold") -> Result:
        where = self.inventory(self.machine, driver={"policy": policy}, ldso="off")
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
    install(machine, NOW, nvidia_current=module(version="550.163.01", license="NVIDIA"), nouveau=module(license="GPL"))
    install(machine, NEXT, nouveau=module(license="GPL"))
    dkms = "/var/lib/dkms/nvidia-current/550.163.01"
    machine.run(
        f"mkdir -p {dkms}/build; ln -s /usr/src {dkms}/source; echo 'DKMS make.log for {NEXT}' >{dkms}/build/make.log"
    )
    result = node("verify", "--passive", policy="observe")
    assert f"{NEXT} has no nvidia module" in summary(result, "driver.nextboot"), result.explain()
    check = next(c for c in result.host()["checks"] if c["id"] == "driver.nextboot")
    assert f"DKMS make.log for {NEXT}" in check["evidence"] and f"dkms autoinstall -k {NEXT}" in check["remedy"]
    assert summary(result, "driver.owner") == "the driver is of Debian"
    assert "550.163.01" in summary(result, "driver.packages")
    assert "unattended-upgrades may move the driver" in summary(result, "driver.held")

    # The initramfs was made with the module in it; then another one came, of another version.
    machine.run(
        f"cd / && mkdir -p /tmp/x && find usr/lib/modules/{NOW} | cpio -o -H newc >/boot/initrd.img-{NEXT} 2>/dev/null"
    )
    machine.run('until [ "$(date +%s)" -gt "$(stat -c %Z /boot/initrd.img-*)" ]; do sleep 0.1; done')
    install(machine, NEXT, nvidia_current=module(version="535.247.01", license="NVIDIA"))
    result = node("verify", policy="observe")
    assert "the next boot loads the module 535.247.01" in summary(result, "driver.nextboot"), result.explain()
    install(machine, NEXT, nvidia_current=module(version="550.163.01", license="NVIDIA"))
    result = node("verify", policy="observe")
    assert f"{NEXT} has nvidia 550.163.01" in summary(result, "driver.nextboot"), result.explain()
    assert f"/boot/initrd.img-{NEXT} holds an nvidia module" in summary(result, "driver.initramfs")
    machine.run(f"echo x | cpio -o -H newc >/boot/initrd.img-{NEXT} </dev/null 2>/dev/null")
    assert "driver.initramfs" in node("verify", policy="observe").checks("skip")


def test_unattended_upgrades_cannot_move_a_driver_that_is_held(node: Node) -> None:
    machine, before = node.machine, node.packages()
    assert {"libcuda1", "libnvidia-ptxjitcompiler1", "nvidia-alternative"} <= set(before), before
    machine.run("apt-mark hold nvidia-alternative")  # somebody's own hold
    before = node.packages()
    machine.run("rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*; rm -rf /var/lib/apt/lists/*")  # apt reads less
    offer(machine, dict.fromkeys(before, NEWER))
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
    assert "of versions 550.163.01, 550.999.01" in result.component("driver")["error"]["message"], result.explain()
