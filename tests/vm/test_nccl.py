"""NCCL's settings on a node with a real RDMA device: soft RoCE on a virtual machine, its GIDs as the kernel makes them.

One virtual machine for all, because it takes a while to boot; each test leaves the port with its one address.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.model.network import Network
from gpuready.model.state import NodeState
from tests.lab import Lab, scale
from tests.lab.vm import VM
from tests.system.harness import Gpuready, Inventories

CONF = "/etc/nccl.conf"
PORT = "/sys/class/infiniband/rxe0/ports/1"


@pytest.fixture(scope="module")
def node(vm_lab: Lab) -> Iterator[VM]:
    with vm_lab.vm() as machine:
        machine.rxe()
        # The kernel makes the GIDs of an address a moment after the address.
        await_gid(machine, machine.wire)
        yield machine


def mapped(address: str) -> str:
    """An IPv4 address as sysfs shows its GID."""
    a, b, c, d = map(int, address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"


def await_gid(machine: VM, address: str, there: bool = True) -> None:
    loop = f"{'until' if there else 'while'} grep -qs {mapped(address)} {PORT}/gids/*; do sleep 0.05; done"
    done = machine.run(f'timeout {scale.seconds(20):.0f} sh -c "{loop}"', check=False)
    assert done.returncode == 0, machine.run(f"grep -H . {PORT}/gids/* | head").stdout


def index_of(machine: VM, address: str) -> str:
    """The kernel's own answer."""
    return machine.run(f"grep -l {mapped(address)} {PORT}/gids/*").stdout.strip().rpartition("/")[2]


def conf(machine: VM) -> str:
    return machine.run(f"cat {CONF}").stdout


def test_the_probe_reads_a_table_whose_empty_slots_answer_einval(
    node: VM, gpuready: Gpuready, inventory: Inventories
) -> None:
    assert set(node.run(f"cat {PORT}/gids/1000").stdout.strip()) == {"0", ":"}
    for attribute in ("types", "ndevs"):
        done = node.run(f"cat {PORT}/gid_attrs/{attribute}/1000", check=False)
        assert (done.returncode, "Invalid argument" in done.stderr) == (1, True)
    state = NodeState.model_validate(gpuready("record", inventory=inventory(node)).host()["state"])
    taken = {path.rpartition("/")[2] for path in state.rdma if path.startswith(f"{PORT}/gids/")}
    listed = node.run(f"grep -LE '^(0000:){{7}}0000$' {PORT}/gids/*").stdout.split()
    assert taken == {path.rpartition("/")[2] for path in listed}
    for index in taken:
        assert state.rdma[f"{PORT}/gid_attrs/types/{index}"] == "RoCE v2"
        assert state.rdma[f"{PORT}/gid_attrs/ndevs/{index}"] == "eth1"
    assert isinstance(state.network, Network)
    assert state.network.default == ("eth0",)
    assert state.network.ssh == node.address
    assert state.network.rdma["rxe0"] == ("eth1",)
    assert f"{node.wire}/24" in state.network.devices["eth1"].addresses


def test_settings_of_the_only_port_and_the_launch_line(node: VM, gpuready: Gpuready, inventory: Inventories) -> None:
    """eth0 has the default route and SSH, so eth1 is the fabric's without a word in the spec."""
    told = gpuready("nccl", inventory=inventory(node), code=0).host()["nccl"]
    (port,) = told["ports"]
    assert (port["port"], port["address"], port["netdev"]) == ("rxe0:1", node.wire, "eth1")
    assert str(port["gid_index"]) == index_of(node, node.wire)
    assert told["variables"]["NCCL_IB_HCA"] == "=rxe0:1"
    launched = gpuready("launch", "hosts", "--nproc-per-node", "1", inventory=inventory(node), code=0)
    assert launched.host()["launch"]["argv"][:9:2] == ["torchrun", "1", "0", "1", node.wire]
    text = gpuready("nccl", "--output", "env", inventory=inventory(node), check_json=False)
    printed = node.run(f'{text.stdout}\nprintf \'%s \' "$NCCL_IB_HCA" "$NCCL_SOCKET_IFNAME"').stdout
    assert printed == "=rxe0:1 =eth1 "


