"""The interface for NCCL over TCP: which one is chosen, or why none is."""

import re
from typing import Any

import pytest

from gpuready.model.network import NetDevice, Network
from gpuready.model.spec import Nccl, NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_settings import cluster
from gpuready.network.tcp_choice import choose_wires, plugin_notes
from tests.network.gid_tables import sysfs


def state(
    *devices: str, default: str = "", ssh: str = "", rdma: dict[str, str] | None = None, **more: Any
) -> NodeState:
    """A node with devices written as ``NAME[/KIND][!STATE] DRIVER ADDRESS,... [LOWER]``; - stands for nothing."""
    found = {}
    for text in devices:
        name, driver, addresses, *lower = text.split()
        name, _, mode = name.partition("!")
        name, _, kind = name.partition("/")
        found[name] = NetDevice(
            kind=kind,
            state=mode or "up",
            mtu=1500,
            addresses=() if addresses == "-" else tuple(addresses.split(",")),
            lower=tuple(lower),
            driver=driver.replace("-", ""),
        )
    network = Network(devices=found, default=(default,) if default else (), ssh=ssh, **more)
    return NodeState(network=network, rdma=rdma or {})


def chosen(*states: NodeState, **nccl: Any) -> list[str]:
    """The interfaces of each node, or the problem."""
    named = {f"n{number}": each for number, each in enumerate(states, 1)}
    found = choose_wires(named, dict.fromkeys(named, Nccl.model_validate(nccl)))
    return [each.problem or ",".join(map(str, each.wires)) for each in found.values()]


TWO = [state(f"eno1 igb 192.0.2.{n}/24", f"ens2 mlx5_core 10.0.0.{n}/24", default="eno1") for n in (1, 2)]


@pytest.mark.parametrize(
    ("devices", "more", "name"),
    [
        (("lo - 127.0.0.1/8", "eth0 virtio_net 10.0.0.1/24"), {}, "eth0"),
        (("eth0 ena 10.0.0.1/24", "docker0/bridge - 172.17.0.1/16 veth1", "veth1 - -"), {}, "eth0"),
        (("eth0 ena 10.0.0.1/24", "eth1!down ena 10.1.0.1/24"), {}, "eth0"),
        (("eth0 ena 10.0.0.1/24", "eth1 ena fe80::1/64,169.254.1.1/16"), {}, "eth0"),
        (("eth0 gve 10.128.0.2/32", "wg0 - 10.9.0.1/24"), {}, "eth0"),
        (("eno1 igb -", "br0/bridge - 10.0.0.1/24 eno1", "virbr0/bridge - 192.168.122.1/24"), {}, "br0"),
        (("eno1 igb -", "eno2 igb -", "bond0/bond - 10.0.0.1/24 eno1 eno2"), {}, "bond0"),
        (("eno1 igb -", "eno1.7/vlan - 10.0.0.1/24 eno1"), {}, "eno1.7"),
        (("eno1 igb -", "veth9 - 10.0.0.1/24"), {"default": "veth9"}, "veth9"),
        (("eno1 igb -", "tap0 - 10.0.0.1/24"), {"ssh": "10.0.0.1"}, "tap0"),
        (("host0 - 10.0.0.1/24", "docker0/bridge - 172.17.0.1/16"), {}, "host0"),  # a container: no driver to be seen
        (("eth0 ena 2001:db8::1/64",), {}, "eth0"),
    ],
)
def test_what_leads_to_other_hosts(devices: tuple[str, ...], more: dict[str, str], name: str) -> None:
    (found,) = chosen(state(*devices, **more))
    assert found.split()[0] == name


def test_interfaces_that_stand_on_each_other() -> None:
    """A circle, and a ladder whose ways double at each step, as only a hostile node has them."""
    ladder = [f"a{n} - - a{n + 1} b{n + 1}" for n in range(60)] + [f"b{n} - - a{n + 1} b{n + 1}" for n in range(60)]
    circle = "c0 - - c1", "c1 - - c0"
    bridges = "a0/bridge - 10.0.0.1/24 a1 b1", "c2/bridge - 10.0.1.1/24 c0"
    (found,) = chosen(state(*bridges, *circle, *ladder[1:], "z0 igb -"))
    assert "no active interface leads to other hosts" in found and len(found) < 700


def test_the_network_that_all_share() -> None:
    apart = state("eno1 igb 198.51.100.3/24", "ens9 mlx5_core 10.0.0.3/24", default="eno1")
    assert chosen(*TWO, apart) == ["ens2 10.0.0.1/24", "ens2 10.0.0.2/24", "ens9 10.0.0.3/24"]


def test_several_are_an_error_that_names_them_and_what_to_write() -> None:
    for found in (*chosen(*TWO), *chosen(TWO[0])):
        assert found.startswith("several interfaces could carry NCCL over TCP (eno1 192.0.2.")
        assert "ens2 10.0.0." in found and "such as nccl: {subnets: [192.0.2.0/24]}" in found
    none = chosen(TWO[0], state("eno1 igb 198.51.100.3/24", "eno2 igb 198.51.101.3/24"))
    assert none[0].startswith("the hosts share no network")
    (same,) = chosen(state("eth0 ena 10.0.0.1/24", "eth1 ena 10.0.0.2/24"))
    assert "such as nccl: {interfaces: [eth0]}" in same


