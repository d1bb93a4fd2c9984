"""Network devices, from what the probe prints to the state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gpuready.model.network import NetDevice, network
from gpuready.model.parse import parse
from gpuready.model.state import NodeState, Unknown
from tests.model.probe_answers import DATA, lines

SAID = (DATA / "network" / "probe.txt").read_text("utf-8").replace("10 22\n", "10 22\0\n")  # grep -z ends in NUL


def test_all_lines() -> None:
    found = network(SAID)
    assert (found.default, found.ssh) == (("eth0", "ens9"), "192.0.2.10")
    assert found.rdma == {"rxe0": ("eth0",), "mlx5_0": ("ens1f0",)}
    assert found.devices["eth0"] == NetDevice(
        state="up", mtu=1500, addresses=("192.0.2.10/24", "fe80::5054:ff:fe12:3456/64")
    )
    assert found.devices["ens1f0"] == NetDevice(state="up", mtu=9000, speed=25000, addresses=("10.100.100.1/24",))
    assert found.devices["ens1f0.100"] == NetDevice(kind="vlan", addresses=("10.5.0.1/32",), lower=("ens1f0",))
    assert found.devices["lo"] == NetDevice(mtu=65536, addresses=("127.0.0.1/8",))
    assert found.devices["ens1f0"].driver == "" and (found.rdma_drivers, found.plugins) == ({}, ())
    more = network(
        SAID
        + "/sys/class/net/ens1f0/device/uevent:DRIVER=ice\n/sys/class/net/ens1f0/device/uevent:PCI_CLASS=20000\n"
        + "/sys/class/infiniband/efa_0/device/uevent:DRIVER=efa\nplugin=/var/lib/tcpxo\n"
    )
    assert {name: device.driver for name, device in more.devices.items() if device.driver} == {"ens1f0": "ice"}
    assert (more.rdma_drivers, more.plugins) == ({"efa_0": "efa"}, ("/var/lib/tcpxo",))
    assert set(found.devices) == {"lo", "eth0", "ens1f0", "ens1f0.100"}


def test_the_session_of_a_link_local_address_loses_its_zone() -> None:
    assert network("SSH_CONNECTION=fe80::2%eth0 50022 fe80::1%eth0 22\n").ssh == "fe80::1"


def test_in_a_state_and_back() -> None:
    state = parse(lines(outs={"network": SAID}))
    assert NodeState.model_validate_json(state.model_dump_json()) == state
    assert not isinstance(state.network, Unknown | None)


def test_a_node_without_ip_is_unknown_and_an_old_state_has_none() -> None:
    state = parse(lines(failed={"network": (1, "no ip(8) on this node")}))
    assert state.network == Unknown(unknown="network: exit 1: no ip(8) on this node")
    old = state.model_dump(mode="json", exclude={"network"})
    assert NodeState.model_validate(old).network is None


def test_an_invalid_address_is_refused() -> None:
    with pytest.raises(ValidationError, match="does not appear to be an IPv4 or IPv6 interface"):
        NetDevice(addresses=("10.0.0.300/24",))


@given(st.text() | st.lists(st.sampled_from(SAID.splitlines()) | st.text(), max_size=9).map("\n".join))
def test_no_text_makes_it_raise(text: str) -> None:
    assert network(text) == network(text)
