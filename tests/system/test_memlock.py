"""Locked memory where it is needed: logins, new containers, Slurm's jobs; nothing is restarted for it."""

import re
from pathlib import Path

import pytest

from gpuready.components.memlock.component import FILES, drop_in
from tests.lab import Machine
from tests.system.faults import footprint, problem
from tests.system.host import Host, Hosts

LIMIT = "sh -c 'ulimit -l'"
NEW = f"docker run --rm busybox:lab {LIMIT}"
#: No Slurm is installed: the unit's name, its process and what that starts are what counts.
SLURMD = """[Service]
ExecStart=/bin/sh -c 'while :; do sh -c "ulimit -l" >/run/job.new; mv /run/job.new /run/job; sleep 1; done'
"""
PIDS = "for u in containerd docker slurmd; do systemctl show -p MainPID --value $u; done; "
PIDS += "docker inspect -f '{{.State.Pid}}' before"


#: A machine's root may do what the host's may, and in a container that is often not CAP_SYS_RESOURCE.
_CAPABILITIES = re.findall(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text("ascii"), re.M)[0]
MAY = bool(int(_CAPABILITIES, 16) >> 24 & 1)
raising = pytest.mark.skipif(not MAY, reason="root may not raise limits on this host (no CAP_SYS_RESOURCE)")


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    machine = shared()
    machine.run("cat >/etc/systemd/system/slurmd.service", stdin=SLURMD)
    machine.run("systemctl daemon-reload && systemctl start slurmd")
    machine.run("docker run -d --name before busybox:lab sleep 1000000")
    return machine


def limits(machine: Machine) -> dict[str, str]:
    """What a new container, new logins, and a job of slurmd may lock."""
    return {
        "container": machine.run(NEW).stdout.strip(),
        "user": machine.run("ulimit -l", user="gpu").stdout.strip(),
        "sudo": machine.run(f"sudo -n {LIMIT}", user="gpu").stdout.strip(),
        "root": machine.run("ulimit -l").stdout.strip(),
        "job": machine.run("rm -f /run/job; until [ -e /run/job ]; do sleep 0.1; done; cat /run/job").stdout.strip(),
    }


@pytest.mark.skipif(MAY, reason="root may raise limits on this host")
def test_a_root_that_may_not_raise_limits(node: Host) -> None:
    before = footprint(node)
    result = node.apply("--only", "memlock", memlock="unlimited", code=1)
    assert "CAP_SYS_RESOURCE is missing" in problem(result)
    assert footprint(node) == before


@pytest.mark.promise
@raising
def test_unlimited_everywhere_without_a_restart(node: Host) -> None:
    before, pids = limits(node), node.run(PIDS).stdout
    assert "unlimited" not in before.values(), before
    result = node.mends(memlock="unlimited")
    assert "memlock" in result.changed(), result.explain()
    assert result.checks("pass") >= {"memlock.config", "memlock.login", "memlock.container"}, result.explain()
    assert limits(node) == dict.fromkeys(before, "unlimited")
    assert node.run(PIDS).stdout == pids
    # What is loaded holds for the next start, too.
    node.run("systemctl restart containerd docker slurmd")
    assert limits(node) == dict.fromkeys(before, "unlimited")
    node.settled(memlock="unlimited")


@raising
def test_no_daemon_reload_beside_gpu_containers(node: Host) -> None:
    """The drop-in waits on disk, new containers have the limit all the same."""
    wanted = node.with_spec(memlock="unlimited")
    node.run(f"rm {drop_in('containerd')} && systemctl daemon-reload && systemctl restart containerd")
    node.run("docker run -d --name train --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=void busybox:lab sleep 1000000")
    result = wanted.apply(code=7)
    assert "train (busybox:lab)" in result.component("memlock")["pending_reason"], result.explain()
    assert node.run("systemctl show -p NeedDaemonReload --value containerd").stdout.strip() == "yes"
    assert node.run(NEW).stdout.strip() == "unlimited"
    node.run("docker rm -f train")
    result = wanted.mends()
    assert set(result.diff("memlock")) == {"memlock.containerd.loaded"}


@raising
def test_remove_gives_the_limits_back(node: Host) -> None:
    pids = node.run(PIDS).stdout
    result = node.remove("--only", "memlock", memlock="unlimited")
    assert result.changed() == {"memlock"}, result.explain()
    assert node.run(f"ls -d {' '.join(FILES)} /etc/systemd/system/*.service.d", check=False).stdout == ""
    assert "unlimited" not in limits(node).values()
    assert node.run(PIDS).stdout == pids
