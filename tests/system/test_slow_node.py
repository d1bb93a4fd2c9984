"""A node that is slow or still booting: apply waits for it and asks again, plan and verify call it unknown."""

import pytest

from gpuready.model import probe
from tests.lab import Machine
from tests.system.harness import Result
from tests.system.host import Host, Hosts
from tests.system.warm import LIMITS

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


def _waits(m: Host, message: str, then: str) -> Result:
    """An apply that says that it waits, and goes on after that command."""
    process = m.begin("apply")
    assert process.stderr is not None
    assert any(message in line for line in process.stderr)
    m.run(then)
    return m.gpuready.finish(process, code=0)


def test_a_docker_that_answers_slowly_is_asked_once_more(fresh: Hosts) -> None:
    """As on virtual machines a minute after their boot, where ``docker info`` took longer than the probe's limit."""
    m = fresh()
    m.script("/usr/local/bin/docker", _SLOW)
    (m.root / "etc/slow").write_text("5\n")
    brief = {LIMITS: "model.probe.LIMIT=3"}
    _unknown(m.plan(code=1, env=brief), "docker", "docker: no answer within the probe's limit")
    verify = m.verify("--passive", code=3, env=brief)
    assert "docker.nvidia" not in verify.checks("fail"), verify.explain()
    applied = m.apply(env=brief)
    assert f"{m.name}  wait up to {probe.PATIENCE + probe.LONGER} s: docker gave no answer" in applied.stderr
    again = m.apply(env=brief)
    assert (again.host()["outcome"], again.host()["execs"]) == ("ok", 2), again.explain()
    fabric = m.call("fabric", "--tests", "rping", inventory=m.inventories((m, fresh())), code=None, env=brief)
    assert f"{m.name}  wait up to" in fabric.stderr, fabric.explain()
    (m.root / "etc/slow").unlink()
    m.settled()


@pytest.mark.parametrize("unit", ["docker.service", "containerd.service"])
def test_an_engine_that_starts_is_waited_for(unit: str, fresh: Hosts) -> None:
    m = fresh().with_spec(runtimes={"containerd": "auto"}, verify={"level": "effective"})
    _slowly(m, unit)
    for result in (m.plan(code=1), m.verify("--passive", code=3)):
        _unknown(result, unit.removesuffix(".service"), f"{unit} is still starting")
    assert "docker" in _waits(m, f"{unit} is still starting", "touch /run/go").changed()
    m.settled()


def test_a_killed_dockerd_is_waited_for(fresh: Hosts) -> None:
    """Between its end and systemd's next start it has no job, and it may come up before the step, with the old file."""
    m = fresh()
    m.script(_STARTS.format(unit="docker.service"), "[Service]\nRestartSec=600\n")
    m.run("systemctl daemon-reload; kill -KILL $(cat /run/docker.pid)")
    m.run("until systemctl show -p SubState docker.service | grep -q auto-restart; do sleep 0.05; done")
    assert "docker" in _waits(m, "docker.service restarts", "systemctl start docker.service").changed()
    m.settled()


def test_a_dockerd_that_stands_still_for_a_while_is_waited_for(fresh: Hosts) -> None:
    m = fresh()
    m.run("kill -STOP $(cat /run/docker.pid)")
    _unknown(m.plan(code=1), "docker", "docker: no answer within the probe's limit")
    assert "docker" in _waits(m, "docker gave no answer", "kill -CONT $(cat /run/docker.pid)").changed()
    m.settled()