def test_the_spec_decides() -> None:
    assert chosen(*TWO, subnets=["10.0.0.0/16"]) == ["ens2 10.0.0.1/24", "ens2 10.0.0.2/24"]
    assert chosen(*TWO, interfaces=["eno1"]) == ["eno1 192.0.2.1/24", "eno1 192.0.2.2/24"]
    assert chosen(TWO[0], subnets=["10.0.0.0/16", "192.0.2.0/24"]) == ["ens2 10.0.0.1/24,eno1 192.0.2.1/24"]
    assert chosen(TWO[0], interfaces=["ens2", "eno1"]) == ["ens2 10.0.0.1/24,eno1 192.0.2.1/24"]
    (wide,) = chosen(state("eth0 ena 10.0.0.1/24", "eth1 ena 10.0.1.1/24"), subnets=["10.0.0.0/16"])
    assert wide.startswith("several interfaces have an address in 10.0.0.0/16 (eth0 10.0.0.1/24, eth1")
    (none,) = chosen(TWO[0], subnets=["10.9.0.0/16"])
    assert none.startswith("no active interface matches nccl.subnets (10.9.0.0/16) (the node has eno1 192.0.2.1/24")
    (down,) = chosen(state("eth0!down ena 10.0.0.1/24"), interfaces=["eth0"])
    assert "eth0 10.0.0.1/24 (down)" in down
    assert chosen(NodeState()) == ["the network of the node could not be read"]


def settled(*states: NodeState, **spec: Any) -> list[dict[str, str] | str]:
    named = {f"n{number}": each for number, each in enumerate(states, 1)}
    found = cluster(named, dict.fromkeys(named, NodeSpec.model_validate(spec)))
    return [each.problems[0] if each.problems else {**each.variables, **each.environment} for each in found.values()]


IWARP = sysfs("irdma0", "1", type="RNIC", gids=[])
ROCE = sysfs("mlx5_0", "1", gids=["3 10.0.0.1 v2 ens2"])
PLAIN = state("eth0 ena 10.0.0.1/24")
TCP = {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}


def test_settings_without_rdma() -> None:
    six = state("eth0 ena 2001:db8::1/64")
    assert settled(PLAIN, six) == [TCP, {**TCP, "NCCL_SOCKET_FAMILY": "AF_INET6"}]


def test_rdma_is_switched_off_only_where_nccl_would_take_it() -> None:
    """iWARP ports have an Ethernet link layer, so NCCL would take them, and fail."""
    iwarp = state("eth0 ice 10.0.0.1/24", rdma=IWARP)
    assert settled(iwarp) == [{**TCP, "NCCL_IB_DISABLE": "1"}]
    down = state("eth0 ice 10.0.0.1/24", rdma=sysfs("irdma0", "1", type="RNIC", state="DOWN", gids=[]))
    assert settled(down) == [TCP]
    efa = state("eth0 ena 10.0.0.1/24", rdma=sysfs("efa_0", "1", layer="Unspecified", gids=[]))
    assert settled(efa) == [TCP]
    roce = state("ens2 mlx5_core 10.0.0.1/24", rdma=ROCE)
    wanted = {"NCCL_SOCKET_IFNAME": "=ens2", "GLOO_SOCKET_IFNAME": "ens2", "NCCL_IB_DISABLE": "1"}
    assert settled(roce, nccl={"transport": "tcp"}) == [wanted]


def test_one_host_with_rdma_makes_its_lack_an_error() -> None:
    first, second = settled(state("ens2 mlx5_core 10.0.0.1/24", rdma=ROCE), state("eth0 ena 10.0.0.2/24"))
    assert isinstance(first, dict) and "NCCL_IB_HCA" in first
    assert str(second).startswith("there is no RDMA device on this node")


@pytest.mark.parametrize(
    ("more", "spec"),
    [({"rdma_stuck": "it hangs"}, {}), ({"ib_netns_mode": "N"}, {}), ({}, {"hardware": {"rdma": {"ports": 2}}})],
)
def test_rdma_that_may_be_there_is_not_given_up(more: dict[str, str], spec: dict[str, Any]) -> None:
    (found,) = settled(PLAIN.model_copy(update=more), **spec)
    assert isinstance(found, str)


EFA, OFI = {"rdma_drivers": {"efa_0": "efa"}}, {"plugins": ("/opt/amazon/ofi-nccl",)}


@pytest.mark.parametrize(
    ("more", "note"),
    [
        (EFA, r"^EFA \(efa_0\): .*was not found: install it with AWS's EFA installer"),
        (EFA | OFI, "the aws-ofi-nccl plugin, which is in /opt/amazon/ofi-nccl; .*FI_PROVIDER=efa"),
        ({"plugins": ("/var/lib/tcpx",)}, "/var/lib/tcpx: Google's GPUDirect-TCPX plugin"),
        ({"plugins": ("/var/lib/tcpxo",)}, "Google's GPUDirect-TCPXO plugin; its own script sets"),
        ({"plugins": ("/usr/local/gib",)}, "Google's gIB plugin"),
        ({"driver": "gve"}, r"^gVNIC \(eth0\) without a GPUDirect-TCPX plugin"),
        ({}, ""),
    ],
)
def test_plugins_of_clouds_are_named(more: dict[str, Any], note: str) -> None:
    given = {"driver": "ena", **more}
    found = list(plugin_notes(state(f"eth0 {given.pop('driver')} 10.128.0.2/32", **given)))
    assert len(found) == bool(note) and all(re.search(note, each) for each in found), found
