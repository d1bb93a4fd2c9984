"""A network interface given to a container and taken back, with real engines and real moves by the kernel.

A machine has no RDMA device and no interface of hardware: what needs one is shown on a VM (test_attach_rdma.py).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.components.ledger.component import Forget
from tests.lab import Lab, Node, cri
from tests.system.faults import leftovers, problem
from tests.system.harness import Gpuready, Inventories, Result
from tests.system.test_interrupts import _cut

RECORDS = "/var/lib/gpuready/attached"
# All that a move loses: two subnets, a second address of one, a peer, a label, IPv6, routes of several kinds.
_FABRIC = """
ip link add fab0 type veth peer name far0
ip link set far0 mtu 4200 up
ip link set fab0 mtu 4200 up
ip addr add 10.50.0.5/24 brd + dev fab0 label fab0:x
ip addr add 10.50.0.6/24 dev fab0
ip addr add 10.51.0.1 peer 10.51.0.2/32 dev fab0 noprefixroute metric 77
ip addr add fd00:50::5/64 dev fab0 nodad
ip route add 10.60.0.0/16 via 10.50.0.1 dev fab0 metric 50 mtu 1400 src 10.50.0.5 proto static
ip route add default via 10.50.0.1 dev fab0 table 101
ip -6 route add fd00:60::/48 via fd00:50::1 dev fab0
echo 2 >/proc/sys/net/ipv4/conf/fab0/arp_announce
echo 1 >/proc/sys/net/ipv4/conf/fab0/arp_ignore
"""
_SEEN = """while ip -6 addr show dev {0} tentative | grep -q inet6; do sleep 0.1; done
ip -j -d addr show dev {0}; ip -j route show table all dev {0}; ip -j -6 route show table all dev {0}
cd /proc/sys/net; cat ipv4/conf/{0}/arp_announce ipv4/conf/{0}/arp_ignore ipv6/conf/{0}/disable_ipv6"""
_BUSYBOX = "busybox:lab sleep 1000000"


class RdmaNode:
    """A machine with containers, and one inventory for all runs."""

    def __init__(self, machine: Node, gpuready: Gpuready, inventory: Path) -> None:
        self.machine, self.gpuready, self.inventory, self.sh = machine, gpuready, inventory, machine.sh

    def rdma(self, verb: str, *options: str, code: int | None = None) -> Result:
        host = () if verb == "list" else (self.machine.name,)
        yes = () if verb == "list" or "--dry-run" in options else ("--yes",)
        return self.gpuready("rdma", verb, *host, *options, *yes, inventory=self.inventory, code=code)

    def attach(self, container: str, netdev: str = "fab0", *options: str, outcome: str = "changed") -> Result:
        """An interface is given to a container, with that outcome ("failed": exit code 1)."""
        code = 1 if outcome == "failed" else 0
        found = self.rdma("attach", "--container", container, "--netdev", netdev, *options, code=code)
        assert code or found.host()["outcome"] == outcome, found.explain()
        return found

    def detach(self, netdev: str = "fab0", outcome: str = "changed") -> Result:
        """It is given back."""
        found = self.rdma("detach", "--netdev", netdev, code=0)
        assert found.host()["outcome"] == outcome, found.explain()
        return found

    def pid(self, container: str) -> str:
        return self.sh(f"docker inspect -f '{{{{.State.Pid}}}}' {container}").strip()

    def seen(self, netdev: str, pid: str = "") -> Any:
        """The interface as the kernel tells it, but for what a move may change: its index, and whose it is."""
        inside = f"nsenter -t {pid} -n " if pid else ""
        said = self.sh(f"{inside}sh -ec '{_SEEN.format(netdev)}'")
        link, *rest = said.splitlines()
        found = json.loads(link)[0]
        for key in ("ifindex", "link", "link_index", "link_netnsid"):
            found.pop(key, None)
        return found, [sorted(json.loads(row), key=str) if row.startswith("[") else row for row in rest if row]

    def attached(self, result: Result) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = result.host()["attached"]
        return found

    def records(self) -> list[str]:
        return self.sh(f"ls {RECORDS} 2>/dev/null || true").split()


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[RdmaNode]:
    with lab.machine() as machine:
        found = RdmaNode(machine, gpuready, inventory(machine))
        cri.prepare(machine)
        found.sh(f"for n in train other; do docker run -d --name $n {_BUSYBOX}; done\n{_FABRIC}")
        found.sh("systemd-run -q sh -c 'true & exec sleep 1000000'")  # the first one ends, and nobody waits for it
        yield found


def test_there_and_back(node: RdmaNode) -> None:
    before = node.seen("fab0")
    node.attach("train", "fab0", "--dry-run", outcome="would_change")
    assert node.seen("fab0") == before and not node.records()
    given = node.attach("train")
    assert given.host()["execs"] == 3, given.explain()
    assert given.diff("attach")["attach.fab0.netdev"] == ("host", "container train (docker)")
    assert node.seen("fab0", node.pid("train")) == before
    assert "fab0" not in node.sh("ls /sys/class/net")
    (known,) = node.attached(given)
    assert known["state"] == "attached" and known["mtu"] == 4200 and known["up"] is True
    assert known["addresses"] == ["10.50.0.5/24", "10.51.0.1", "10.50.0.6/24", "fd00:50::5/64"]
    notes = " ".join(given.component("attach")["notes"])
    assert "is a veth: the kernel destroys it" in notes
    assert node.attach("train", outcome="ok").host()["execs"] == 1
    # The container's end of it is used as the host's was: what is lost inside is brought back.
    node.sh(f"nsenter -t {node.pid('train')} -n ip addr del 10.50.0.6/24 dev fab0")
    mended = node.attach("train")
    assert list(mended.diff("attach")) == ["attach.fab0.addresses"], mended.explain()
    assert node.seen("fab0", node.pid("train")) == before
    already = "fab0 is already attached to container train (docker) / first run gpuready rdma detach HOST --netdev fab0"
    assert already in problem(node.attach("other", outcome="failed"))
    # `gpuready remove` knows nothing of it, and leaves the way back where it is.
    node.machine.run("sh", stdin=Forget().render())
    listed = node.rdma("list")
    assert [each["where"] for each in node.attached(listed)] == ["container train (docker)"]
    back = node.rdma("detach", "--container", "train", code=0)
    assert back.component("detach")["affected"] == ["container train (docker)"]
    assert node.seen("fab0") == before
    assert not node.records() and not leftovers(node.machine)
    assert node.sh("ls /run/netns 2>/dev/null || true") == ""
    node.detach(outcome="ok")


def test_a_name_that_the_container_gave_it(node: RdmaNode) -> None:
    before = node.seen("fab0")
    node.attach("train")
    node.sh(
        f"p={node.pid('train')}; nsenter -t $p -n ip link set fab0 down; nsenter -t $p -n ip link set fab0 name roce"
    )
    assert node.attach("train").changed() == {"attach"}
    assert node.seen("roce", node.pid("train"))[1] == before[1]
    node.detach()
    assert node.seen("fab0") == before


def test_what_fails_half_way_is_undone(node: RdmaNode) -> None:
    """The container's own policy rules make the kernel refuse a gateway, after the interface was moved."""
    before, rule = node.seen("fab0"), "ip rule {} priority 1 to 10.50.0.1 prohibit"
    node.sh(f"nsenter -t {node.pid('train')} -n {rule.format('add')}")
    failed = node.attach("train", outcome="failed")
    node.sh(f"nsenter -t {node.pid('train')} -n {rule.format('del')}")
    assert "nothing is attached, all is on the host as it was" in problem(failed)
    assert node.seen("fab0") == before
    assert not node.records() and not leftovers(node.machine) and node.attached(failed) == []
    assert "fab0" not in node.sh(f"nsenter -t {node.pid('train')} -n ip -br link")


