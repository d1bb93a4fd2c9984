"""The RDMA exporter as a monitoring system meets it: does it run, is what it says fresh, and is every device in it?

Sources: systemctl(1) show, the text format of Prometheus.
"""

from __future__ import annotations

import re

from gpuready.components.monitoring.component import INTERVAL, SOCKET, TIMER, WRITER
from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown, unread, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unit, Unknown

_OFF = "monitoring.rdma_exporter: off"


def _exporter(spec: NodeSpec, state: NodeState) -> Verdict:
    mode = spec.monitoring.rdma_exporter
    if mode == "off":
        return skip(_OFF)
    if isinstance(state.units, Unknown):
        return unread(state.units)
    none = Unit(load="not-found", active="inactive")
    unit = state.units.get(SOCKET if mode == "service" else TIMER, none)
    if unit.active != "active":
        return fail(f"{SOCKET if mode == 'service' else TIMER} is {unit.active}")
    if mode == "service":
        return passed(f"listens on {unit.listen.removesuffix(' (Stream)')}")
    writer = state.units.get(WRITER, none)
    age = state.uptime - writer.changed_us // 1_000_000
    if writer.active == "failed" or age > 4 * INTERVAL:
        return fail(f"{WRITER} {'failed' if writer.active == 'failed' else f'last ran {age} s ago'}")
    return passed(f"writes {spec.monitoring.textfile_directory}/rdma.prom every {INTERVAL} s")


def _scrape(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.monitoring.rdma_exporter == "off":
        return skip(_OFF)
    answer = state.active.get("scrape")
    if answer is None:
        return unknown("nobody asked")
    if answer["rc"] == 127:
        return unknown("there is no bash on the node to ask with")
    if answer["rc"] or "\nrdma_exporter_devices " not in answer["out"]:
        return fail(f"no answer: {' '.join(answer['out'].split())[:200] or 'an empty one'}")
    bad = dict(re.findall(r'^rdma_exporter_read_errors\{device="([^"]*)"\} ([1-9]\d*)$', answer["out"], re.M))
    lost = sorted({path.split("/")[4] for path in state.rdma} - set(re.findall(r'\{device="([^"]*)"', answer["out"])))
    if lost:
        return fail(f"without {', '.join(lost)}")
    if bad:
        return warn(f"could not be read: {', '.join(f'{n} of {device}' for device, n in sorted(bad.items()))}")
    count = re.search(r"^rdma_exporter_devices (\d+)$", answer["out"], re.M)
    return passed(f"answers with the counters of {count[1] if count else 0} RDMA devices")


CHECKS = (
    Check(
        "monitoring.exporter",
        Level.effective,
        "The RDMA exporter does not run, or what it wrote is old: Prometheus sees gaps, or counters that stand still.",
        "systemctl status 'gpuready-rdma-exporter*'; journalctl -u 'gpuready-rdma-exporter*'",
        "gpuready apply -i INVENTORY --only monitoring",
        _exporter,
        after=("monitoring.config",),
    ),
    Check(
        "monitoring.scrape",
        Level.effective,
        "The RDMA exporter does not answer, or leaves out a device that is on this node.",
        "curl -s http://ADDRESS:9879/metrics, or sh /usr/local/lib/gpuready-rdma-exporter on the node",
        "journalctl -u 'gpuready-rdma-exporter*'; a device that hangs in its driver costs only its own counters",
        _scrape,
        active=True,
        after=("monitoring.config", "monitoring.exporter"),
    ),
)
