"""Rows of test_checks.py for the RDMA exporter: what systemd says of it, and what it answered."""

from __future__ import annotations

from typing import Any

from gpuready.components.monitoring.component import LINKS, SOCKET, wanted
from gpuready.spec.model import NodeSpec
from gpuready.state.model import File, NodeState

SERVICE = {"monitoring": {"rdma_exporter": "service"}}
TEXTFILE = {"monitoring": {"rdma_exporter": "textfile"}}
LISTENS = {"load": "loaded", "active": "active", "listen": "127.0.0.1:9879 (Stream)"}
ANSWER = """# HELP rdma_exporter_devices RDMA devices that were read
# TYPE rdma_exporter_devices gauge
rdma_hw_sent_pkts_total{device="rxe0",port="1"} 5
rdma_exporter_devices 1
rdma_exporter_read_errors{device="rxe0"} 0
"""


def node(units: Any = None, **fields: Any) -> NodeState:
    if units is not None and "unknown" not in units:
        units = {f"gpuready-rdma-exporter.{kind}": unit for kind, unit in units.items()}
    return NodeState.model_validate({"systemd": True, "units": units or {}, **fields})


def written(uptime: int, **writer: Any) -> NodeState:
    """A node that is up for so long, with its timer on, whose last file was written after 1000 s."""
    service = {"load": "loaded", "active": "inactive", "changed_us": 1_000_000_000, **writer}
    return node({"timer": {"load": "loaded", "active": "active"}, "service": service}, uptime=uptime)


def answered(rc: int, out: str) -> NodeState:
    """A node with the device rxe0, whose exporter answered so."""
    active = {"scrape": {"rc": rc, "out": out}}
    return node(active=active, rdma={"/sys/class/infiniband/rxe0/ports/1/state": "4: ACTIVE"})


def installed() -> dict[str, File]:
    """The files of a service as the spec has them."""
    files = {**wanted(NodeSpec.model_validate(SERVICE)), LINKS[SOCKET]: ""}
    return {path: File(text=text, mode=0o644, uid=0, gid=0, mtime=0) for path, text in files.items()}


VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("monitoring.config", "skip", node(), {}, "rdma_exporter: off"),
    ("monitoring.config", "fail", node(), SERVICE, "gpuready-rdma-exporter.socket"),
    ("monitoring.config", "pass", node({"socket": LISTENS}, files=installed()), SERVICE, "as the spec says"),
    ("monitoring.exporter", "skip", node(), {}, "rdma_exporter: off"),
    ("monitoring.exporter", "pass", node({"socket": LISTENS}), SERVICE, "listens on 127.0.0.1:9879"),
    ("monitoring.exporter", "fail", node({"socket": LISTENS | {"active": "failed"}}), SERVICE, "socket is failed"),
    ("monitoring.exporter", "fail", node(), SERVICE, "socket is inactive"),
    ("monitoring.exporter", "unknown", node({"unknown": "no bus"}), SERVICE, "no bus"),
    ("monitoring.exporter", "pass", written(1010), TEXTFILE, "/rdma.prom every 15 s"),
    ("monitoring.exporter", "fail", written(1061), TEXTFILE, "service last ran 61 s ago"),
    ("monitoring.exporter", "fail", written(1010, active="failed"), TEXTFILE, "service failed"),
    ("monitoring.exporter", "fail", node(), TEXTFILE, "timer is inactive"),
    ("monitoring.scrape", "skip", node(), {}, "rdma_exporter: off"),
    ("monitoring.scrape", "unknown", node(), SERVICE, "nobody asked"),
    ("monitoring.scrape", "pass", answered(0, ANSWER), SERVICE, "the counters of 1 RDMA devices"),
    ("monitoring.scrape", "warn", answered(0, ANSWER.replace("} 0", "} 3")), SERVICE, "3 of rxe0"),
    ("monitoring.scrape", "fail", answered(0, ANSWER.replace("rxe0", "rxe1")), SERVICE, "without rxe0"),
    ("monitoring.scrape", "fail", answered(0, ""), SERVICE, "no answer: an empty one"),
    ("monitoring.scrape", "fail", answered(1, "connect:\n refused"), SERVICE, "no answer: connect: refused"),
    ("monitoring.scrape", "unknown", answered(127, ""), SERVICE, "no bash on the node"),
]