def test_a_second_address_is_no_guess_and_a_vlan_is_none_either(
    node: VM, gpuready: Gpuready, inventory: Inventories
) -> None:
    node.run("ip link add link eth1 name eth1.5 type vlan id 5 && ip link set eth1.5 up")
    node.run("ip address add 10.5.0.1/24 dev eth1.5")
    node.run("ip address add 10.6.0.1/24 dev eth1")
    try:
        await_gid(node, "10.5.0.1")
        await_gid(node, "10.6.0.1")
        found = gpuready("nccl", inventory=inventory(node), code=3)
        message = found.host()["error"]["message"]
        assert f"{node.wire} on eth1" in message and "10.6.0.1 on eth1" in message
        assert "10.5.0.1" not in message
        for subnet, netdev in {"10.5.0.0/24": "eth1.5", "10.6.0.0/24": "eth1"}.items():
            told = gpuready("nccl", inventory=inventory(node, nccl={"subnets": [subnet]})).host()["nccl"]
            address = subnet.replace("0/24", "1")
            assert (told["ports"][0]["address"], told["ports"][0]["netdev"]) == (address, netdev)
            assert str(told["ports"][0]["gid_index"]) == index_of(node, address)
            assert told["variables"]["NCCL_IB_ADDR_RANGE"] == subnet
    finally:
        node.run("ip link del eth1.5; ip address del 10.6.0.1/24 dev eth1")
        await_gid(node, "10.5.0.1", there=False)
        await_gid(node, "10.6.0.1", there=False)


def test_apply_drift_and_the_way_back(node: VM, gpuready: Gpuready, inventory: Inventories) -> None:
    """An index of an old NCCL, which moves with the address; and a file that holds the user's own lines."""
    mine = "# since 2023\nNCCL_IB_HCA=mlx5_0\nNCCL_IB_TC=106"
    node.run(f"printf '%s' '{mine}' >{CONF} && chmod 640 {CONF}")
    before = node.run(f"stat -c '%a %u %Y' {CONF}").stdout
    network = re.sub(r"\.\d+$", ".0/24", node.wire)
    old = inventory(node, nccl={"subnets": [network], "version": "2.18.5"})
    run = ("--only", "nccl")
    failing = gpuready("verify", *run, inventory=old)
    assert {"nccl.config", "nccl.hca"} <= failing.checks("fail"), failing.explain()
    applied = gpuready("apply", "--yes", *run, inventory=old, code=0)
    assert applied.changed() == {"nccl"}, applied.explain()
    index = index_of(node, node.wire)
    lines = conf(node).split("\n")
    assert lines[1:4] == ["NCCL_IB_HCA==rxe0:1", f"NCCL_IB_GID_INDEX={index}", "NCCL_SOCKET_IFNAME==eth1"]
    assert "\n".join(lines[5:]) == mine
    again = gpuready("apply", "--yes", *run, inventory=old, code=0)
    assert again.changed() == set(), again.explain()

    # The next address takes the index of the one that went; ours comes back behind it.
    node.run(f"ip address del {node.wire}/24 dev eth1")
    await_gid(node, node.wire, there=False)
    node.run("ip address add 10.6.0.1/24 dev eth1")
    await_gid(node, "10.6.0.1")
    node.run(f"ip address add {node.wire}/24 dev eth1")
    await_gid(node, node.wire)
    assert index_of(node, "10.6.0.1") == index
    moved = index_of(node, node.wire)
    drifted = gpuready("verify", *run, inventory=old)
    assert drifted.diff("nccl") == {"nccl.NCCL_IB_GID_INDEX": (index, moved)}
    gpuready("apply", "--yes", *run, inventory=old, code=0)
    assert f"NCCL_IB_GID_INDEX={moved}\n" in conf(node)
    new = inventory(node, nccl={"subnets": [network], "version": "2.27"})
    gpuready("apply", "--yes", *run, inventory=new, code=0)
    assert "GID_INDEX" not in conf(node) and f"NCCL_IB_ADDR_RANGE={network}\n" in conf(node)
    node.run("ip address del 10.6.0.1/24 dev eth1")

    gpuready("remove", "--yes", *run, inventory=new, code=0)
    assert conf(node) == mine
    assert node.run(f"stat -c '%a %u %Y' {CONF}").stdout == before


def test_a_port_that_is_down_is_told(node: VM, gpuready: Gpuready, inventory: Inventories, tmp_path: Path) -> None:
    network = re.sub(r"\.\d+$", ".0/24", node.wire)
    hosts = inventory(node, nccl={"subnets": [network], "version": "2.27"})
    gpuready("apply", "--yes", "--only", "nccl", inventory=hosts, code=0)
    node.run("ip link set eth1 down")
    try:
        node.run(f"timeout {scale.seconds(20):.0f} sh -c 'until grep -q DOWN {PORT}/state; do sleep 0.05; done'")
        result = gpuready("verify", "--only", "nccl", inventory=hosts, code=3)
        assert "nccl.ports" in result.checks("fail")
        assert result.diff("nccl") == {}, "the file stays: NCCL passes over a port that is down"
    finally:
        node.run("ip link set eth1 up")
        node.run(f"timeout {scale.seconds(20):.0f} sh -c 'until grep -q ACTIVE {PORT}/state; do sleep 0.05; done'")
