"""The verdicts of the checks on NCCL: id, status, node, spec, part of the summary. test_checks.py holds them to it."""

from __future__ import annotations

from typing import Any

from gpuready.state.model import File, NodeState
from gpuready.state.network import NetDevice, Network
from tests.network.gid_tables import sysfs

Row = tuple[str, str, NodeState, dict[str, Any], str]
V1_AND_V2 = ["0 fe80::1 v1 ens1", "1 fe80::1 v2 ens1", "2 10.0.0.1 v1 ens1", "3 10.0.0.1 v2 ens1"]
NETWORK = Network(devices={"eno1": NetDevice(), "ens1": NetDevice(addresses=("10.0.0.1/24",))}, default=("eno1",))
FABRIC = {"nccl": {"subnets": ["10.0.0.0/16"]}}
OLD = {"nccl": {"subnets": ["10.0.0.0/16"], "version": "2.18.5"}}
OURS = """NCCL_IB_HCA==mlx5_0:1
NCCL_IB_ADDR_RANGE=10.0.0.0/16
NCCL_IB_ROCE_VERSION_NUM=2
NCCL_SOCKET_IFNAME==ens1
"""


def node(
    text: str | None = None, *, mode: int = 0o644, nccl: tuple[str, ...] = (), **ports: dict[str, Any]
) -> NodeState:
    """One ConnectX port, or those given, and /etc/nccl.conf."""
    rdma: dict[str, str] = {}
    for name, port in (ports or {"mlx5_0": {"gids": V1_AND_V2}}).items():
        rdma |= sysfs(name, "1", **port)
    files = {} if text is None else {"/etc/nccl.conf": File(text=text, mode=mode, uid=0, gid=0, mtime=1)}
    return NodeState(rdma=rdma, network=NETWORK, files=files, nccl=nccl)


DOWN = node(mlx5_0={"gids": V1_AND_V2, "state": "DOWN"})
TWO = node(mlx5_0={"gids": [*V1_AND_V2, "5 10.0.0.2 v2 ens1"]})
ONE_AND_TEN = {name: {"gids": V1_AND_V2} for name in ("mlx5_1", "mlx5_10")}
NO_RDMA = NodeState(network=NETWORK, files=node("NCCL_IB_HCA=mlx5").files)


