"""A node that is slow or still booting: apply waits for it and asks again, plan and verify call it unknown."""

from __future__ import annotations

import subprocess

import pytest

from gpuready.state import probe
from tests.lab import Machine
from tests.lab.fixtures import MachineFactory
from tests.system.faults import settled
from tests.system.harness import Gpuready, Inventories, Result

pytestmark = pytest.mark.fault("booting-node")
_SLOW = """#!/bin/sh
[ ! -e /etc/slow ] || [ "$1" != info ] || sleep "$(cat /etc/slow)"
exec /usr/bin/docker "$@"
"""
_STARTS = "/etc/systemd/system/{unit}.d/slow.conf"


def _slowly(m: Machine, unit: str) -> None:
    """Let the unit's next start last until the file /run/go is there."""
    path = m.root / _STARTS.format(unit=unit)[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    waits = "until [ -e /run/go ]; do sleep 0.1; done"
    path.write_text(f"[Service]\nTimeoutStartSec=600\nExecStartPre=/bin/sh -c '{waits}'\n")
    m.run(f"rm -f /run/go; systemctl daemon-reload; systemctl restart --no-block {unit}")
    m.run(f"until systemctl show -p SubState {unit} | grep -q start-pre; do sleep 0.05; done")


def _unknown(result: Result, engine: str, reason: str) -> None:
    """The engine could not be compared, for that reason, and the node was asked once."""
    error = result.component(engine)["error"]
    assert error is not None and reason in error["message"], result.explain()
    assert (result.component(engine)["diff"] == [], result.host()["execs"]) == (reason.endswith("starting"), 1)


def test_a_docker_that_answers_slowly_is_asked_once_more(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    """As on virtual machines a minute after their boot, where ``docker info`` took longer than the probe's limit."""
    m = machine()
    path = inventory(m)
    slow = m.root / "usr/local/bin/docker"
    slow.write_text(_SLOW)
    slow.chmod(0o755)
    (m.root / "etc/slow").write_text(f"{probe.LIMIT + 2}\n")
    plan = gpuready("plan", inventory=path)
    assert plan.code == 1, plan.explain()
    _unknown(plan, "docker", "docker: no answer within the probe's limit")
    verify = gpuready("verify", "--passive", inventory=path)
    assert verify.code == 3, verify.explain()
    assert "docker.nvidia" not in verify.checks("fail"), verify.explain()
    applied = gpuready("apply", "--yes", inventory=path)
    assert (applied.code, applied.host()["outcome"]) == (0, "changed"), applied.explain()
    assert f"{m.name}  wait up to {probe.PATIENCE + probe.LONGER} s: docker gave no answer" in applied.stderr
    again = gpuready("apply", "--yes", inventory=path)
    assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 2), again.explain()
    fabric = gpuready("fabric", "--tests", "rping", inventory=inventory((m, machine())))
    assert f"{m.name}  wait up to" in fabric.stderr, fabric.explain()
    (m.root / "etc/slow").unlink()
    settled(gpuready, path)


@pytest.mark.parametrize("unit", ["docker.service", "containerd.service"])
def test_an_engine_that_starts_is_waited_for(
    unit: str, machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = machine()
    path = inventory(m, runtimes={"containerd": "auto"}, verify={"level": "effective"})
    _slowly(m, unit)
    for verb, code in (("plan", 1), ("verify", 3)):
        result = gpuready(verb, inventory=path) if verb == "plan" else gpuready(verb, "--passive", inventory=path)
        assert result.code == code, result.explain()
        _unknown(result, unit.removesuffix(".service"), f"{unit} is still starting")
    process = gpuready.start("apply", "--yes", inventory=path)
    assert process.stderr is not None
    for line in process.stderr:
        if f"{unit} is still starting" in line:
            break
    m.run("touch /run/go")
    applied = gpuready.finish(process)
    assert (applied.code, applied.host()["outcome"]) == (0, "changed"), applied.explain()
    assert "docker" in applied.changed()
    settled(gpuready, path)


def test_a_dockerd_that_stands_still_for_a_while_is_waited_for(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = machine()
    path = inventory(m)
    m.run("kill -STOP $(cat /run/docker.pid)")
    plan = gpuready("plan", inventory=path)
    assert plan.code == 1, plan.explain()
    _unknown(plan, "docker", "docker: no answer within the probe's limit")
    process: subprocess.Popen[str] = gpuready.start("apply", "--yes", inventory=path)
    assert process.stderr is not None
    for line in process.stderr:
        if "docker gave no answer" in line:
            break
    m.run("kill -CONT $(cat /run/docker.pid)")
    applied = gpuready.finish(process)
    assert (applied.code, applied.host()["outcome"]) == (0, "changed"), applied.explain()
    settled(gpuready, path)
