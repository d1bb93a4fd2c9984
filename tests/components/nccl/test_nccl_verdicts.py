"""Verdicts of the checks on NCCL: id, status, node, spec, part of the summary."""

from typing import Any

from gpuready.model.network import NetDevice, Network
from gpuready.model.state import NodeState
from tests.network.gid_tables import sysfs
from tests.verdicts import Row, fails, held, is_unknown, passes, root_file, skips, warns

V1_AND_V2 = ["0 fe80::1 v1 ens1", "1 fe80::1 v2 ens1", "2 10.0.0.1 v1 ens1", "3 10.0.0.1 v2 ens1"]
NETWORK = Network(devices={"eno1": NetDevice(), "ens1": NetDevice(addresses=("10.0.0.1/24",))}, default=("eno1",))
FABRIC = {"nccl": {"subnets": ["10.0.0.0/16"]}}
OLD = {"nccl": {"subnets": ["10.0.0.0/16"], "version": "2.18.5"}}
TCP = {"nccl": {"transport": "tcp", "subnets": ["10.0.0.0/16"]}}
NO_TCP = {"nccl": {"transport": "tcp", "subnets": ["10.9.0.0/16"]}}
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
    files = {} if text is None else {"/etc/nccl.conf": root_file(text, mode)}
    return NodeState(rdma=rdma, network=NETWORK, files=files, nccl=nccl)


DOWN = node(mlx5_0={"gids": V1_AND_V2, "state": "DOWN"})
TWO = node(mlx5_0={"gids": [*V1_AND_V2, "5 10.0.0.2 v2 ens1"]})
ONE_AND_TEN = {name: {"gids": V1_AND_V2} for name in ("mlx5_1", "mlx5_10")}
NO_RDMA = NodeState(network=NETWORK, files=node("NCCL_IB_HCA=mlx5").files)
OTHERS = {"mlx5_0": {"gids": [*V1_AND_V2, "5 192.168.9.1 v2 ens1"]}}
OUTSIDE = {"mlx5_0": {"gids": ["0 10.9.0.1 v2 ens1", "1 10.0.0.1 v2 ens1"]}}
DEBUGGING = ("/etc/profile.d/x.sh:export NCCL_P2P_DISABLE=1", "/etc/environment:NCCL_IB_TC=106")
BEFORE_2_2 = ("/etc/profile.d/t.sh:export NCCL_ASYNC_ERROR_HANDLING=1",)


def handling(value: str) -> NodeState:
    """A node whose /etc/environment says what PyTorch does after an error."""
    return node(nccl=(f"/etc/environment:TORCH_NCCL_ASYNC_ERROR_HANDLING={value}",))


