"""Which GID is the fabric's: tables as data, and what holds for every table."""

import random
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.components.nccl.spec import Nccl
from gpuready.model.network import NetDevice, Network
from gpuready.model.state import NodeState
from gpuready.network.ports import ports
from gpuready.network.rdma_choice import Choices, Chosen, Refused, choose
from tests.network.gid_tables import Table, sysfs, tables

TABLES = tables()
assert len({table.title for table in TABLES}) == len(TABLES) >= 40


def told(choices: Choices) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for each in choices.ports:
        if isinstance(each, Chosen):
            address = None if each.address is None else str(each.address)
            found[each.port.name] = [each.gid_index, address, each.netdev]
        else:
            found[each.port.name] = [each.why, each.reason]
    return found


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_table(table: Table) -> None:
    found = told(choose(table.state, table.nccl))
    assert list(found) == list(table.want)
    for port, want in table.want.items():
        if len(want) == 2:
            why, part = want
            assert found[port][0] == why, found[port]
            assert part in str(found[port][1])
        else:
            assert found[port] == want


def test_figures_of_a_port() -> None:
    table = next(table for table in TABLES if "E810" in table.title)
    (port,) = ports(table.state)
    assert (port.transport, port.state, port.link_layer, port.netdev) == ("RoCE", "ACTIVE", "Ethernet", "ens1f0")
    assert (port.rate_gbps, port.line_gbps, port.mtu) == (25.0, 25.0, 1500)
    assert [(g.index, str(g.address), g.version) for g in port.gids] == [
        (0, "fe80::b696:91ff:feec:a458", "v2"),
        (1, "10.100.100.1", "v2"),
    ]
    (chosen,) = choose(table.state, table.nccl).chosen
    assert chosen.network == "10.100.100.0/24"


def test_a_port_whose_speed_nobody_says_has_none() -> None:
    state = NodeState(rdma=sysfs("rxe0", "1", gids=["1 10.0.0.1 v2 v0"], rate="unknown"))
    (port,) = ports(state)
    assert (port.rate_gbps, port.line_gbps, port.mtu) == (None, None, 0)


NETDEVS = ("eno1", "ens1", "ens1.5", "ens2", "br0")
ADDRESSES = (
    "fe80::1", "fe80::", "10.0.0.1", "10.0.0.2", "10.1.0.1", "192.168.9.1", "169.254.1.1", "127.0.0.1",
    "2001:db8::1", "2001:db8::2", "fd00::1", "ff0e::ffff:a00:1",
)  # fmt: skip
SLOTS = st.lists(
    st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(("v1", "v2", "-")), st.sampled_from((*NETDEVS, "-"))),
    max_size=8,
)
PORTS = st.lists(
    st.tuples(
        SLOTS,
        st.sampled_from(("CA", "RNIC", "<unknown>")),
        st.sampled_from(("Ethernet", "InfiniBand", "")),
        st.sampled_from(("ACTIVE", "DOWN", "INIT")),
    ),
    max_size=3,
)
NETWORKS = st.builds(
    Network,
    devices=st.dictionaries(
        st.sampled_from(NETDEVS),
        st.builds(
            NetDevice,
            kind=st.sampled_from(("", "vlan", "bond")),
            addresses=st.lists(st.sampled_from(("10.0.0.1/24", "2001:db8::1/64", "fe80::1/64")), max_size=2).map(tuple),
            lower=st.lists(st.sampled_from(NETDEVS), max_size=1).map(tuple),
        ),
    ),
    default=st.lists(st.sampled_from(NETDEVS), max_size=2).map(tuple),
    ssh=st.sampled_from(("", "10.0.0.1")),
)
NCCL = st.builds(
    Nccl,
    subnets=st.lists(st.sampled_from(("10.0.0.0/24", "10.0.0.0/8", "2001:db8::/64")), max_size=2).map(tuple),
    interfaces=st.lists(st.sampled_from((*NETDEVS, "mlx5_0")), max_size=2).map(tuple),
)


def node(made: list[tuple[list[tuple[str, str, str]], str, str, str]], network: Network | None, seed: int) -> NodeState:
    """``seed`` deals out the indexes."""
    dealt = random.Random(seed)
    rdma: dict[str, str] = {}
    for number, (slots, kind, layer, up) in enumerate(made):
        indexes = dealt.sample(range(64), len(slots))
        gids = [f"{index} {' '.join(slot)}" for index, slot in zip(indexes, slots, strict=True)]
        rdma |= sysfs(f"mlx5_{number}", "1", gids=gids, type=kind, layer=layer, state=up)
    return NodeState(rdma=rdma, network=network)


@given(PORTS, st.none() | NETWORKS, NCCL, st.integers(), st.integers())
def test_each_port_is_chosen_or_refused_whatever_the_order(
    made: list[Any], network: Network | None, nccl: Nccl, one: int, other: int
) -> None:
    state = node(made, network, one)
    choices = choose(state, nccl)
    assert [each.port for each in choices.ports] == list(ports(state))
    assert len(ports(state)) == len(made)
    assert all(isinstance(each, Chosen) or (isinstance(each, Refused) and each.reason) for each in choices.ports)
    reordered = choose(node(made, network, other), nccl)
    assert answers(choices) == answers(reordered), "the order of the table changes the choice"
    for each in choices.chosen:
        assert each.port.state == "ACTIVE"
        if each.address is not None:
            assert not each.address.is_link_local
            assert not nccl.subnets or any(each.address in ip_network(subnet) for subnet in nccl.subnets)
        if each.port.transport == "InfiniBand":
            assert each.gid_index is None
            continue
        assert each.port.transport == "RoCE"
        (gid,) = [gid for gid in each.port.gids if gid.index == each.gid_index]
        assert (gid.version, gid.address, gid.netdev) == ("v2", each.address, each.netdev)
        assert not nccl.interfaces or {each.netdev, each.port.device} & set(nccl.interfaces)
        if not nccl.subnets and not nccl.interfaces:
            assert network is not None
            assert each.netdev not in network.default
        rivals = {g.address for g in each.port.gids if g.version == "v2" and g.netdev == each.netdev}
        rivals = {a for a in rivals if a.version == each.address.version and not a.is_link_local}
        rivals &= {ip_address(text) for text in ADDRESSES if text not in ("127.0.0.1", "ff0e::ffff:a00:1")}
        rivals = {a for a in rivals if not nccl.subnets or any(a in ip_network(s) for s in nccl.subnets)}
        assert rivals == {each.address}, "there was another one, and nothing said which"


def answers(choices: Choices) -> list[object]:
    return [(e.address, e.netdev) if isinstance(e, Chosen) else e.why for e in choices.ports]
