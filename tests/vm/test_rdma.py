"""RDMA's namespace mode on a kernel of its own: option, initramfs, switch, reboot and the way back, on one of the pair.

The tests go on from one another, in the order of the file, because a boot takes most of a minute without KVM.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuready.components.rdma.conf import mode
from gpuready.components.rdma.state import CONF
from tests.components.rdma.test_rdma import PRECEDENCE
from tests.lab import VM
from tests.system.faults import problem
from tests.system.harness import Gpuready, Inventories, Result

MODE = "/sys/module/ib_core/parameters/netns_mode"
#: Notes what modprobe.d held whenever ib_core was loaded, by whatever.
WITNESS = "install ib_core ls /etc/modprobe.d >>/run/witness; modprobe --ignore-install ib_core $CMDLINE_OPTS\n"
CONSENT = ("--allow-disruption", "reboot")
LIMIT = 1200


@dataclass
class Node:
    """The VM, and runs of the rdma component alone on it."""

    vm: VM
    gpuready: Gpuready
    inventory: Inventories

    def where(self, mode: str = "exclusive", packages: tuple[str, ...] = (), **maintenance: object) -> Path:
        rdma = {"netns_mode": mode, "packages": list(packages)}
        return self.inventory(self.vm, rdma=rdma, maintenance=maintenance)

    def run(
        self, verb: str, *words: str, mode: str = "exclusive", packages: tuple[str, ...] = (), **maintenance: object
    ) -> Result:
        yes = () if verb in ("plan", "verify") else ("--yes",)
        where = self.where(mode, packages, **maintenance)
        return self.gpuready(verb, *yes, "--only", "rdma", *words, inventory=where, timeout=LIMIT)

    def sh(self, script: str) -> str:
        return self.vm.run("sh -e", stdin=script).stdout.strip()

    def mode(self) -> str:
        """The running mode, as the kernel writes it: Y is shared."""
        return self.sh(f"cat {MODE} 2>/dev/null || true")

    def waits(self, result: Result, *words: str) -> None:
        """The run did what it could, and says what the rest waits for."""
        assert (result.code, result.host()["outcome"]) == (7, "pending"), result.explain()
        told = result.component("rdma")["pending_reason"]
        assert all(word in told for word in words), told


@pytest.fixture(scope="module")
def node(pair: tuple[VM, ...], gpuready: Gpuready, inventory: Inventories) -> Node:
    return Node(pair[0], gpuready, inventory)


def test_precedence_is_what_modprobe_says(node: Node) -> None:
    script = "cd $(mktemp -d)\n"
    for number, (files, _, _) in enumerate(PRECEDENCE.values()):
        script += f"mkdir {number}; cd {number}; mkdir etc run usr local\n"
        for path, text in files.items():
            folder = {"/usr/local": "local", "/usr/lib/m": "usr"}.get(path[:10], path[1:4])
            script += f"cat >{folder}/{Path(path).name} <<'EOT'\n{text}\nEOT\n"
        script += "echo case; modprobe -C etc -C run -C local -C usr -c | grep '^options ib_core' || true; cd ..\n"
    # The command line beats the files.
    script += "echo 'ib_core.netns_mode=1 quiet' >cmdline; mount --bind cmdline /proc/cmdline; mkdir c\n"
    script += "echo 'options ib_core netns_mode=0' >c/a.conf\n"
    script += "echo case; modprobe -C c -c | grep '^options ib_core'; umount /proc/cmdline"
    said = [
        [mode(word.partition("=")[2]) for word in told.split() if word.replace("-", "_").startswith("netns_mode")]
        for told in node.sh(script).split("case\n")[1:]
    ]
    assert [(found or ["shared"])[-1] for found in said] == [wanted for _, wanted, _ in PRECEDENCE.values()] + [
        "shared"
    ]


def test_the_option_is_there_before_anything_loads_the_module(node: Node) -> None:
    """Packages whose rules and units load modules are installed by the same apply."""
    node.sh("apt-get purge -qq -y rdma-core perftest rdmacm-utils >/dev/null; ! lsmod | grep -q ib_core")
    (node.vm.home / "witness.conf").write_text(WITNESS)
    node.vm.put(node.vm.home / "witness.conf", "/etc/modprobe.d/witness.conf")
    packages = ("rdma-core", "perftest")
    plan = node.run("plan", packages=packages)
    assert plan.component("rdma")["disruption"] == "recreate", plan.explain()
    assert set(plan.diff("rdma")) > {"rdma.configured", "rdma.package.perftest"}
    result = node.run("apply", packages=packages)
    assert (result.code, result.changed()) == (0, {"rdma"}), result.explain()
    assert node.sh("dpkg-query -W -f '${db:Status-Status} ' rdma-core perftest") == "installed installed"
    node.vm.rxe()
    assert node.mode() == "N"
    seen = node.sh("cat /run/witness").split()
    assert CONF.rpartition("/")[2] in seen and "witness.conf" in seen
    again = node.run("apply", packages=packages)
    assert (again.code, again.changed()) == (0, set()), again.explain()


def test_beside_a_container_the_switch_waits_and_without_it_it_is_done(node: Node) -> None:
    node.sh("docker rm -f train 2>/dev/null || true; docker run -d --name train busybox:lab sleep 1000000")
    said = node.vm.run("rdma system set netns shared", check=False)
    assert (said.returncode, said.stderr.strip()) == (1, "error: Device or resource busy")
    plan = node.run("plan", mode="shared")
    found = plan.component("rdma")
    assert found["disruption"] == "reboot", plan.explain()
    assert any("sleep (pid" in note and "EBUSY" in note for note in found["notes"]), plan.explain()
    result = node.run("apply", mode="shared")
    node.waits(result, "permission to reboot", "maintenance: {reboot: idle}", "--allow-disruption reboot")
    assert (node.mode(), node.sh(f"tail -n 1 {CONF}")) == ("N", "options ib_core netns_mode=1")
    node.waits(
        node.run("apply", *CONSENT, mode="shared", reboot="idle"),
        "until idle: this change (class reboot)",
        "train (busybox:lab)",
    )
    node.sh("docker rm -f train >/dev/null")
    result = node.run("apply", mode="shared")
    assert (result.code, result.changed(), result.host()["reboot"]) == (0, {"rdma"}, None), result.explain()
    assert node.mode() == "Y"


def test_a_namespace_that_only_has_a_name_is_told_by_it(node: Node) -> None:
    node.sh("ip netns add blue")
    plan = node.run("plan")
    assert any("/run/netns/blue" in note for note in plan.component("rdma")["notes"]), plan.explain()
    node.sh("ip netns del blue")


def test_a_file_that_says_something_else_is_named_and_nothing_is_touched(node: Node) -> None:
    node.sh("echo 'options ib_core netns_mode=1' >/etc/modprobe.d/hpc.conf")
    before = node.sh("ls -lR --time-style=full-iso /etc/modprobe.d /boot")
    result = node.run("apply")
    assert result.code == 1, result.explain()
    assert "/etc/modprobe.d/hpc.conf sets shared" in problem(result)
    assert node.sh("ls -lR --time-style=full-iso /etc/modprobe.d /boot") == before
    node.sh("rm /etc/modprobe.d/hpc.conf")


@pytest.mark.core
def test_a_reboot_brings_it_about(node: Node) -> None:
    """ib_core is loaded in the initramfs, by the options that lie there: so that one was built anew."""
    node.sh("modprobe ib_core; rm -f /etc/modprobe.d/witness.conf")
    shared = node.run("apply", mode="shared")
    assert (shared.code, node.mode()) == (0, "Y"), shared.explain()
    node.sh(
        "echo ib_core >>/etc/initramfs-tools/modules; update-initramfs -u 2>/dev/null; ip netns add blue\n"
        "docker run -d --restart=always --name web busybox:lab sleep 1000000"
    )
    before = node.sh("cat /proc/sys/kernel/random/boot_id")
    result = node.run("apply", *CONSENT, reboot="idle", ignore=["busybox"])
    assert (result.code, result.host()["outcome"], result.changed()) == (0, "changed", {"rdma"}), result.explain()
    proof: dict[str, Any] = result.host()["reboot"]
    assert proof["before"] == before != proof["after"] == node.sh("cat /proc/sys/kernel/random/boot_id")
    assert node.mode() == "N"
    assert "rdma.netns" in result.checks("pass"), result.explain()
    again = node.run("apply", reboot="idle")
    assert (again.code, again.changed()) == (0, set()), again.explain()


@pytest.mark.core
def test_the_way_back_ends_with_a_reboot_of_its_own(node: Node) -> None:
    node.sh("docker start web >/dev/null")  # its namespace keeps the mode
    result = node.run("remove")
    node.waits(result, "permission to reboot")
    assert node.sh(f"test ! -e {CONF} && cat {MODE}") == "N"
    before = node.sh("cat /proc/sys/kernel/random/boot_id")
    book = "/var/tmp/book"
    drain = {word: f"echo {word} $(cat /proc/sys/kernel/random/boot_id) >>{book}" for word in ("before", "after")}
    result = node.run("remove", *CONSENT, reboot="drained", drain=drain, ignore=["busybox"])
    assert (result.code, result.host()["outcome"]) == (0, "changed"), result.explain()
    proof = result.host()["reboot"]
    assert (proof["before"], node.mode()) == (before, "Y")
    assert node.sh(f"cat {book}").splitlines() == [f"before {proof['before']}", f"after {proof['after']}"]
    result = node.run("remove")
    assert (result.code, result.changed()) == (0, set()), result.explain()


def test_what_was_installed_for_it_is_gone_with_it(node: Node) -> None:
    assert node.sh("dpkg-query -W -f '${db:Status-Status}' perftest 2>/dev/null || true") in ("", "not-installed")