VERDICTS: list[Row] = [
    skips("nccl.config", "the spec does not set nccl", node()),
    fails("nccl.config", "nccl.NCCL_IB_HCA", node(), FABRIC),
    passes("nccl.config", "as the spec says", node(OURS), FABRIC),
    is_unknown("nccl.config", "5: 10.0.0.2 on ens1", TWO, FABRIC),
    skips("nccl.ports", "names no network", node()),
    skips("nccl.ports", "names no network", node(), {"nccl": {"extra": {"NCCL_IB_TC": "106"}}}),
    passes("nccl.ports", "mlx5_0:1 10.0.0.1", node(), FABRIC),
    fails("nccl.ports", "several addresses could belong to the fabric", TWO, FABRIC),
    passes("nccl.ports", "NCCL uses TCP over ens1 10.0.0.1/24", node(), TCP),
    fails("nccl.ports", "no active interface matches nccl.subnets (10.9.0.0/16)", node(), NO_TCP),
    warns("nccl.debug", "NCCL_IB_DISABLE=1", node("NCCL_IB_DISABLE=1")),
    passes("nccl.debug", "no variable for debugging", node("NCCL_IB_DISABLE=1"), TCP),
    fails("nccl.ports", "1 of 1 port cannot be used: mlx5_0:1: its state is DOWN", DOWN, FABRIC),
    skips("nccl.grammar", "there is no /etc/nccl.conf", node()),
    passes("nccl.grammar", "sets 1 variable", node("# mine\n\nNCCL_IB_TC=106\n")),
    passes("nccl.grammar", "sets 4 variables", node(OURS)),
    fails("nccl.grammar", "line 1: quotes are part of the value", node('NCCL_IB_HCA="mlx5_0"\n')),
    fails("nccl.grammar", "NCCL sets 'export NCCL_IB_TC'", node("export NCCL_IB_TC=106\n")),
    fails("nccl.grammar", "line 2: NCCL sets a variable named ' NCCL_IB_TC'", node("\n NCCL_IB_TC=106\n")),
    fails("nccl.grammar", "a variable named 'NCCL_IB_TC '", node("NCCL_IB_TC = 106\n")),
    fails("nccl.grammar", "blanks around the value", node("NCCL_IB_TC= 106\n")),
    fails("nccl.grammar", "a comment after the value", node("NCCL_IB_TC=106 # DSCP 26\n")),
    fails("nccl.grammar", "# starts a comment only", node(" #NCCL_IB_TC=106\n")),
    fails("nccl.grammar", "carriage return", node("NCCL_IB_TC=106\r\n")),
    fails("nccl.grammar", "cuts values after 1023 bytes", node(f"NCCL_TOPO_FILE=/{'x' * 1023}\n")),
    warns("nccl.grammar", "line 1: not an assignment", node("NCCL_IB_TC 106\n")),
    warns("nccl.grammar", "not every user can read /etc/nccl.conf (mode 600)", node("NCCL_IB_TC=106\n", mode=0o600)),
    fails("nccl.grammar", "not a regular file", NodeState(not_files=("/etc/nccl.conf",))),
    skips("nccl.hca", "does not set NCCL_IB_HCA", node()),
    passes("nccl.hca", "NCCL_IB_HCA==mlx5_0:1", node("NCCL_IB_HCA==mlx5_0:1\n")),
    passes("nccl.hca", "NCCL_IB_HCA=mlx5", node("NCCL_IB_HCA=mlx5\n")),
    fails("nccl.hca", "none of the node's ports (rocep1", node("NCCL_IB_HCA=mlx5\n", rocep1s0f0={"gids": V1_AND_V2})),
    fails("nccl.hca", "none of the node's ports (mlx5_0:1): NCCL uses TCP", node("NCCL_IB_HCA==mlx5\n")),
    fails("nccl.hca", "no device is named mlx5_7", node("NCCL_IB_HCA=mlx5_0,mlx5_7\n")),
    warns("nccl.hca", "mlx5_1 matches mlx5_1, mlx5_10", node("NCCL_IB_HCA=mlx5_1\n", **ONE_AND_TEN)),
    warns("nccl.hca", "but the node shows no RDMA device", NO_RDMA),
    skips("nccl.gid", "selects no GID", node()),
    skips("nccl.gid", "selects no GID", node("NCCL_IB_GID_INDEX=-1\n")),
    skips("nccl.gid", "no active RoCE port", node("NCCL_IB_GID_INDEX=3\nNCCL_IB_HCA=mlx4\n")),
    passes("nccl.gid", "NCCL_IB_GID_INDEX=3 fits 1 port", node("NCCL_IB_GID_INDEX=3\n")),
    fails("nccl.gid", "is 1: fe80::1 on ens1, a link-local address", node("NCCL_IB_GID_INDEX=1\n")),
    fails("nccl.gid", "is 2: 10.0.0.1 on ens1, RoCE v1", node("NCCL_IB_GID_INDEX=2\n")),
    fails("nccl.gid", "GID 9 of mlx5_0:1 is an empty slot", node("NCCL_IB_GID_INDEX=9\n")),
    fails("nccl.gid", "the fabric's GID of mlx5_0:1 is 3: 10.0.0.1", node("NCCL_IB_GID_INDEX=5\n", **OTHERS), OLD),
    passes("nccl.gid", "fits 1 port", node("NCCL_IB_ADDR_RANGE=10.0.0.0/16\n")),
    fails("nccl.gid", "is not a network with a prefix length", node("NCCL_IB_ADDR_RANGE=10.0.0.1\n")),
    fails("nccl.gid", "is not a network with a prefix length", node("NCCL_IB_ADDR_RANGE=ten/8\n")),
    fails("nccl.gid", "the GID that NCCL selects of mlx5_0:1 is 0: fe80::1", node("NCCL_IB_ADDR_RANGE=10.9.0.0/16\n")),
    fails("nccl.gid", "10.9.0.1 on ens1, outside of the range", node("NCCL_IB_ADDR_RANGE=10.0.0.0/16\n", **OUTSIDE)),
    skips("nccl.debug", "no variable of NCCL", node()),
    passes("nccl.debug", "no variable for debugging", node("NCCL_DEBUG=WARN\nNCCL_P2P_DISABLE=0\n")),
    warns("nccl.debug", "NCCL_DEBUG=INFO in /etc/nccl.conf", node("NCCL_DEBUG=INFO\n")),
    warns("nccl.debug", "meant for debugging one: NCCL_P2P_DISABLE=1 in /etc/profile.d/x.sh", node(nccl=DEBUGGING)),
    skips("nccl.torch", "PyTorch's default is 3", node()),
    passes("nccl.torch", "=1: the communicator is aborted and the process ends", handling('"1"')),
    warns("nccl.torch", "the other ranks hang", handling("0")),
    warns("nccl.torch", "is not a valid value", handling("7")),
    warns("nccl.torch", "the name from before PyTorch 2.2", node(nccl=BEFORE_2_2)),
    warns("nccl.torch", "PyTorch reads it before", node("TORCH_NCCL_ASYNC_ERROR_HANDLING=1\n")),
]
test_verdict = held(VERDICTS)
