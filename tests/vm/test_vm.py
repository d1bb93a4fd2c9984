"""Virtual machines: what a test may rely on. Each boot takes most of a minute without KVM, so two of them do it all."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.lab import VM, Lab, LabError, network, node, qemu, scale
from tests.lab.processes import wait_gone


def test_a_vm_is_the_same_host_with_a_kernel_of_its_own(pair: tuple[VM, ...]) -> None:
    vm = pair[0]
    assert vm.run("hostname").stdout == f"{vm.name}\n"
    assert vm.run("docker run --rm busybox:lab sh -c 'echo $((6*7))'").stdout == "42\n"
    assert vm.run("systemctl --failed --no-legend").stdout == ""
    assert vm.run("sudo -n id -u", user="gpu").stdout == "0\n"
    assert vm.run("uname -r").stdout != subprocess.check_output(["uname", "-r"], text=True)
    assert vm.run("command -v python3", check=False).returncode != 0
    assert "BOOT_IMAGE=" in vm.run("cat /proc/cmdline").stdout  # GRUB says so, QEMU's -kernel does not
    facts = "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub; docker info -f '{{.ID}}'"
    assert set(vm.run(facts).stdout.split("\n")) & set(pair[1].run(facts).stdout.split("\n")) <= {""}


@pytest.mark.core
def test_vms_come_before_what_else_the_host_does(pair: tuple[VM, ...]) -> None:
    """They would miss their limits beside others, if the kernel gave each session the same share."""
    for vm in pair:
        (pid,) = qemu.processes(vm.name)
        assert os.getpriority(os.PRIO_PROCESS, pid) == int(qemu.NICE)
        group = Path(f"/proc/{pid}/autogroup")
        assert not group.exists() or group.read_text().split()[1:] == ["nice", qemu.NICE]


def test_files_are_put_with_their_modes_and_links(pair: tuple[VM, ...], tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho put\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "link").symlink_to("tool")
    pair[0].put(tmp_path, "/opt/lab/folder")
    pair[0].put(tmp_path / "tool", "/opt/lab/renamed")
    told = pair[0].run(
        "/opt/lab/folder/link; /opt/lab/renamed; readlink /opt/lab/folder/link; stat -c %u:%a /opt/lab/renamed"
    )
    assert told.stdout == "put\nput\ntool\n0:755\n"


def test_rdma_passes_over_the_private_wire(pair: tuple[VM, ...]) -> None:
    one, two = pair
    assert (one.wire, two.wire) == ("10.77.0.1", "10.77.0.2")
    for vm in pair:
        assert vm.rxe() == vm.rxe() == "rxe0"
    one.run("systemd-run --quiet --unit=lab-rping rping -s -a 0.0.0.0 -C 10")
    two.run(f"timeout {scale.seconds(60):.0f} sh -c 'until rping -c -a {one.wire} -C 10; do :; done'")
    assert int(two.run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts").stdout) > 20
    assert "fe80::" in two.run("ip -6 address show dev eth1").stdout


def test_what_grub_is_told_counts_after_a_reboot(pair: tuple[VM, ...]) -> None:
    vm = pair[0]
    vm.run("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&lab.mark=1 /' /etc/default/grub && update-grub")
    before = vm.run("cat /proc/sys/kernel/random/boot_id").stdout
    vm.reboot()
    assert vm.run("cat /proc/sys/kernel/random/boot_id").stdout != before
    assert "lab.mark=1" in vm.run("cat /proc/cmdline").stdout
    assert vm.run("ip -4 -o address show dev eth1").stdout.count(vm.wire) == 1


def test_a_vm_ends_with_the_run_that_started_it(vm_lab: Lab) -> None:
    script = """
        import os, signal
        from tests.lab import Lab, VM
        lab = Lab()
        made = lab.create_vm(f"dies{os.getpid()}", owner=os.getpid())
        VM.wait = lambda *_: None
        made.start()
        print(made.name, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    name = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    wait_gone(qemu.processes(name), 20)
    left = VM(node.load(name))
    assert not left.running()
    vm_lab.destroy(left)
    assert not left.home.exists()
    assert not list(Path("/sys/class/net").glob(f"{network.link(left.record.index)}[bw]"))
    assert not Path("/sys/class/net", network.link(left.record.index)).exists()


def test_a_vm_that_cannot_start_says_why(vm_lab: Lab) -> None:
    made = vm_lab.create_vm("deadvm", owner=os.getpid())
    try:
        made.disk.unlink()
        with pytest.raises(LabError, match=r"disk\.qcow2.*No such file"):
            made.start()
    finally:
        vm_lab.destroy(made)
