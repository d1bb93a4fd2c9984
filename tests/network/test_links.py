"""Which port meets which: by rail, by name, in order; what cannot be tested is named with its reason."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpuready.model.state import Container, Docker, NodeState
from gpuready.network.links import Link, links, remarks
from gpuready.network.rdma_choice import Choices
from tests.fabric.fabric_samples import choices, chosen, down, unwanted


def met(found: list[Link]) -> list[tuple[str, str]]:
    return [(link.server.device, link.client.device) for link in found]


def test_device_meets_the_device_of_its_name() -> None:
    here = choices(chosen("mlx5_0"), chosen("mlx5_1"), chosen("mlx5_10"))
    there = choices(chosen("mlx5_1"), chosen("mlx5_10"), chosen("mlx5_0"))
    found, alone = links("a", here, "b", there)
    assert met(found) == [("mlx5_0", "mlx5_0"), ("mlx5_1", "mlx5_1"), ("mlx5_10", "mlx5_10")]
    assert not alone


def test_a_rail_is_the_network_before_it_is_the_name() -> None:
    here = choices(chosen("mlx5_0", network="10.1.0.0/24"), chosen("mlx5_1", network="10.2.0.0/24"))
    there = choices(chosen("mlx5_0", network="10.2.0.0/24"), chosen("mlx5_1", network="10.1.0.0/24"))
    assert met(links("a", here, "b", there)[0]) == [("mlx5_0", "mlx5_1"), ("mlx5_1", "mlx5_0")]


def test_one_network_for_all_says_nothing_about_rails() -> None:
    ports = [chosen(f"mlx5_{i}", f"10.0.0.{i + 1}", "10.0.0.0/24") for i in range(2)]
    assert met(links("a", choices(*ports), "b", choices(*ports))[0]) == [("mlx5_0", "mlx5_0"), ("mlx5_1", "mlx5_1")]


def test_renamed_devices_meet_in_order() -> None:
    here = choices(chosen("rocep1s0f0"), chosen("rocep1s0f1"))
    there = choices(chosen("rocep65s0f0"), chosen("rocep65s0f1"))
    found, _ = links("a", here, "b", there)
    assert met(found) == [("rocep1s0f0", "rocep65s0f0"), ("rocep1s0f1", "rocep65s0f1")]


def test_a_port_that_is_down_at_one_end_is_an_obstacle_that_names_it() -> None:
    there = choices(chosen("mlx5_0"), down("mlx5_1"))
    found, alone = links("a", choices(chosen("mlx5_0"), chosen("mlx5_1")), "b", there)
    assert [link.obstacle for link in found] == ["", "b mlx5_1:1: its state is DOWN, not ACTIVE"]
    assert not alone


def test_a_fabric_port_that_is_down_at_both_ends_is_an_obstacle_too() -> None:
    both = [choices(chosen("mlx5_0"), replace(down("mlx5_1"), fabric=True)) for _ in range(2)]
    (_, dead), alone = links("n1", both[0], "n2", both[1])
    assert alone == [] and "n1 mlx5_1:1: its state is DOWN" in dead.obstacle and "n2 mlx5_1:1" in dead.obstacle


def test_other_ports_that_are_down_at_both_ends_are_left_alone() -> None:
    found, alone = links("a", choices(chosen("mlx5_0"), down("mlx5_1")), "b", choices(chosen("mlx5_0"), down("mlx5_1")))
    assert met(found) == [("mlx5_0", "mlx5_0")]
    assert [(str(each.end), each.other) for each in alone] == [("a mlx5_1:1", "b"), ("b mlx5_1:1", "a")]


def test_a_port_without_a_partner_is_named() -> None:
    found, alone = links("a", choices(chosen("mlx5_0"), chosen("mlx5_1")), "b", choices(chosen("mlx5_0")))
    assert len(found) == 1
    assert [(str(e.end), e.reason) for e in alone] == [("a mlx5_1:1", "the other host has no port left for it")]


def test_another_networks_port_takes_no_part() -> None:
    found, alone = links("a", choices(unwanted("mlx5_0"), chosen("mlx5_1")), "b", choices(chosen("mlx5_1")))
    assert met(found) == [("mlx5_1", "mlx5_1")]
    assert not alone


def test_infiniband_without_an_address_is_told() -> None:
    bare = choices(chosen("mlx5_0"))
    bare = Choices(tuple(type(each)(each.port, None, None, "") for each in bare.chosen))
    found, _ = links("a", bare, "b", bare)
    assert "IPoIB is not configured" in found[0].obstacle


def test_the_line_rate_is_the_netdevs_and_infinibands_own_where_it_has_none() -> None:
    port = replace(chosen("mlx5_0").port, rate_gbps=400.0, line_gbps=None)
    for transport, line in (("InfiniBand", 400.0), ("RoCE", None)):
        side = choices(replace(chosen("mlx5_0"), port=replace(port, transport=transport)))
        assert links("a", side, "b", side)[0][0].server.line_gbps == line


SIDES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["chosen", "down", "unwanted"]), st.sampled_from(["", "n1", "n2"])),
    unique_by=lambda each: each[0],
    max_size=8,
)


def side(drawn: list[tuple[int, str, str]]) -> Choices:
    refused = {"down": down, "unwanted": unwanted}
    made = (refused[kind](f"d{n}") if kind in refused else chosen(f"d{n}", network=rail) for n, kind, rail in drawn)
    return choices(*made)


@given(SIDES, SIDES)
def test_every_port_of_the_fabric_is_in_one_link_or_named_as_alone(
    here: list[tuple[int, str, str]], there: list[tuple[int, str, str]]
) -> None:
    found, alone = links("a", side(here), "b", side(there))
    seen = [str(end) for link in found for end in link.ends] + [str(each.end) for each in alone]
    wanted = [f"a d{n}:1" for n, kind, _ in here if kind != "unwanted"]
    wanted += [f"b d{n}:1" for n, kind, _ in there if kind != "unwanted"]
    assert sorted(seen) == sorted(wanted)
    assert all(link.obstacle == "" or "DOWN" in link.obstacle for link in found)


def test_a_node_without_a_port_says_why() -> None:
    for state, ports, reason in (
        (NodeState(), choices(), "the node has no RDMA device"),
        (NodeState(rdma_stuck="ports: no answer"), choices(), "the RDMA devices could not be read: ports: no answer"),
        (NodeState(), choices(down("mlx5_0")), "mlx5_0:1: its state is DOWN, not ACTIVE"),
    ):
        assert remarks(state, ports) == [f"no port of the fabric: {reason}"]


def test_running_work_on_the_gpus_is_named() -> None:
    containers = (Container(id="1", name="trainer", image="x", gpu=True), Container(id="2", name="web", image="y"))
    state = NodeState(docker=Docker(containers=containers))
    (note,) = remarks(state, choices(chosen("mlx5_0")))
    assert note == "GPU containers run here (trainer): figures may be low, and the test slows their traffic"
    assert remarks(NodeState(docker=Docker()), choices(chosen("mlx5_0"))) == []
