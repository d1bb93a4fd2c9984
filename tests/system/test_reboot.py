"""A reboot by consent: what stands in its way, that it is proven, and a node that does not come back.

A machine reboots for real, with a boot_id of its own, and has no ib_core: that one is loaded, and its mode another one
than the spec's, is said by files in place of /sys/module, which the reboot takes away. test_rdma.py has the kernel's.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab import Lab, Machine
from tests.system.faults import problem, until
from tests.system.harness import Gpuready, Inventories, Result

CONSENT = ("--allow-disruption", "reboot")
#: What a kernel needs to boot with its modules.
MODULES = 'here=/lib/modules/$(uname -r); mkdir -p "$here"; touch "$here/modules.dep"'
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
SYSFS = """
mkdir -p /run/cgroup; mount --bind /sys/fs/cgroup /run/cgroup; mount -t tmpfs none /sys
mkdir -p /sys/fs/cgroup /sys/module/ib_core/parameters; mount --bind /run/cgroup /sys/fs/cgroup
echo Y >/sys/module/ib_core/parameters/netns_mode; touch /sys/module/ib_core/initstate; ip netns add blue
"""


@dataclass
class Node:
    """The machine, and runs of the rdma component on it, which take a reboot."""

    machine: Machine
    gpuready: Gpuready
    inventory: Inventories

    def words(self, *words: str, **maintenance: object) -> dict[str, Any]:
        where = self.inventory(self.machine, rdma={"netns_mode": "exclusive"}, maintenance=maintenance)
        return {"args": ("apply", "--yes", "--only", "rdma", *words), "inventory": where}

    def apply(self, *words: str, **maintenance: object) -> Result:
        given = self.words(*words, **maintenance)
        return self.gpuready(*given["args"], inventory=given["inventory"])

    def sh(self, script: str) -> str:
        return self.machine.run("sh -e", stdin=script).stdout.strip()

    def waits(self, result: Result, *words: str) -> None:
        assert (result.code, result.host()["outcome"]) == (7, "pending"), result.explain()
        told = result.component("rdma")["waits"]
        assert all(word in told for word in words), told


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine() as machine:
        found = Node(machine, gpuready, inventory)
        found.sh(SYSFS)
        yield found


def test_what_stands_in_the_way_is_asked_on_the_node(node: Node) -> None:
    before = node.sh(BOOT_ID)
    node.waits(node.apply(), "for permission to reboot", "maintenance: {reboot: idle}", "--allow-disruption reboot")
    node.waits(node.apply(*CONSENT), "set maintenance: {reboot: idle} (or drained) in the spec")
    result = node.apply(*CONSENT, reboot="idle")
    assert result.code == 1 and "the kernel that would boot" in problem(result), result.explain()
    assert "has no modules" in problem(result)
    kernel = node.sh(f"{MODULES}; mkdir -p /run/driver/nvidia; uname -r")
    node.sh(f"touch /boot/initrd.img-{kernel} /boot/vmlinuz-99.1; mkdir /lib/modules/99.1")
    node.sh("touch /lib/modules/99.1/modules.dep")
    assert "99.1, has no initramfs" in problem(node.apply(*CONSENT, reboot="idle"))
    node.sh(f"rm -r /lib/modules/99.1 /boot/vmlinuz-99.1 /boot/initrd.img-{kernel}")
    node.sh("echo NVRM version: x >/run/driver/nvidia/version; mount --bind /run/driver /proc/driver")
    assert "has no nvidia module" in problem(node.apply(*CONSENT, reboot="idle"))
    node.sh("umount /proc/driver; systemd-run -q --unit=terminal script -qc 'sleep 1000000' /dev/null")
    until(lambda: "pts/1" in node.sh("ls -d /dev/pts/* | tr '\\n' ' '"))
    node.waits(node.apply(*CONSENT, reboot="idle"), "until idle: this change (class reboot)", "root at terminal pts/")
    node.sh("systemctl stop terminal; docker run -d --name train busybox:lab sleep 1000000")
    node.waits(
        node.apply(*CONSENT, reboot="idle"), "until idle: this change (class reboot) would affect train (busybox:lab)"
    )
    drain = {"before": "true", "after": "touch /var/tmp/back"}
    # Drained for, and still there: asked on the node, and the work is let back.
    node.waits(node.apply(*CONSENT, reboot="drained", drain=drain), "until idle", "container train (busybox:lab)")
    assert node.sh("ls /var/tmp/back") and node.sh(BOOT_ID) == before
    node.sh("docker rm -f train")


@pytest.mark.promise
def test_the_node_is_waited_for_and_judged_as_it_came_up(node: Node) -> None:
    before = node.sh(f"{MODULES}; {BOOT_ID}")
    result = node.apply(*CONSENT, reboot="idle")
    assert (result.code, result.host()["outcome"], result.changed()) == (0, "changed", {"rdma"}), result.explain()
    node.machine.wait()
    proof = result.host()["reboot"]
    assert (proof["before"], proof["after"]) == (before, node.sh(BOOT_ID)) and before != proof["after"]
    assert any(before in note and proof["after"] in note for note in result.host()["notes"])
    again = node.apply(*CONSENT, reboot="idle")
    assert (again.code, again.host()["execs"], again.host()["reboot"]) == (0, 1, None), again.explain()


def test_an_interrupt_leaves_the_node_to_its_reboot(node: Node) -> None:
    node.sh(SYSFS)
    before = node.sh(BOOT_ID)
    given = node.words(*CONSENT, reboot="idle")
    running = node.gpuready.start(*given["args"], inventory=given["inventory"])
    until(lambda: node.machine.run("true", check=False).returncode, 60, "the reboot")
    running.send_signal(signal.SIGINT)
    result = node.gpuready.finish(running)
    assert result.code == 130, result.explain()
    node.machine.wait()
    assert node.sh(BOOT_ID) != before
    assert node.apply().code == 0


@pytest.mark.fault("no-return-from-reboot")
def test_a_node_that_does_not_come_back_is_told(node: Node) -> None:
    node.sh(SYSFS)
    given = node.words(*CONSENT, reboot="idle", reboot_timeout=30)
    running = node.gpuready.start(*given["args"], inventory=given["inventory"])
    until(lambda: node.machine.run("true", check=False).returncode, 60, "the reboot")
    node.machine.kill()
    result = node.gpuready.finish(running)
    assert (result.code, result.host()["outcome"]) == (4, "unreachable"), result.explain()
    assert "did not come back within 30 s of its reboot; last seen:" in problem(result)
