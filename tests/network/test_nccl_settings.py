"""What NCCL is told, and what it makes of that by itself."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gpuready.components.nccl.spec import COMPUTED, Nccl
from gpuready.model.state import NodeState
from gpuready.network.gid import taken
from gpuready.network.nccl_settings import ASSUMED, settings
from gpuready.network.ports import ports
from tests.network.gid_tables import sysfs, tables
from tests.network.test_rdma_choice import NCCL, NETWORKS, PORTS, node

E810 = next(table for table in tables() if "E810" in table.title)


def port(*gids: str) -> NodeState:
    return NodeState(rdma=sysfs("mlx5_0", "1", gids=list(gids)))


@pytest.mark.parametrize(
    ("gids", "family", "within", "index"),
    [
        ("0 fe80::1 v1 e, 1 fe80::1 v2 e, 2 10.0.0.1 v1 e, 3 10.0.0.1 v2 e", 4, None, 3),
        ("0 fe80::1 v1 e, 1 fe80::1 v2 e, 2 10.0.0.1 v1 e, 3 10.0.0.1 v2 e", 4, "10.9.0.0/16", 0),
        ("0 fe80::1 v2 e, 1 10.0.0.1 v2 e, 2 10.1.0.1 v2 f", 4, None, 1),
        ("0 fe80::1 v2 e, 1 10.0.0.1 v2 e, 2 10.1.0.1 v2 f", 4, "10.1.0.0/16", 2),
        ("0 10.0.0.1 v2 e, 1 10.1.0.1 v2 f", 4, "10.1.0.0/16", 0),
        ("0 10.0.0.1 v1 e, 1 10.1.0.1 v2 f", 4, "10.1.0.0/16", 1),
        ("0 fe80::1 v2 e, 1 169.254.1.1 v2 e, 2 10.0.0.1 v2 e", 4, None, 1),
        ("0 fe80::1 v2 e, 2 2001:db8::1 v2 e", 6, None, 2),
        ("0 fe80::1 v2 e, 2 10.0.0.1 v2 e", 6, None, 0),
        ("0 10.0.0.1 v2 e, 2 2001:db8::1 v2 e", 6, "2001:db8::/64", 2),
        ("0 10.0.0.1 v2 e", 6, None, None),
        ("0 fe80::1 - e, 1 10.0.0.1 - e", 4, None, 1),
        ("3 10.0.0.1 v1 e", 4, None, 3),
    ],
)
def test_what_nccl_takes(gids: str, family: int, within: str | None, index: int | None) -> None:
    """Followed by hand through ncclIbGetGidIndex and ncclUpdateGidIndex of NCCL 2.30."""
    (only,) = ports(port(*gids.split(", ")))
    found = taken(only, family, ip_network(within) if within else None)
    assert (found.index if found else None) == index


BY_RANGE = {"NCCL_IB_ADDR_RANGE": "10.100.100.0/24", "NCCL_IB_ROCE_VERSION_NUM": "2"}
BY_INDEX = {"NCCL_IB_GID_INDEX": "1"}


@pytest.mark.parametrize(
    ("version", "variables"),
    [(None, BY_RANGE), ("2.21", BY_RANGE), ("2.21.5", BY_RANGE), ("2.20.5", BY_INDEX), ("2.9", BY_INDEX)],
)
def test_the_e810_by_version(version: str | None, variables: dict[str, str]) -> None:
    found = settings(E810.state, Nccl(version=version))
    around = {"NCCL_IB_HCA": "=irdma0:1", "NCCL_SOCKET_IFNAME": "=ens1f0"}
    assert found.variables == around | variables
    assert (ASSUMED in found.notes) == (version is None)


@given(PORTS, st.none() | NETWORKS, NCCL, st.sampled_from((None, "2.18.5")))
def test_nccl_takes_what_was_chosen(made: list, network: object, nccl: Nccl, old: object) -> None:  # type: ignore[type-arg]
    state = node(made, network, 3)  # type: ignore[arg-type]
    found = settings(state, nccl.model_copy(update={"version": old}))
    assert bool(found.problems) != bool(found.variables)
    if found.problems:
        return
    listed = found.variables["NCCL_IB_HCA"].removeprefix("=").split(",")
    assert listed == [each.port.name for each in found.fabric]
    assert not {"NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_RANGE"} <= set(found.variables)
    within = found.variables.get("NCCL_IB_ADDR_RANGE")
    for each in found.fabric:
        if each.address is None or each.port.transport == "InfiniBand":
            continue
        if old:
            assert found.variables["NCCL_IB_GID_INDEX"] == str(each.gid_index)
        else:
            gid = taken(each.port, each.address.version, ip_network(within) if within else None)
            assert gid is not None
            assert (gid.address, gid.netdev, gid.version) == (each.address, each.netdev, "v2")
            assert ("NCCL_IB_ADDR_FAMILY" in found.variables) == (each.address.version == 6)


# --- the spec -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"subnets": ["10.0.0.0"]}, "the prefix length is missing"),
        ({"subnets": ["10.0.0.1/16"]}, "write the network as 10.0.0.0/16"),
        ({"subnets": ["0.0.0.0/0"]}, "every address"),
        ({"subnets": ["ten"]}, "not a network"),
        ({"interfaces": ["ens1 ens2"]}, "pattern"),
        ({"version": "3.0"}, "pattern"),
        ({"version": 2.2}, "string"),
        ({"extra": {"NCCL_DEBUG": "INFO"}}, "for debugging only"),
        ({"extra": {"NCCL_P2P_DISABLE": 1}}, "for debugging only"),
        ({"extra": {"NCCL_IB_TC": '"106"'}}, "the quotes as part"),
        ({"extra": {"NCCL_IB_TC": "106 "}}, "without a blank at either end"),
        ({"extra": {"NCCL_IB_TC": "106 # DSCP 26"}}, "the comment as part"),
        ({"extra": {"NCCL_IB_TC": "1\n2"}}, "printable"),
        ({"extra": {"NCCL_TOPO_FILE": "x" * 1024}}, "1023"),
        ({"extra": {"nccl_ib_tc": "106"}}, "not a variable name"),
        ({"extra": {"TORCH_NCCL_ASYNC_ERROR_HANDLING": 1}}, "environment of the job"),
        ({"extra": {"NCCL_IB_TC": True}}, "string"),
        *[({"extra": {name: "1"}}, "gpuready computes it") for name in COMPUTED],
    ],
)
def test_what_the_spec_refuses(block: dict[str, object], part: str) -> None:
    with pytest.raises(ValidationError, match=part):
        Nccl.model_validate(block)


@pytest.mark.parametrize("value", ["WARN", "VERSION", "version"])
def test_a_quiet_nccl_debug_may_stay(value: str) -> None:
    assert Nccl.model_validate({"extra": {"NCCL_DEBUG": value, "NCCL_IB_TC": 106}}).extra["NCCL_IB_TC"] == "106"
