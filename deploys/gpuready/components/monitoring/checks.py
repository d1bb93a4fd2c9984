"""Checks of the RDMA exporter: does its timer run, is its file recent, and does that cover every device?

Sources: systemctl(1) show, the text format of Prometheus.
"""

import re

from gpuready.components.monitoring.component import INTERVAL, TIMER, WRITER, scrape
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, warn
from gpuready.contract.question import Question
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_OFF = "monitoring.rdma_exporter: off"


def _exporter(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.monitoring.rdma_exporter == "off":
        return skip(_OFF)
    need.value(state.units)
    timer, writer = state.unit(TIMER), state.unit(WRITER)
    if timer.active != "active":
        return fail(f"{TIMER} is {timer.active}")
    age = state.uptime - writer.changed_us // 1_000_000
    if writer.active == "failed" or age > 4 * INTERVAL:
        return fail(f"{WRITER} {'failed' if writer.active == 'failed' else f'last ran {age} s ago'}")
    return passed(f"writes {spec.monitoring.textfile_directory}/rdma.prom every {INTERVAL} s")


def _scrape(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.monitoring.rdma_exporter == "off":
        return skip(_OFF)
    answer = need.answer(state, "scrape")
    if answer.rc or "\nrdma_exporter_devices " not in answer.out:
        return fail(f"no counters: {' '.join(answer.out.split())[:200] or 'the file is empty'}")
    bad = dict(re.findall(r'^rdma_exporter_read_errors\{device="([^"]*)"\} ([1-9]\d*)$', answer.out, re.M))
    lost = sorted({path.split("/")[4] for path in state.rdma} - set(re.findall(r'\{device="([^"]*)"', answer.out)))
    if lost:
        return fail(f"no counters of {', '.join(lost)}")
    if bad:
        return warn(f"unreadable counters: {', '.join(f'{n} of {device}' for device, n in sorted(bad.items()))}")
    count = re.search(r"^rdma_exporter_devices (\d+)$", answer.out, re.M)
    return passed(f"has the counters of {count[1] if count else 0} RDMA devices")


class AskScrape(Question, template="monitoring/ask-scrape"):
    """Read the metrics on the node."""

    scrape: tuple[str, ...]


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    command = scrape(spec)
    return (AskScrape({"scrape": 15}, command),) if command else ()


CHECKS = (
    Check(
        "monitoring.exporter",
        "the RDMA exporter runs",
        Level.effective,
        "The RDMA exporter does not run, or its file is old: Prometheus shows counters that do not change.",
        "systemctl status 'gpuready-rdma-exporter*'; journalctl -u 'gpuready-rdma-exporter*'",
        "gpuready apply -i INVENTORY --only monitoring",
        _exporter,
        component="monitoring",
        after=("monitoring.config",),
    ),
    Check(
        "monitoring.scrape",
        "the RDMA exporter has all counters",
        Level.effective,
        "The RDMA exporter's file has no counters, or leaves out a device that is on this node.",
        "sh /usr/local/lib/gpuready-rdma-exporter prints the counters on the node",
        "journalctl -u 'gpuready-rdma-exporter*'; if a device hangs in its driver, only its own counters are missing",
        _scrape,
        component="monitoring",
        active=True,
        after=("monitoring.config", "monitoring.exporter"),
    ),
)