def test_what_fails_the_second_time_keeps_the_record(node: RdmaNode) -> None:
    """The interface is in there, without its address by now; that its way back is known must outlive a failure."""
    before, rule = node.seen("fab0"), "ip rule {} priority 1 to 10.50.0.1 prohibit"
    node.attach("train")
    kept = node.sh(f"cat {RECORDS}/fab0.json")
    inside = f"nsenter -t {node.pid('train')} -n"
    node.sh(f"{inside} ip address flush dev fab0; {inside} {rule.format('add')}")
    failed = node.attach("train", outcome="failed")
    node.sh(f"{inside} {rule.format('del')}")
    assert f"the record from before stays in {RECORDS}/fab0.json" in problem(failed)
    assert node.sh(f"cat {RECORDS}/fab0.json") == kept
    node.detach()
    assert node.seen("fab0") == before and not node.records()


def test_what_can_be_neither_done_nor_undone_is_on_record(node: RdmaNode) -> None:
    """A macvlan whose hardware address its lower interface has got by now cannot be up again, wherever it is."""
    node.sh("ip link add mv0 link far0 address 02:00:00:00:00:07 type macvlan; ip addr add 10.70.0.1/24 dev mv0")
    far0 = node.seen("far0")[0]["address"]
    node.sh("ip link set mv0 up; ip link set far0 address 02:00:00:00:00:07")
    told = problem(node.attach("train", "mv0", outcome="failed"))
    reason = "mv0: RTNETLINK answers: Address already in use"
    assert f"undoing it failed, too; {reason}; its way back is in {RECORDS}/mv0.json" in told
    (known,) = node.attached(node.rdma("list"))
    assert known["state"] == "returned"
    node.sh(f"ip link set far0 address {far0}")
    node.detach("mv0")
    assert "10.70.0.1/24" in node.sh("ip -br addr show dev mv0 up") and not node.records()
    node.sh("ip link del mv0")


