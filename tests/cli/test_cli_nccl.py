"""``gpuready nccl`` over recorded states: settings, ports, launch lines, and what is wrong with a host."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuready.cli.app import run
from gpuready.model.network import NetDevice, Network
from gpuready.model.state import Driver, File, NodeState, Unknown
from gpuready.network import torch
from tests.command import VALIDATOR, Exits, Said, write_states
from tests.network.gid_tables import sysfs

Cli = Callable[..., Said]


def node(
    number: int, *, device: str = "mlx5_0", index: int = 3, gpus: int = 8, conf: str = "", **port: Any
) -> NodeState:
    """A node with one port at 10.0.0.NUMBER beside a management network."""
    gids = ["1 fe80::1 v2 ens1", f"{index} 10.0.0.{number} v2 ens1"]
    network = Network(
        devices={
            "eno1": NetDevice(addresses=(f"192.0.2.{number}/24",)),
            "ens1": NetDevice(addresses=(f"10.0.0.{number}/24",), speed=100000),
        },
        default=("eno1",),
    )
    return NodeState(
        rdma=sysfs(device, "1", **{"gids": gids, **port}),
        network=network,
        driver=Driver(gpus=tuple(f"0000:{n:02x}:00.0" for n in range(gpus)), module_version="580.159.04"),
        files={"/etc/nccl.conf": File(text=conf, mode=0o644, uid=0, gid=0, mtime=1)} if conf else {},
    )


@pytest.fixture
def cli(tmp_path: Path, exits: Exits) -> Cli:
    def _cli(code: int, states: dict[str, NodeState], *args: str, spec: Any = None, verb: str = "nccl") -> Said:
        inventory, recorded = tmp_path / "hosts.yaml", tmp_path / "states.json"
        hosts = {name: {"ansible_host": "127.0.0.1"} for name in states}
        inventory.write_text(
            yaml.safe_dump({"all": {"hosts": hosts, "vars": {"gpuready": spec or {}}}}, sort_keys=False)
        )
        write_states(recorded, states)
        return exits(code, *verb.split(), "-i", str(inventory), "--state", str(recorded), *args)

    return _cli


def test_a_network_that_was_not_read_is_the_only_reason(cli: Cli) -> None:
    out = cli(3, {"n1": NodeState(network=Unknown(unknown="no ip(8) on this node"))}).out
    assert "FAILED  n1: the network of the node could not be read (no ip(8) on this node)\n" in out
    assert "RDMA" not in out and "TCP" not in out


def test_hosts_that_agree_are_told_once(cli: Cli) -> None:
    out, err = cli(0, {f"n{number}": node(number) for number in (1, 2, 3)})
    assert err == ""
    assert "settings of n[1-3]\n    NCCL_IB_HCA==mlx5_0:1\n    NCCL_IB_ADDR_RANGE=10.0.0.0/24\n" in out
    assert "    n2  mlx5_0:1  RoCE  GID 3  10.0.0.2 on ens1  100 Gb/s\n" in out
    assert "note:    n[1-3]: assuming NCCL 2.21 or newer" in out
    assert out.endswith("OK: 3 hosts probed\n")


def test_the_master_is_where_a_link_is_up(cli: Cli) -> None:
    """A port that is down keeps its address and its place in NCCL_IB_HCA, and nobody reaches it."""
    up, other = node(1), node(2)
    dead = sysfs("mlx5_1", "1", gids=["3 10.0.1.1 v2 ens2"], state="DOWN")
    network = up.network
    assert isinstance(network, Network)
    devices = {**network.devices, "ens2": NetDevice(addresses=("10.0.1.1/24",), speed=100000)}
    renamed = {path.replace("mlx5_0", "mlx5_2"): text for path, text in up.rdma.items()}
    first = up.model_copy(
        update={"rdma": {**dead, **renamed}, "network": network.model_copy(update={"devices": devices})}
    )
    out = cli(0, {"n1": first, "n2": other}, spec={"nccl": {"subnets": ["10.0.0.0/16"]}}, verb="launch hosts").out
    assert "--master-addr 10.0.0.1 " in out and "10.0.1.1 --master-port" not in out


def test_the_document_is_valid_and_complete(cli: Cli) -> None:
    states = {"n1": node(1), "n2": node(2)}
    found = cli(0, states, "--output", "json").document
    assert (found["verb"], found["exit_code"]) == ("nccl", 0)
    told = found["hosts"]["n2"]["nccl"]
    assert told["variables"]["NCCL_IB_HCA"] == "=mlx5_0:1"
    (port,) = told["ports"]
    assert (port["port"], port["gid_index"], port["address"], port["refused"]) == ("mlx5_0:1", 3, "10.0.0.2", "")
    found = cli(0, states, "--output", "json", "--", "train.py", "-x", verb="launch hosts").document
    assert (found["verb"], found["exit_code"]) == ("launch hosts", 0)
    launch = found["hosts"]["n2"]["launch"]
    assert launch["rank"] == 1
    assert launch["argv"] == shlex.split(
        "torchrun --nnodes 2 --node-rank 1 --nproc-per-node 8 --master-addr 10.0.0.1 --master-port 29500 train.py -x"
    )
    assert launch["environment"] == {**told["variables"], torch.VARIABLE: "3"}


@pytest.mark.parametrize("output", ["jsonl", "junit"])
def test_other_documents_are_whole(cli: Cli, output: str) -> None:
    out = cli(3, {"n1": node(1), "n2": node(2, gids=["0 fe80::1 v2 ens1"])}, "--output", output).out
    if output == "jsonl":
        assert [json.loads(line).get("host") for line in out.splitlines()] == ["n1", "n2", None]
    else:
        assert 'failures="0" errors="1"' in out or 'failures="1"' in out


def test_launch_lines_of_hosts_that_differ(cli: Cli) -> None:
    states = {"a": node(1), "b": node(2, device="rocep1s0", index=5), "c": node(3, gpus=4)}
    out = cli(0, states, "--master-port", "40000", "--async-error-handling", "1", verb="launch hosts").out
    line = next(each.strip() for each in out.splitlines() if "--node-rank 1" in each)
    assert line == (
        "NCCL_IB_HCA='=rocep1s0:1' NCCL_IB_ADDR_RANGE=10.0.0.0/24 NCCL_IB_ROCE_VERSION_NUM=2 "
        "NCCL_SOCKET_IFNAME='=ens1' TORCH_NCCL_ASYNC_ERROR_HANDLING=1 torchrun --nnodes 3 --node-rank 1 "
        "--nproc-per-node 8 --master-addr 10.0.0.1 --master-port 40000 ddp.py"
    )
    assert "NCCL_IB_HCA is =rocep1s0:1; the hosts differ" in out
    assert "hosts have different numbers of processes" in out
    assert "port 40000 is in Linux's ephemeral range" in out
    assert all(f"  {value}  {what}\n" in out for value, what in torch.VALUES.items())
    assert "before PyTorch 2.2: NCCL_ASYNC_ERROR_HANDLING" in out


def test_a_line_is_what_a_shell_takes(cli: Cli, tmp_path: Path) -> None:
    spec = {"nccl": {"extra": {"NCCL_X": "a 'b' $c"}}}
    out = cli(0, {"n1": node(1)}, "--", "my train.py", "--name", "it's", spec=spec, verb="launch hosts").out
    line = next(each.strip() for each in out.splitlines() if "torchrun --nnodes" in each)
    stand_in = tmp_path / "torchrun"
    stand_in.write_text('#!/bin/sh\nprintf \'%s|\' "$NCCL_IB_HCA" "$NCCL_X" "$@"\n')
    stand_in.chmod(0o755)
    for shell in filter(shutil.which, ("sh", "bash", "zsh")):
        done = subprocess.run(
            [shell, "-c", f"PATH={tmp_path}:$PATH; {line}"], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("=mlx5_0:1|a 'b' $c|--nnodes|1|")
        assert done.stdout.endswith("|my train.py|--name|it's|")


def test_what_the_file_says_already_is_left_out_of_the_line(cli: Cli) -> None:
    said = (
        "NCCL_IB_HCA==mlx5_0:1\nNCCL_IB_ADDR_RANGE=10.0.0.0/24\nNCCL_IB_ROCE_VERSION_NUM=2\nNCCL_SOCKET_IFNAME==ens1\n"
    )
    out = cli(0, {"n1": node(1, conf=said), "n2": node(2, conf=said.replace("ens1", "ens9"))}, verb="launch hosts").out
    first, second = (each.strip() for each in out.splitlines() if "torchrun --nnodes" in each)
    assert first.startswith("TORCH_NCCL_ASYNC_ERROR_HANDLING=3 torchrun")
    assert second.startswith("NCCL_IB_HCA='=mlx5_0:1' ")
    assert "note:    n1: NCCL's settings come from /etc/nccl.conf, which a container does not see" in out


def test_a_host_without_a_fabric_address_is_an_error_and_no_line_is_printed(cli: Cli) -> None:
    states = {"n1": node(1), "n2": node(2, gids=["0 fe80::1 v2 ens1"]), "n3": NodeState()}
    out = cli(3, states, verb="launch hosts").out
    assert "torchrun --nnodes" not in out
    assert (
        "FAILED  n2: no RDMA port of this node belongs to the fabric (mlx5_0:1: its netdev has only link-local" in out
    )
    assert "FAILED  n3: there is no RDMA device on this node" in out
    assert "no torchrun lines: every host must take part" in out


@pytest.mark.parametrize(
    ("state", "spec", "args", "part"),
    [
        (node(1, gpus=0), {}, (), "the driver lists no GPU; give the number of processes with --nproc-per-node N"),
        (node(1, gpus=7), {"hardware": {"gpus": 8}}, (), "7 of 8 GPUs are present"),
        (
            node(1, layer="InfiniBand", gids=["0 fe80::1 v1 -"]),
            {},
            (),
            "no active port of rank 0 has an IP address; give its address with --master-addr ADDRESS",
        ),
    ],
)
def test_no_line_without_its_facts(cli: Cli, state: NodeState, spec: Any, args: tuple[str, ...], part: str) -> None:
    out = cli(3, {"n1": state}, *args, spec=spec, verb="launch hosts").out
    assert part in out and "torchrun --nnodes" not in out


def test_what_is_said_takes_the_place_of_facts(cli: Cli) -> None:
    state = node(1, gpus=0, layer="InfiniBand", gids=["0 fe80::1 v1 -"])
    out = cli(0, {"n1": state}, "--nproc-per-node", "2", "--master-addr", "gpu01.example.com", verb="launch hosts").out
    assert "--nproc-per-node 2 --master-addr gpu01.example.com --master-port 29500" in out


def test_a_master_in_another_network_needs_a_route(cli: Cli) -> None:
    other = node(2)
    assert isinstance(other.network, Network)
    far = {**other.network.devices, "ens1": NetDevice(addresses=("10.9.0.2/24",))}
    moved = other.model_copy(update={
        "network": other.network.model_copy(update={"devices": far}),
        "rdma": sysfs("mlx5_0", "1", gids=["3 10.9.0.2 v2 ens1"]),
    })  # fmt: skip
    out = cli(0, {"n1": node(1), "n2": moved}, verb="launch hosts").out
    assert "n2: its fabric (10.9.0.0/24) does not contain the master address 10.0.0.1: it needs a route (" in out


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("conf", "NCCL_IB_HCA==mlx5_0:1\nNCCL_IB_GID_INDEX=3\nNCCL_SOCKET_IFNAME==ens1\nNCCL_X=a b\n"),
        (
            "env",
            "export NCCL_IB_HCA='=mlx5_0:1'\nexport NCCL_IB_GID_INDEX=3\nexport NCCL_SOCKET_IFNAME='=ens1'\n"
            "export NCCL_X='a b'\n",
        ),
        (
            "docker",
            "--env NCCL_IB_HCA==mlx5_0:1 --env NCCL_IB_GID_INDEX=3 --env NCCL_SOCKET_IFNAME==ens1 --env 'NCCL_X=a b'\n",
        ),
        (
            "kubernetes",
            '- name: NCCL_IB_HCA\n  value: "=mlx5_0:1"\n- name: NCCL_IB_GID_INDEX\n  value: "3"\n'
            '- name: NCCL_SOCKET_IFNAME\n  value: "=ens1"\n- name: NCCL_X\n  value: "a b"\n',
        ),
    ],
)
def test_only_the_variables(cli: Cli, form: str, text: str) -> None:
    spec = {"nccl": {"version": "2.18.5", "extra": {"NCCL_X": "a b"}}}
    assert cli(0, {"n1": node(1), "n2": node(2)}, "--output", form, spec=spec) == (text, "")
    if form == "kubernetes":
        assert yaml.safe_load(text)[0] == {"name": "NCCL_IB_HCA", "value": "=mlx5_0:1"}
    if form == "env":
        done = subprocess.run(["sh", "-c", f'{text}printf %s "$NCCL_IB_HCA,$NCCL_X"'], capture_output=True, check=True)
        assert done.stdout == b"=mlx5_0:1,a b"


def test_variables_of_hosts_that_differ_and_of_one_that_has_none(cli: Cli, tmp_path: Path) -> None:
    states = {"a": node(1), "b": node(2, device="irdma0"), "c": NodeState()}
    out, err = cli(3, states, "--output", "conf", "--output", f"json:{tmp_path / 'out.json'}")
    assert out.startswith("# a\nNCCL_IB_HCA==mlx5_0:1\n")
    assert "\n# b\nNCCL_IB_HCA==irdma0:1\n" in out
    assert "error: c: there is no RDMA device on this node" in err
    assert "note: b: NCCL_IB_HCA is =irdma0:1; the hosts differ" in err
    VALIDATOR.validate(json.loads((tmp_path / "out.json").read_text()))


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("--output", "env", "--output", "json"), "only one --output can go to stdout"),
        (("--", "train.py"), "unexpected argument 'train.py'"),
        (("--output", "yaml"), "yaml"),
    ],
)
def test_usage(cli: Cli, args: tuple[str, ...], part: str) -> None:
    assert part in cli(64, {"n1": node(1)}, *args).err


def plain(number: int, **device: Any) -> NodeState:
    """A node without RDMA: a management network of its own rack, and the network of the cluster."""
    devices = {
        "eno1": NetDevice(addresses=(f"192.0.{number}.9/24",), driver="igb"),
        "ens1": NetDevice(addresses=(f"10.0.0.{number}/24",), speed=25000, mtu=9000, driver="mlx5_core", **device),
        "docker0": NetDevice(kind="bridge", addresses=("172.17.0.1/16",)),
    }
    return NodeState(
        network=Network(devices=devices, default=("eno1",)),
        driver=Driver(gpus=("0000:01:00.0",), module_version="580.159.04"),
    )


def test_without_rdma_the_settings_are_for_tcp(cli: Cli) -> None:
    out, err = cli(0, {"n1": plain(1), "n2": plain(2)})
    assert err == ""
    assert "settings of n[1-2]\n    NCCL_SOCKET_IFNAME==ens1\n    GLOO_SOCKET_IFNAME=ens1\n" in out
    assert "interfaces for TCP\n    n1  ens1 10.0.0.1/24  25 Gb/s\n    n2  ens1 10.0.0.2/24  25 Gb/s\n" in out
    assert "note:    n[1-2]: NCCL over TCP: there is no RDMA device on this node" in out
    out = cli(0, {"n1": plain(1), "n2": plain(2)}, "--", "train.py", verb="launch hosts").out
    assert (
        "NCCL_SOCKET_IFNAME='=ens1' GLOO_SOCKET_IFNAME=ens1 TORCH_NCCL_ASYNC_ERROR_HANDLING=3 torchrun --nnodes 2 "
        "--node-rank 1 --nproc-per-node 1 --master-addr 10.0.0.1 --master-port 29500 train.py\n"
    ) in out
    assert cli(0, {"n1": plain(1), "n2": plain(2)}, "--output", "conf").out == "NCCL_SOCKET_IFNAME==ens1\n"
    assert "export GLOO_SOCKET_IFNAME=ens1\n" in cli(0, {"n1": plain(1), "n2": plain(2)}, "--output", "env").out


def test_the_document_of_tcp(cli: Cli) -> None:
    told = cli(0, {"n1": plain(1), "n2": plain(2)}, "--output", "json").document["hosts"]["n2"]["nccl"]
    wire = {"netdev": "ens1", "address": "10.0.0.2/24", "line_gbps": 25.0, "mtu": 9000}
    assert (told["interfaces"], told["environment"]) == ([wire], {"GLOO_SOCKET_IFNAME": "ens1"})
    assert (told["variables"], told["ports"]) == ({"NCCL_SOCKET_IFNAME": "=ens1"}, [])


def test_an_interface_that_is_not_certain_is_an_error(cli: Cli) -> None:
    out = cli(3, {"n1": plain(1)}, verb="launch hosts").out
    assert "torchrun --nnodes" not in out
    assert "several interfaces could carry NCCL over TCP (eno1 192.0.1.9/24, ens1 10.0.0.1/24): name one network" in (
        " ".join(out.split())
    )
    cli(0, {"n1": plain(1)}, spec={"nccl": {"interfaces": ["ens1"]}})


def test_a_host_without_a_state_is_not_attempted(cli: Cli, tmp_path: Path) -> None:
    cli(0, {"n1": node(1), "n2": node(2)})
    states = json.loads((tmp_path / "states.json").read_text())
    del states["hosts"]["n2"]
    (tmp_path / "states.json").write_text(json.dumps(states))
    where = ["-i", str(tmp_path / "hosts.yaml"), "--state", str(tmp_path / "states.json")]
    assert run(["launch", "hosts", *where]) == 6
