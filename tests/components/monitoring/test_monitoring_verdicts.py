"""Verdicts on the RDMA exporter: what systemd says of it, and what it answered."""

from typing import Any

from gpuready.components.monitoring.component import LINK, files
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState, Unknown
from tests.verdicts import Row, fails, held, is_unknown, passes, root_files, skips, warns

UNASKED = Unknown(unknown="not asked, because nvidia-smi gave no answer")
TEXTFILE = {"monitoring": {"rdma_exporter": "textfile"}}
TIMER = {"load": "loaded", "active": "active"}
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
    return node({"timer": TIMER, "service": service}, uptime=uptime)


def answered(rc: int, out: str) -> NodeState:
    """A node with the device rxe0, whose exporter answered so."""
    active = {"scrape": {"rc": rc, "out": out}}
    return node(active=active, rdma={"/sys/class/infiniband/rxe0/ports/1/state": "4: ACTIVE"})


def installed() -> dict[str, File]:
    """The exporter's files as the spec has them."""
    return root_files({**files(NodeSpec.model_validate(TEXTFILE)), LINK: ""})


VERDICTS: list[Row] = [
    skips("monitoring.config", "rdma_exporter: off", node()),
    fails("monitoring.config", "gpuready-rdma-exporter.timer", node(), TEXTFILE),
    passes("monitoring.config", "as the spec says", node({"timer": TIMER}, files=installed()), TEXTFILE),
    skips("monitoring.exporter", "rdma_exporter: off", node()),
    is_unknown("monitoring.exporter", "no bus", node({"unknown": "no bus"}), TEXTFILE),
    passes("monitoring.exporter", "/rdma.prom every 15 s", written(1010), TEXTFILE),
    fails("monitoring.exporter", "service last ran 61 s ago", written(1061), TEXTFILE),
    fails("monitoring.exporter", "service failed", written(1010, active="failed"), TEXTFILE),
    fails("monitoring.exporter", "timer is failed", node({"timer": TIMER | {"active": "failed"}}), TEXTFILE),
    fails("monitoring.exporter", "timer is inactive", node(), TEXTFILE),
    skips("monitoring.scrape", "rdma_exporter: off", node()),
    is_unknown("monitoring.scrape", "not checked", node(), TEXTFILE),
    is_unknown("monitoring.scrape", "not asked, because", NodeState(active={"scrape": UNASKED}), TEXTFILE),
    passes("monitoring.scrape", "the counters of 1 RDMA devices", answered(0, ANSWER), TEXTFILE),
    warns("monitoring.scrape", "3 of rxe0", answered(0, ANSWER.replace("} 0", "} 3")), TEXTFILE),
    fails("monitoring.scrape", "no counters of rxe0", answered(0, ANSWER.replace("rxe0", "rxe1")), TEXTFILE),
    fails("monitoring.scrape", "no counters: the file is empty", answered(0, ""), TEXTFILE),
    fails("monitoring.scrape", "no counters: cat: no such file", answered(1, "cat:\n no such file"), TEXTFILE),
]
test_verdict = held(VERDICTS)
