"""Docker from the distribution on a machine that has none: installed and converged in one apply, and the way back."""

from __future__ import annotations

import json

from tests.lab import Machine
from tests.lab.fixtures import MachineFactory
from tests.system.harness import Gpuready, Inventories

_STATE = r"""
dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' | grep -v ' not-installed$'
find /etc ! -type d ! -name ld.so.cache -printf '%p %y %m %l\n'
"""


def packages_and_settings(machine: Machine) -> set[str]:
    return set(machine.run("sh", stdin=_STATE).stdout.splitlines())


def test_in_one_apply_and_back(machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> None:
    m = machine()
    m.run("DEBIAN_FRONTEND=noninteractive apt-get purge -qy docker.io docker-cli containerd runc iptables", timeout=120)
    m.run("apt-get autoremove -qy --purge && ! command -v dockerd")
    before = packages_and_settings(m)
    where = inventory(m, runtimes={"docker": {"install": "distro"}}, verify={"image": None})

    planned = gpuready("plan", inventory=where)
    assert planned.diff("engine") == {"engine.docker": (None, "installed")}, planned.explain()
    assert planned.component("engine")["disruption"] == "recreate"
    assert planned.component("docker")["reason"] == "no Docker yet: engine installs it"
    assert packages_and_settings(m) == before

    done = gpuready("apply", "--yes", inventory=where)
    assert done.code == 0, done.explain()
    assert done.changed() >= {"engine", "docker", "toolkit"}, done.explain()
    assert "docker.runtime" in done.checks("pass"), done.explain()
    assert "nvidia" in json.loads(m.run("docker info --format '{{json .Runtimes}}'").stdout)
    again = gpuready("apply", "--yes", inventory=where)
    assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 1), again.explain()

    m.run("docker volume create keep")
    waits = gpuready("remove", "--yes", inventory=where)
    assert waits.code == 7, waits.explain()
    assert "stays while it has volumes: keep" in json.dumps(waits.component("engine"))
    m.run("docker info >/dev/null && docker volume rm keep")
    removed = gpuready("remove", "--yes", inventory=where)
    assert removed.code == 0, removed.explain()
    assert packages_and_settings(m) == before
