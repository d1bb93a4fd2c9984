"""Rows of test_checks.py for the RDMA exporter: what systemd says of it, and what it answered."""

from typing import Any

from gpuready.components.monitoring.component import LINKS, SOCKET, wanted
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState, Unknown
from tests.verdicts import Row, fails, is_unknown, passes, root_files, skips, warns

UNASKED = Unknown(unknown="not asked, because nvidia-smi gave no answer")
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
    return root_files({**wanted(NodeSpec.model_validate(SERVICE)), LINKS[SOCKET]: ""})


VERDICTS: list[Row] = [
    skips("monitoring.config", "rdma_exporter: off", node()),
    fails("monitoring.config", "gpuready-rdma-exporter.socket", node(), SERVICE),
    passes("monitoring.config", "as the spec says", node({"socket": LISTENS}, files=installed()), SERVICE),
    skips("monitoring.exporter", "rdma_exporter: off", node()),
    passes("monitoring.exporter", "listens on 127.0.0.1:9879", node({"socket": LISTENS}), SERVICE),
    fails("monitoring.exporter", "socket is failed", node({"socket": LISTENS | {"active": "failed"}}), SERVICE),
    fails("monitoring.exporter", "socket is inactive", node(), SERVICE),
    is_unknown("monitoring.exporter", "no bus", node({"unknown": "no bus"}), SERVICE),
    passes("monitoring.exporter", "/rdma.prom every 15 s", written(1010), TEXTFILE),
    fails("monitoring.exporter", "service last ran 61 s ago", written(1061), TEXTFILE),
    fails("monitoring.exporter", "service failed", written(1010, active="failed"), TEXTFILE),
    fails("monitoring.exporter", "timer is inactive", node(), TEXTFILE),
    skips("monitoring.scrape", "rdma_exporter: off", node()),
    is_unknown("monitoring.scrape", "not checked", node(), SERVICE),
    is_unknown("monitoring.scrape", "not asked, because", NodeState(active={"scrape": UNASKED}), SERVICE),
    passes("monitoring.scrape", "the counters of 1 RDMA devices", answered(0, ANSWER), SERVICE),
    warns("monitoring.scrape", "3 of rxe0", answered(0, ANSWER.replace("} 0", "} 3")), SERVICE),
    fails("monitoring.scrape", "no counters of rxe0", answered(0, ANSWER.replace("rxe0", "rxe1")), SERVICE),
    fails("monitoring.scrape", "no answer: empty response", answered(0, ""), SERVICE),
    fails("monitoring.scrape", "no answer: connect: refused", answered(1, "connect:\n refused"), SERVICE),
    is_unknown("monitoring.scrape", "the node has no bash", answered(127, ""), SERVICE),
]