VERDICTS: list[Row] = [
    ("nccl.config", "skip", node(), {}, "nothing is asked for"),
    ("nccl.config", "fail", node(), FABRIC, "nccl.NCCL_IB_HCA"),
    ("nccl.config", "pass", node(OURS), FABRIC, "as the spec says"),
    ("nccl.config", "unknown", TWO, FABRIC, "5: 10.0.0.2 on ens1"),
    ("nccl.ports", "skip", node(), {}, "names no network"),
    ("nccl.ports", "skip", node(), {"nccl": {"extra": {"NCCL_IB_TC": "106"}}}, "names no network"),
    ("nccl.ports", "pass", node(), FABRIC, "mlx5_0:1 10.0.0.1"),
    ("nccl.ports", "fail", TWO, FABRIC, "several addresses could be the fabric's"),
    ("nccl.ports", "fail", DOWN, FABRIC, "of 1 ports 1 cannot be used: mlx5_0:1: its state is DOWN"),
    ("nccl.grammar", "skip", node(), {}, "there is no /etc/nccl.conf"),
    ("nccl.grammar", "pass", node("# mine\n\nNCCL_IB_TC=106\n"), {}, "sets 1 variables"),
    ("nccl.grammar", "pass", node(OURS), {}, "sets 4 variables"),
    ("nccl.grammar", "fail", node('NCCL_IB_HCA="mlx5_0"\n'), {}, "line 1: quotes are part of the value"),
    ("nccl.grammar", "fail", node("export NCCL_IB_TC=106\n"), {}, "NCCL sets 'export NCCL_IB_TC'"),
    ("nccl.grammar", "fail", node("\n NCCL_IB_TC=106\n"), {}, "line 2: NCCL sets a variable named ' NCCL_IB_TC'"),
    ("nccl.grammar", "fail", node("NCCL_IB_TC = 106\n"), {}, "a variable named 'NCCL_IB_TC '"),
    ("nccl.grammar", "fail", node("NCCL_IB_TC= 106\n"), {}, "a blank at an end of the value"),
    ("nccl.grammar", "fail", node("NCCL_IB_TC=106 # DSCP 26\n"), {}, "no comment behind a value"),
    ("nccl.grammar", "fail", node(" #NCCL_IB_TC=106\n"), {}, "a comment begins with #"),
    ("nccl.grammar", "fail", node("NCCL_IB_TC=106\r\n"), {}, "carriage return"),
    ("nccl.grammar", "fail", node(f"NCCL_TOPO_FILE=/{'x' * 1023}\n"), {}, "ends after 1023 bytes"),
    ("nccl.grammar", "warn", node("NCCL_IB_TC 106\n"), {}, "line 1: no assignment"),
    ("nccl.grammar", "warn", node("NCCL_IB_TC=106\n", mode=0o600), {}, "can be read by few (mode 600)"),
    ("nccl.grammar", "fail", NodeState(not_files=("/etc/nccl.conf",)), {}, "not a regular file"),
    ("nccl.hca", "skip", node(), {}, "names no HCA"),
    ("nccl.hca", "pass", node("NCCL_IB_HCA==mlx5_0:1\n"), {}, "NCCL_IB_HCA==mlx5_0:1"),
    ("nccl.hca", "pass", node("NCCL_IB_HCA=mlx5\n"), {}, "NCCL_IB_HCA=mlx5"),
    ("nccl.hca", "pass", node("NCCL_IB_HCA=^mlx4\n"), {}, "^mlx4"),
    (
        "nccl.hca",
        "fail",
        node("NCCL_IB_HCA=mlx5\n", rocep1s0f0={"gids": V1_AND_V2}),
        {},
        "none of the node's ports (rocep1",
    ),
    ("nccl.hca", "fail", node("NCCL_IB_HCA==mlx5\n"), {}, "none of the node's ports (mlx5_0:1): NCCL uses TCP"),
    ("nccl.hca", "fail", node("NCCL_IB_HCA=mlx5_0:2\n"), {}, "none of the node's ports"),
    ("nccl.hca", "fail", node("NCCL_IB_HCA=^mlx5\n"), {}, "none of the node's ports"),
    ("nccl.hca", "fail", node("NCCL_IB_HCA=mlx5_0,mlx5_7\n"), {}, "nothing here is named mlx5_7"),
    ("nccl.hca", "warn", node("NCCL_IB_HCA=mlx5_1\n", **ONE_AND_TEN), {}, "mlx5_1 means mlx5_1, mlx5_10"),
    ("nccl.hca", "pass", node("NCCL_IB_HCA==mlx5_1\n", **ONE_AND_TEN), {}, "==mlx5_1"),
    ("nccl.hca", "warn", NO_RDMA, {}, "there is no RDMA device here"),
    ("nccl.gid", "skip", node(), {}, "fixes no GID"),
    ("nccl.gid", "skip", node("NCCL_IB_GID_INDEX=-1\n"), {}, "fixes no GID"),
    ("nccl.gid", "skip", node("NCCL_IB_GID_INDEX=3\nNCCL_IB_HCA=mlx4\n"), {}, "no RoCE port that is active"),
    ("nccl.gid", "pass", node("NCCL_IB_GID_INDEX=3\n"), {}, "NCCL_IB_GID_INDEX=3 fits 1 ports"),
    ("nccl.gid", "fail", node("NCCL_IB_GID_INDEX=1\n"), {}, "is 1: fe80::1 on ens1, a link-local address"),
    ("nccl.gid", "fail", node("NCCL_IB_GID_INDEX=2\n"), {}, "is 2: 10.0.0.1 on ens1, RoCE v1"),
    ("nccl.gid", "fail", node("NCCL_IB_GID_INDEX=9\n"), {}, "GID 9 of mlx5_0:1 is an empty slot"),
    (
        "nccl.gid",
        "fail",
        node("NCCL_IB_GID_INDEX=5\n", mlx5_0={"gids": [*V1_AND_V2, "5 192.168.9.1 v2 ens1"]}),
        OLD,
        "the fabric's GID of mlx5_0:1 is 3: 10.0.0.1",
    ),
    ("nccl.gid", "pass", node("NCCL_IB_ADDR_RANGE=10.0.0.0/16\n"), {}, "fits 1 ports"),
    ("nccl.gid", "fail", node("NCCL_IB_ADDR_RANGE=10.0.0.1\n"), {}, "no network with a prefix length"),
    ("nccl.gid", "fail", node("NCCL_IB_ADDR_RANGE=ten/8\n"), {}, "no network with a prefix length"),
    ("nccl.gid", "fail", node("NCCL_IB_ADDR_RANGE=10.9.0.0/16\n"), {}, "what NCCL takes of mlx5_0:1 is 0: fe80::1"),
    (
        "nccl.gid",
        "fail",
        node("NCCL_IB_ADDR_RANGE=10.0.0.0/16\n", mlx5_0={"gids": ["0 10.9.0.1 v2 ens1", "1 10.0.0.1 v2 ens1"]}),
        {},
        "is 0: 10.9.0.1 on ens1, outside of the range",
    ),
    ("nccl.debug", "skip", node(), {}, "no variable of NCCL"),
    ("nccl.debug", "pass", node("NCCL_DEBUG=WARN\nNCCL_P2P_DISABLE=0\n"), {}, "no variable for debugging"),
    ("nccl.debug", "warn", node("NCCL_DEBUG=INFO\n"), {}, "NCCL_DEBUG=INFO in /etc/nccl.conf"),
    (
        "nccl.debug",
        "warn",
        node(nccl=("/etc/profile.d/x.sh:export NCCL_P2P_DISABLE=1", "/etc/environment:NCCL_IB_TC=106")),
        {},
        "set for all: NCCL_P2P_DISABLE=1 in /etc/profile.d/x.sh",
    ),
    ("nccl.torch", "skip", node(), {}, "PyTorch's default is 3"),
    (
        "nccl.torch",
        "pass",
        node(nccl=('/etc/environment:TORCH_NCCL_ASYNC_ERROR_HANDLING="1"',)),
        {},
        "=1: the communicator is aborted and the process ends",
    ),
    (
        "nccl.torch",
        "warn",
        node(nccl=("/etc/environment:TORCH_NCCL_ASYNC_ERROR_HANDLING=0",)),
        {},
        "the other ranks hang",
    ),
    ("nccl.torch", "warn", node(nccl=("/etc/environment:TORCH_NCCL_ASYNC_ERROR_HANDLING=7",)), {}, "no value of it"),
    (
        "nccl.torch",
        "warn",
        node(nccl=("/etc/profile.d/t.sh:export NCCL_ASYNC_ERROR_HANDLING=1",)),
        {},
        "the name before PyTorch 2.2",
    ),
    ("nccl.torch", "warn", node("TORCH_NCCL_ASYNC_ERROR_HANDLING=1\n"), {}, "PyTorch reads it before"),
]
