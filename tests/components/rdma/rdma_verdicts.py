"""The verdicts of the RDMA checks, as rows of test_checks.py's table; sysfs as rxe, mlx5 and irdma show it."""

from __future__ import annotations

from typing import Any

from gpuready.components.rdma.conf import OPERATOR
from gpuready.components.rdma.state import CONF
from gpuready.state.model import Driver, File, NodeState
from gpuready.state.network import NetDevice, Network

Row = tuple[str, str, NodeState, dict[str, Any], str]


def port(device: str = "mlx5_0", state: str = "4: ACTIVE", node_type: str = "1: CA") -> dict[str, str]:
    """The sysfs of an Ethernet device with one port; RDMA's own rate is off, as it often is."""
    here = f"/sys/class/infiniband/{device}"
    found = {f"{here}/node_type": node_type, f"{here}/ports/1/state": state, f"{here}/ports/1/link_layer": "Ethernet"}
    return found | {f"{here}/ports/1/rate": "100 Gb/sec (4X EDR)"}


def net(speed: int | None = 400_000) -> Network:
    """The network devices below mlx5_0 and rocep2s0."""
    devices = {"eth1": NetDevice(speed=speed), "eth2": NetDevice(speed=speed)}
    return Network(devices=devices, rdma={"mlx5_0": ("eth1",), "rocep2s0": ("eth2",)})


def _node(*marks: str, mode: str = "", rdma: dict[str, str] | None = None, **fields: Any) -> NodeState:
    return NodeState(marks=marks, ib_netns_mode=mode, rdma=rdma or {}, kernel="6.12.57", **fields)


def _files(**files: str) -> dict[str, File]:
    names = {"ours": CONF, "operator": OPERATOR, "hpc": "/etc/modprobe.d/hpc.conf", "lib": "/usr/lib/modprobe.d/a.conf"}
    return {
        names[name]: File(text=f"options ib_core netns_mode={mode}\n", mode=0o644, uid=0, gid=0, mtime=1)
        for name, mode in files.items()
    }


def _mode(mode: str) -> dict[str, Any]:
    return {"rdma": {"netns_mode": mode}}


def _ports(**values: int) -> dict[str, Any]:
    return {"hardware": {"rdma": values}}


_GPU = {"pci": ("0000:00:06.0 0x030200 0x2335",), "proc_version": "580.159.04"}
_IB = {path: "InfiniBand" if path.endswith("layer") else text for path, text in port().items()}
_TWO = port() | port("rocep2s0")
_IWARP = port("rocep1s0", node_type="4: RNIC")

VERDICTS: list[Row] = [
    ("rdma.config", "pass", _node(mode="N", files=_files(ours="0")), _mode("exclusive"), ""),
    ("rdma.config", "fail", _node(mode="Y"), _mode("exclusive"), "rdma.running"),
    ("rdma.config", "skip", _node(mode="Y"), {}, "unmanaged"),
    # rdma.netns
    ("rdma.netns", "skip", _node(), {}, "not loaded"),
    ("rdma.netns", "skip", _node(files=_files(ours="0")), _mode("exclusive"), "it will be exclusive"),
    ("rdma.netns", "skip", _node("ib_core_loaded"), {}, "knows no netns_mode"),
    ("rdma.netns", "pass", _node(mode="N"), _mode("exclusive"), "mode is exclusive"),
    ("rdma.netns", "pass", _node(mode="Y", rdma=port(), netns=("sleep (pid 1)",)), {}, "mode is shared"),
    ("rdma.netns", "fail", _node(mode="Y"), _mode("exclusive"), "mode is shared, expected exclusive"),
    ("rdma.netns", "warn", _node(mode="N", rdma=port(), netns=("sleep (pid 1)",)), {}, "containers see no RDMA device"),
    # rdma.conflict
    ("rdma.conflict", "skip", _node(mode="Y"), {}, "nothing sets"),
    ("rdma.conflict", "pass", _node(files=_files(ours="0", lib="1")), {}, "all sources agree"),
    ("rdma.conflict", "fail", _node(files=_files(ours="0", hpc="1")), {}, "files of modprobe.d disagree"),
    ("rdma.conflict", "fail", _node("rdma_shared_plugin", mode="N"), {}, "k8s-rdma-shared-dev-plugin"),
    ("rdma.conflict", "fail", _node("rdma_cni", mode="Y"), {}, "rdma-cni"),
    ("rdma.conflict", "fail", _node(files=_files(operator="1")), _mode("exclusive"), "operator says shared"),
    ("rdma.conflict", "pass", _node(files=_files(operator="0")), _mode("exclusive"), "all sources agree"),
    (
        "rdma.conflict", "fail", _node(files=_files(hpc="0"), cmdline="quiet ib_core.netns_mode=1"), {},
        "the kernel command line says shared, modprobe.d exclusive",
    ),
    # rdma.ports
    ("rdma.ports", "skip", _node(), {}, "not set"),
    ("rdma.ports", "pass", _node(rdma=_TWO, network=net()), _ports(ports=2, gbps=400), "active RDMA ports: 2"),
    ("rdma.ports", "fail", _node(rdma=port() | port("mlx5_1", state="1: DOWN")), _ports(ports=2), "1 of 2 RDMA ports"),
    ("rdma.ports", "fail", _node(mode="N"), _ports(ports=1), "exclusive mode"),
    ("rdma.ports", "fail", _node(rdma=port(), network=net(25_000)), _ports(gbps=400), "mlx5_0:1: 25 Gbit/s; 400"),
    ("rdma.ports", "fail", _node(), _ports(gbps=400), "no RDMA port is active; 400 Gbit/s are wanted"),
    ("rdma.ports", "unknown", _node(rdma_stuck="ports: no answer (pid 7 in state D)"), {}, "pid 7 in state D"),
    ("rdma.ports", "pass", _node(rdma=_IB), _ports(ports=1, gbps=100), "active RDMA ports: 1"),
    ("rdma.ports", "fail", _node(rdma=_IB), _ports(ports=1, gbps=200), "100 Gbit/s; 200 are wanted"),
    ("rdma.ports", "unknown", _node(rdma=port(), network=net(None)), _ports(gbps=25), "reports no speed"),
    # rdma.iwarp
    ("rdma.iwarp", "skip", _node(), {}, "no RDMA port"),
    ("rdma.iwarp", "pass", _node(rdma=port()), {}, "mlx5_0"),
    ("rdma.iwarp", "warn", _node(rdma=_IWARP), {}, "rocep1s0: iWARP"),
    ("rdma.iwarp", "fail", _node(rdma=_IWARP), _ports(ports=1), "rocep1s0: iWARP"),
    # rdma.gdr
    ("rdma.gdr", "skip", _node(), {}, "no RDMA port"),
    ("rdma.gdr", "skip", _node(rdma=port()), {}, "no NVIDIA driver"),
    ("rdma.gdr", "pass", _node("peermem", rdma=port(), driver=Driver(**_GPU)), {}, "nvidia_peermem"),
    ("rdma.gdr", "pass", _node(rdma=port(), driver=Driver(**_GPU, open_module=True)), {}, "dma-buf"),
    ("rdma.gdr", "warn", _node(rdma=port(), driver=Driver(**_GPU)), {}, "not the open one"),
]  # fmt: skip
