"""Verdicts on the RDMA checks; sysfs as rxe, mlx5 and irdma show it."""

from pathlib import Path
from typing import Any

from gpuready.components.rdma.conf import OPERATOR
from gpuready.components.rdma.state import CONF
from gpuready.model.network import NetDevice, Network
from gpuready.model.state import Driver, File, NodeState
from tests.verdicts import Row, fails, held, is_unknown, passes, root_files, skips, warns


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
    return root_files({names[name]: f"options ib_core netns_mode={mode}\n" for name, mode in files.items()})


def _mode(mode: str) -> dict[str, Any]:
    return {"rdma": {"netns_mode": mode}}


def _ports(**values: int) -> dict[str, Any]:
    return {"hardware": {"rdma": values}}


_GPU = {"pci": ("0000:00:06.0 0x030200 0x2335",), "proc_version": "580.159.04"}
_IB = {path: "InfiniBand" if path.endswith("layer") else text for path, text in port().items()}
_TWO = port() | port("rocep2s0")
_IWARP = port("rocep1s0", node_type="4: RNIC")
_TWO_MODES = _node(files=_files(hpc="0"), cmdline="quiet ib_core.netns_mode=1")

#: As recorded on an Intel E810 (irdma).
IRDMA = (Path(__file__).parents[2] / "data/rdma/ibv_devinfo-v.irdma0.txt").read_text("utf-8")
ROXE = IRDMA.replace("irdma0", "rocep1s0").replace("max_srq:                        0", "max_srq:                960")
EFA = IRDMA.replace("InfiniBand (0)", "unspecified (4)")


def _verbs(out: str | None, rc: int = 0) -> NodeState:
    said = {} if out is None else {"verbs": {"rc": rc, "out": out}}
    return _node(rdma=port(), active={"done": {}, **said})


VERDICTS: list[Row] = [
    # rdma.srq
    skips("rdma.srq", "no RDMA port", _node()),
    skips("rdma.srq", "ibv_devinfo is not installed", _verbs(None)),
    is_unknown("rdma.srq", "not checked", _node(rdma=port())),
    is_unknown("rdma.srq", "exits with 255: Failed to open device", _verbs("Failed to open device\n", 255)),
    is_unknown("rdma.srq", "exits with 124: no message", _verbs("", 124)),
    warns("rdma.srq", "irdma0: no shared receive queues (max_srq is 0)", _verbs(IRDMA)),
    warns("rdma.srq", "irdma0: no shared", _verbs(ROXE + IRDMA)),
    passes("rdma.srq", "rocep1s0 960", _verbs(ROXE)),
    passes("rdma.srq", "rocep1s0 960", _verbs(EFA + ROXE)),
    skips("rdma.srq", "no device on this node speaks", _verbs(EFA)),
    passes("rdma.config", "", _node(mode="N", files=_files(ours="0")), _mode("exclusive")),
    fails("rdma.config", "rdma.running", _node(mode="Y"), _mode("exclusive")),
    skips("rdma.config", "unmanaged", _node(mode="Y")),
    # rdma.netns
    skips("rdma.netns", "not loaded", _node()),
    skips("rdma.netns", "it will be exclusive", _node(files=_files(ours="0")), _mode("exclusive")),
    skips("rdma.netns", "does not support netns_mode", _node("ib_core_loaded")),
    passes("rdma.netns", "mode is exclusive", _node(mode="N"), _mode("exclusive")),
    passes("rdma.netns", "mode is shared", _node(mode="Y", rdma=port(), netns=("sleep (pid 1)",))),
    fails("rdma.netns", "mode is shared, expected exclusive", _node(mode="Y"), _mode("exclusive")),
    warns("rdma.netns", "containers see no RDMA device", _node(mode="N", rdma=port(), netns=("sleep (pid 1)",))),
    # rdma.conflict
    skips("rdma.conflict", "nothing sets", _node(mode="Y")),
    passes("rdma.conflict", "all sources agree", _node(files=_files(ours="0", lib="1"))),
    fails("rdma.conflict", "files of modprobe.d disagree", _node(files=_files(ours="0", hpc="1"))),
    fails("rdma.conflict", "k8s-rdma-shared-dev-plugin", _node("rdma_shared_plugin", mode="N")),
    fails("rdma.conflict", "rdma-cni", _node("rdma_cni", mode="Y")),
    fails("rdma.conflict", "operator sets shared", _node(files=_files(operator="1")), _mode("exclusive")),
    passes("rdma.conflict", "all sources agree", _node(files=_files(operator="0")), _mode("exclusive")),
    fails("rdma.conflict", "the kernel command line says shared, but modprobe.d says exclusive", _TWO_MODES),
    # rdma.ports
    skips("rdma.ports", "not set", _node()),
    passes("rdma.ports", "active RDMA ports: 2", _node(rdma=_TWO, network=net()), _ports(ports=2, gbps=400)),
    fails("rdma.ports", "1 of 2 RDMA ports", _node(rdma=port() | port("mlx5_1", state="1: DOWN")), _ports(ports=2)),
    fails("rdma.ports", "exclusive mode", _node(mode="N"), _ports(ports=1)),
    fails("rdma.ports", "mlx5_0:1: 25 Gbit/s; expected 400", _node(rdma=port(), network=net(25_000)), _ports(gbps=400)),
    fails("rdma.ports", "no RDMA port is active; expected 400 Gbit/s", _node(), _ports(gbps=400)),
    is_unknown("rdma.ports", "pid 7 in state D", _node(rdma_stuck="ports: no answer (pid 7 in state D)")),
    passes("rdma.ports", "active RDMA ports: 1", _node(rdma=_IB), _ports(ports=1, gbps=100)),
    fails("rdma.ports", "100 Gbit/s; expected 200 Gbit/s", _node(rdma=_IB), _ports(ports=1, gbps=200)),
    is_unknown("rdma.ports", "reports no speed", _node(rdma=port(), network=net(None)), _ports(gbps=25)),
    # rdma.iwarp
    skips("rdma.iwarp", "no RDMA port", _node()),
    passes("rdma.iwarp", "mlx5_0", _node(rdma=port())),
    warns("rdma.iwarp", "rocep1s0: iWARP", _node(rdma=_IWARP)),
    fails("rdma.iwarp", "rocep1s0: iWARP", _node(rdma=_IWARP), _ports(ports=1)),
    # rdma.gdr
    skips("rdma.gdr", "no RDMA port", _node()),
    skips("rdma.gdr", "no NVIDIA driver", _node(rdma=port())),
    passes("rdma.gdr", "nvidia_peermem", _node("peermem", rdma=port(), driver=Driver(**_GPU))),
    passes("rdma.gdr", "dma-buf", _node(rdma=port(), driver=Driver(**_GPU, open_module=True))),
    warns("rdma.gdr", "not the open one", _node(rdma=port(), driver=Driver(**_GPU))),
]
test_verdict = held(VERDICTS)
