"""RDMA and hardware, on a virtual machine: what its kernel moves, and its own words where it does not.

No released kernel moves rxe, the only RDMA device to be had here; eth1 is hardware to it, which the kernel
gives back when a container ends.
"""

from collections.abc import Iterator

import pytest

from gpuready.base import resources
from gpuready.base.records import unmarked as records
from gpuready.verbs.rdma.facts import Look, read
from gpuready.verbs.rdma.netdev import SYSCTLS
from tests.lab import Lab
from tests.system.faults import problem, until
from tests.system.harness import Gpuready, Inventories
from tests.system.test_attach import RdmaNode

_RUN = "docker run -d --name {} {} busybox:lab sleep 1000000"


@pytest.fixture(scope="module")
def node(vm_lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[RdmaNode]:
    with vm_lab.vm() as vm:
        vm.rxe()
        vm.run("modprobe -a ib_uverbs rdma_ucm && udevadm settle")
        yield RdmaNode(vm, gpuready, inventory([vm]))


def look(node: RdmaNode, container: str) -> Look:
    """What gpuready sees of the node."""
    script = resources.script(
        "verbs/rdma/look", container=container, engine="auto", device="rxe0", netdev="", sysctls=SYSCTLS
    )
    return read(records(node.machine.run("sh", stdin=script).stdout))


def test_shared_mode_needs_no_move(node: RdmaNode) -> None:
    before = node.seen("eth1")
    node.sh(_RUN.format("train", ""))
    found = look(node, "train")
    (train,) = found.containers
    assert (found.mode, found.here.devices, found.here.netdevs_of("rxe0")) == ("Y", ("rxe0",), ("eth1",))
    assert "rxe0" in found.others[train.netns].devices, "the namespace's own sysfs is read"
    result = node.rdma("attach", "--container", "train", "--device", "rxe0")
    assert (result.code, result.host()["error"]["kind"]) == (1, "refused"), result.explain()
    assert "the RDMA devices of this node are shared: container train (docker) already sees rxe0" in problem(result)
    assert "the container lacks /dev/infiniband/uverbs0, /dev/infiniband/rdma_cm, unlimited locked memory" in problem(
        result
    )
    node.sh("docker rm -f train")
    assert node.seen("eth1") == before


def test_the_kernels_refusal_in_exclusive_mode(node: RdmaNode) -> None:
    """No release of the kernel moves rxe: nothing else has been moved when that is seen."""
    # The namespace of the container before ends a moment after it.
    until(lambda: node.machine.run("rdma system set netns exclusive", check=False).returncode == 0, 60)
    before = node.seen("eth1")
    node.sh(_RUN.format("train", "--device=/dev/infiniband --ulimit memlock=-1"))
    found = look(node, "train")
    (train,) = found.containers
    assert (found.mode, found.others[train.netns].devices, found.kernel) == ("N", (), {"ib_core"})
    planned = node.rdma("attach", "--container", "train", "--device", "rxe0", "--dry-run")
    assert set(planned.diff("attach")) >= {"attach.rxe0.device", "attach.eth1.netdev", "attach.eth1.addresses"}
    assert not [note for note in planned.component("attach")["notes"] if "lacks" in note], planned.explain()
    result = node.rdma("attach", "--container", "train", "--device", "rxe0")
    assert (result.code, result.host()["error"]["kind"]) == (1, "refused"), result.explain()
    words = "rdma dev set rxe0 netns: error: Operation not supported; nothing is attached, all is on the host as it was"
    assert f"the driver of rxe0 cannot move it to another network namespace ({words})" in problem(result)
    assert node.seen("eth1") == before and not node.records()
    assert "rxe0" in node.sh("rdma link show") and not node.sh("ls /run/netns 2>/dev/null || true")
    node.sh("systemd-run -q --unit=holder sh -c 'exec sleep 1000000 3</dev/infiniband/uverbs0'")
    opened = "ls -l /proc/$(systemctl show -p MainPID --value holder)/fd"
    until(lambda: "uverbs0" in node.machine.run(opened, check=False).stdout)
    held = node.rdma("attach", "--container", "train", "--device", "rxe0")
    assert "rxe0 is in use by sleep (pid " in problem(held)
    node.sh("systemctl stop holder; docker rm -f train")


def test_hardware_comes_back_bare_and_is_put_back(node: RdmaNode) -> None:
    """A container ends with the interface in it: the next one gets it as it was, and so does the host in the end."""
    node.sh(
        "ip addr add 10.77.5.1/24 dev eth1; ip route add 10.78.0.0/16 via 10.77.5.9 dev eth1; ip link set eth1 mtu 1450"
    )
    before = node.seen("eth1")
    for name in ("first", "second"):
        node.sh(_RUN.format(name, ""))
        given = node.rdma("attach", "--container", name, "--netdev", "eth1")
        assert (given.code, given.host()["outcome"]) == (0, "changed"), given.explain()
        assert node.seen("eth1", node.pid(name)) == before
        notes = " ".join(given.component("attach")["notes"])
        assert "the kernel returns eth1 to the host without its addresses" in notes
        assert ("the kernel deletes rxe0 when eth1 moves" in notes) == (name == "first"), notes
        node.sh(f"docker rm -f {name}; until [ -e /sys/class/net/eth1 ]; do sleep 0.1; done")
        (known,) = node.attached(node.rdma("list"))
        assert (known["state"], known["where"]) == ("returned", f"container {name} (docker)")
        assert "10.77." not in node.sh("ip addr show dev eth1")
    assert "rxe0" not in node.sh("rdma link show")
    back = node.rdma("detach", "--netdev", "eth1")
    assert (back.code, back.host()["outcome"]) == (0, "changed"), back.explain()
    assert node.seen("eth1") == before and not node.records()


def test_what_somebody_else_moved(node: RdmaNode) -> None:
    node.sh(f"{_RUN.format('train', '')}; ip netns add byhand; ip link set eth1 netns byhand")
    result = node.rdma("attach", "--container", "train", "--netdev", "eth1")
    node.sh("ip netns del byhand; docker rm -f train")
    assert "eth1 is in the network namespace of byhand, and gpuready did not move it" in problem(result)