def test_a_container_that_was_started_again_since_the_plan(node: RdmaNode) -> None:
    before, pid = node.seen("fab0"), node.pid("train")
    values = {
        "device": "", "netdev": "fab0", "interface": "fab0", "where": "container train (docker)", "content": "{}",
        "record": f"{RECORDS}/fab0.json", "back": "", "commands": "", "settings_back": [], "settings_inside": [],
    }  # fmt: skip
    for path, inode in ((f"/proc/{pid}/ns/net", 1), ("/proc/999999999/ns/net", 1)):
        step = node.machine.run(
            "sh", stdin=resources.script("verbs/rdma/attach", path=path, inode=inode, **values), check=False
        )
        assert (step.returncode, step.stdout) == (1, "")
        assert step.stderr == (
            "container train (docker) has ended or was started again since the plan was made; nothing was moved, "
            "run again\n"
        )
    assert node.seen("fab0") == before and not node.records()


def test_refusals(node: RdmaNode) -> None:
    """Each says what it is and what to do; nothing is moved."""
    node.sh(
        f"""
        docker run -d --name hostnet --network host {_BUSYBOX}
        docker create --name stopped {_BUSYBOX}
        ip link add br9 type bridge; ip link add part0 type veth peer name part1; ip link set part0 master br9
        ip link add eth7 type veth peer name eth8; ip link set eth8 netns {node.pid("train")} name eth7
        ip link add low0 type veth peer name low1; ip link add high0 link low0 type macvlan
        ip link add wan0 type veth peer name wan1; ip link set wan0 up; ip link set wan1 up
        ip addr add 10.80.0.1/24 dev wan0; ip route add default via 10.80.0.2 dev wan0 metric 5000
        ip route add 10.90.0.0/16 nexthop via 10.50.0.1 dev fab0 nexthop via 10.80.0.2 dev wan0
        """
    )
    before = node.sh("ip -br link")
    refused = {
        ("hostnet", "fab0"): r"container hostnet \(docker\) uses the host network",
        ("stopped", "fab0"): r"container stopped \(docker\) is created: .* / start it first",
        ("nobody", "fab0"): "no container or pod nobody runs on this node",
        ("train", "fab0", "--engine", "cri"): "no container or pod train of cri runs on this node",
        ("train", "eth0"): r"eth0 carries this SSH connection \([0-9.]+\): moving it would cut the node off",
        ("train", "wan0"): "wan0 has the default route of this node: .* / .*first remove the default route from wan0",
        ("train", "lo"): "lo is the loopback interface",
        ("train", "nope0"): "the host has no network interface nope0",
        ("train", "part0"): "part0 is part of br9",
        ("train", "br9"): "part0 on the host needs br9",
        ("train", "low0"): "high0 on the host needs low0",
        ("train", "eth7"): "container train .docker. already has an interface eth7 / rename the host's interface first",
        ("train", "fab0"): "fab0 is one of several next hops of the route to 10.90.0.0/16",
    }
    for words, message in refused.items():
        result = node.attach(*words, outcome="failed")
        assert result.host()["error"]["kind"] == "refused", result.explain()
        assert re.search(message, problem(result)), problem(result)
    device = node.rdma("attach", "--container", "train", "--device", "mlx5_0", code=1)
    assert re.search("ib_core is not loaded|no RDMA device mlx5_0|`rdma`", problem(device))
    node.rdma("detach", "--device", "mlx5_0", code=1)
    assert node.sh("ip -br link") == before and not node.records()
    node.sh("ip route del 10.90.0.0/16; ip link del br9; for i in part0 eth7 high0 low0 wan0; do ip link del $i; done")
    node.sh("docker rm -f hostnet stopped")


