"""A reboot by consent: what stands in its way, that it is proven, and a node that does not come back.

A machine reboots for real, with a boot_id of its own, and has no ib_core: that one is loaded, and its mode another one
than the spec's, is said by files in place of /sys/module, which the reboot takes away. test_rdma.py has the kernel's.
"""

import signal

import pytest

from tests.system.faults import problem, until
from tests.system.host import Host, Hosts

CONSENT = ("--allow-disruption", "reboot")
#: What a kernel needs to boot with its modules.
MODULES = 'here=/lib/modules/$(uname -r); mkdir -p "$here"; touch "$here/modules.dep"'
SYSFS = """
mkdir -p /run/cgroup; mount --bind /sys/fs/cgroup /run/cgroup; mount -t tmpfs none /sys
mkdir -p /sys/fs/cgroup /sys/module/ib_core/parameters; mount --bind /run/cgroup /sys/fs/cgroup
echo Y >/sys/module/ib_core/parameters/netns_mode; touch /sys/module/ib_core/initstate; ip netns add blue
"""


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    """Runs of the rdma component on it take a reboot."""
    machine = shared()
    machine.sh(SYSFS)
    return machine.only("rdma").with_spec(rdma={"netns_mode": "exclusive"})


@pytest.fixture
def idle(node: Host) -> Host:
    """The node with consent to a reboot when it is idle."""
    return node.given(*CONSENT).with_spec(maintenance={"reboot": "idle"})


def boot_id(node: Host) -> str:
    return node.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()


def test_what_stands_in_the_way_is_asked_on_the_node(node: Host, idle: Host) -> None:
    before = boot_id(node)
    node.waits("rdma", "for permission to reboot", "maintenance: {reboot: idle}", "--allow-disruption reboot")
    node.given(*CONSENT).waits("rdma", "set maintenance: {reboot: idle} (or drained) in the spec")
    idle.fails("the kernel that would boot", "has no modules")
    kernel = node.sh(f"{MODULES}; mkdir -p /run/driver/nvidia; uname -r").strip()
    node.sh(f"touch /boot/initrd.img-{kernel} /boot/vmlinuz-99.1; mkdir /lib/modules/99.1")
    node.sh("touch /lib/modules/99.1/modules.dep")
    idle.fails("99.1, has no initramfs")
    node.sh(f"rm -r /lib/modules/99.1 /boot/vmlinuz-99.1 /boot/initrd.img-{kernel}")
    node.sh("echo NVRM version: x >/run/driver/nvidia/version; mount --bind /run/driver /proc/driver")
    idle.fails("has no nvidia module")
    node.sh("umount /proc/driver; systemd-run -q --unit=terminal script -qc 'sleep 1000000' /dev/null")
    until(lambda: "pts/1" in node.sh("ls -d /dev/pts/* | tr '\\n' ' '"))
    idle.waits("rdma", "until idle: this change (class reboot)", "root at terminal pts/")
    node.sh("systemctl stop terminal; docker run -d --name train busybox:lab sleep 1000000")
    idle.waits("rdma", "until idle: this change (class reboot) would affect train (busybox:lab)")
    drain = {"before": "true", "after": "touch /var/tmp/back"}
    # Drained for, and still there: asked on the node, and the work is let back.
    drained = {"reboot": "drained", "drain": drain}
    idle.waits("rdma", "until idle", "container train (busybox:lab)", maintenance=drained)
    assert node.sh("ls /var/tmp/back") and boot_id(node) == before
    node.sh("docker rm -f train")


@pytest.mark.promise
def test_the_node_is_waited_for_and_judged_as_it_came_up(node: Host, idle: Host) -> None:
    node.sh(MODULES)
    before = boot_id(node)
    result = idle.apply()
    assert result.changed() == {"rdma"}, result.explain()
    node.wait()
    proof = result.host()["reboot"]
    assert (proof["before"], proof["after"]) == (before, boot_id(node)) and before != proof["after"]
    assert any(before in note and proof["after"] in note for note in result.host()["notes"])
    assert idle.settled().host()["reboot"] is None


@pytest.mark.fault("interrupt")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_a_reboot_and_an_abort_leaves_the_node_to_it(
    node: Host, idle: Host, number: signal.Signals
) -> None:
    node.sh(SYSFS)
    before = boot_id(node)
    running = idle.begin("apply")
    until(lambda: node.run("true", check=False).returncode, 60, "the reboot")
    running.send_signal(number)
    result = node.gpuready.finish(running, code=130)
    node.wait()
    assert boot_id(node) != before
    proof = {"before": before, "after": boot_id(node)} if number == signal.SIGINT else {}
    assert proof.items() <= (result.host()["reboot"] or {}).items(), result.explain()
    node.apply()


@pytest.mark.fault("no-return-from-reboot")
def test_a_node_that_does_not_come_back_is_told(node: Host, idle: Host) -> None:
    node.sh(SYSFS)
    running = idle.begin("apply", maintenance={"reboot": "idle", "reboot_timeout": 30})
    until(lambda: node.run("true", check=False).returncode, 60, "the reboot")
    node.kill()
    result = node.gpuready.finish(running, code=4)
    assert result.host()["outcome"] == "unreachable", result.explain()
    assert "did not come back within 30 s of its reboot; last seen:" in problem(result)
