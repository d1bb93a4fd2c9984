"""A place with results over time, each made by the model that runs fill."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from gpuready.contract.check import fail, passed
from gpuready.contract.compare import Comparison
from gpuready.model.kernel_log import Event, KernelLog
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState
from gpuready.result.exitcode import exit_code
from gpuready.result.model import HostResult, Run
from gpuready.result.render import render
from tests.report.test_report_runs import DOCKER, NO_ROUTE, check, component, host

#: The first day; a result is kept each day.
DAY = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
NOW = DAY + timedelta(days=20)
SPEC = NodeSpec()
OTHER_SPEC = NodeSpec.model_validate({"hardware": {"gpus": 8}})
GOOD, BAD = check("docker.runtime", passed("there")), check("docker.runtime", fail("docker info lists runc only"))
MATCHES = Comparison("docker", True, "Docker is on the node")


def at(day: float) -> str:
    return (DAY + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")


def keep(folder: Path, day: float, verb: str, *hosts: HostResult) -> Path:
    """Keep a result that ended on this day."""
    run = Run(verb, list(hosts), ended=at(day))
    path = folder / f"{verb}-{day}.json"
    path.write_text(render(run, exit_code(run), "json"))
    return path


def node(name: str = "gpu01", *checks: Any, differs: bool = False, spec: NodeSpec = SPEC, **more: Any) -> HostResult:
    """A host that was read. ``differs``: Docker does, which an apply changes if ``more`` has ``changed``."""
    found = component(DOCKER if differs or more else MATCHES, **more)
    outcome = "changed" if more.get("changed") else "would_change" if differs else "ok"
    made = host(name, outcome, found, checks=checks or (GOOD,))
    made.saw(NodeState(), spec)
    return made


def lost(name: str) -> HostResult:
    return host(name, "unreachable", error=NO_ROUTE)


def xids(*events: tuple[int, int, int], boot: str = "one", name: str = "gpu01") -> HostResult:
    """A host whose kernel log has these: number, how many, seconds after boot of the last one."""
    log = KernelLog(since=0, events=tuple(
        Event(number=number, device="0000:17:00", count=count, seconds=seconds, text=f"NVRM: Xid {number}")
        for number, count, seconds in events
    ))  # fmt: skip
    made = node(name, check("gpu.xid", fail("Xid 79 on 0000:17:00: the GPU fell off the bus")))
    made.read(NodeState(boot_id=boot, clock=int(DAY.timestamp()) + 86400, uptime=86400, driver=Driver(log=log)))
    return made


def fleet(folder: Path) -> None:
    """Four hosts over ten days: one drifts, one flaps, one has Xids, one is lost."""
    for day in range(10):
        hosts = [
            node("gpu01", differs=day > 5),
            node("gpu02", BAD if day % 2 else GOOD),
            xids((79, 1 + day // 4, 100 + day // 4 * 86400), name="gpu03"),
            node("gpu04") if day < 8 else lost("gpu04"),
        ]
        keep(folder, day, "verify", *hosts)
    keep(folder, 2.5, "apply", node("gpu01", changed=True), node("gpu02"))