def test_a_container_that_ends_takes_a_veth_along(node: RdmaNode) -> None:
    node.sh(f"docker run -d --name short {_BUSYBOX}; ip link add gone0 type veth peer name gone1")
    node.attach("short", "gone0")
    node.sh("docker rm -f short >/dev/null; while [ -e /sys/class/net/gone1 ]; do sleep 0.1; done")
    (known,) = node.attached(node.rdma("list"))
    assert known["state"] == "destroyed"
    back = node.detach("gone0")
    assert back.component("detach")["notes"] == [
        "gone0 is gone: the kernel destroyed the veth together with container short (docker)"
    ]
    assert not node.records()


def test_a_lost_connection_cuts_nothing_in_two(node: RdmaNode) -> None:
    before = node.seen("fab0")
    _cut(node.machine, "attach", "ip", "-batch")
    node.attach("train")
    node.sh("rm /usr/local/bin/ip; test -e /var/tmp/cut.attach")
    assert node.seen("fab0", node.pid("train")) == before
    node.detach()
    assert node.seen("fab0") == before


def test_containerd_without_nerdctl(node: RdmaNode) -> None:
    """The name of a nerdctl container stands in its annotations; one of ctr is its id."""
    node.sh(
        """
        docker save busybox:lab | ctr images import - >/dev/null
        ctr run -d --annotation nerdctl/name=named docker.io/library/busybox:lab 0123456789abcdef sleep 100000
        """
    )
    before = node.seen("fab0")
    given = node.attach("named")
    (known,) = node.attached(given)
    assert (known["engine"], known["where"]) == ("containerd", "container named (containerd)")
    for name, engine in (("0123456789abcdef", "containerd"), ("012345", "auto")):
        node.attach(name, "fab0", "--engine", engine, outcome="ok")
    node.rdma("detach", "--container", "named", code=0)
    assert node.seen("fab0") == before
    node.sh("docker run -d --name named busybox:lab sleep 100000")
    twice = problem(node.attach("named", outcome="failed"))
    assert "several containers have the name named: container named (docker)" in twice
    assert "container named (containerd) 0123456789ab / give --engine" in twice
    node.sh("docker rm -f named; ctr task kill -s KILL 0123456789abcdef")


_CNI = {
    "cniVersion": "1.0.0",
    "name": "lab",
    "plugins": [
        {
            "type": "bridge", "bridge": "cni0", "isGateway": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]},
        }
    ],
}  # fmt: skip
_POD = """
cd /run
echo '{"metadata":{"name":"worker-0","uid":"w0","namespace":"ml"},"log_directory":"/run/podlog"}' >pod.json
echo '{"metadata":{"name":"main"},"image":{"image":"busybox:lab"},"command":["sleep","9999"],"log_path":"m"}' >m.json
POD=$(crictl runp pod.json)
crictl start "$(crictl create "$POD" m.json pod.json)" >/dev/null
echo "$POD"
"""


def test_pods_once_for_each_sandbox(node: RdmaNode) -> None:
    """A pod with a network of its own, by real CNI plugins; its containers share one namespace."""
    node.machine.install("containernetworking-plugins")
    conf = json.dumps(_CNI)
    node.sh(
        "mkdir -p /opt/cni /etc/cni/net.d; ln -sfn /usr/lib/cni /opt/cni/bin; "
        f"echo '{conf}' >/etc/cni/net.d/lab.conflist"
    )
    sandbox = node.sh(_POD).strip()
    before = node.seen("fab0")
    given = node.attach("ml/worker-0")
    (known,) = node.attached(given)
    assert (known["where"], known["id"]) == ("pod ml/worker-0", sandbox)
    for name in ("worker-0", "main", sandbox, sandbox[:12]):
        node.attach(name, "fab0", "--engine", "cri", outcome="ok")
    node.attach("default/worker-0", outcome="failed")
    # Where the engine keeps its state elsewhere, or is none of containerd's, the CRI answers.
    tasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
    node.sh(f"mount -t tmpfs hidden {tasks}")
    for name in ("worker-0", "ml/worker-0", "main"):
        node.attach(name, outcome="ok")
    node.sh(f"umount {tasks}")
    node.rdma("detach", "--container", "ml/worker-0", code=0)
    assert node.seen("fab0") == before
    node.sh(f"crictl rmp -f {sandbox}")
