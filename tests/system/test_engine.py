"""Docker from the distribution on a machine that has none: installed and converged in one apply, and the way back."""

import json

from tests.lab import Machine
from tests.system.host import Hosts

_STATE = r"""
dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' | grep -v ' not-installed$'
find /etc ! -type d ! -name ld.so.cache -printf '%p %y %m %l\n'
"""


def packages_and_settings(machine: Machine) -> set[str]:
    return set(machine.run("sh", stdin=_STATE).stdout.splitlines())


def test_in_one_apply_and_back(fresh: Hosts) -> None:
    m = fresh()
    m.run("DEBIAN_FRONTEND=noninteractive apt-get purge -qy docker.io docker-cli containerd runc iptables", timeout=600)
    m.run("apt-get autoremove -qy --purge && ! command -v dockerd")
    before = packages_and_settings(m)
    wanted = m.with_spec(runtimes={"docker": {"install": "distro"}}, verify={"image": None})

    planned = wanted.plan()
    assert planned.diff("engine") == {"engine.docker": (None, "installed")}, planned.explain()
    assert planned.component("engine")["disruption"] == "recreate"
    assert planned.component("docker")["reason"] == "no Docker yet: engine installs it"
    assert packages_and_settings(m) == before

    done = wanted.apply()
    assert done.changed() >= {"engine", "docker", "toolkit"}, done.explain()
    assert "docker.runtime" in done.checks("pass"), done.explain()
    assert "nvidia" in json.loads(m.run("docker info --format '{{json .Runtimes}}'").stdout)
    wanted.settled()

    m.run("docker volume create keep")
    waits = wanted.remove(code=7)
    assert "stays while it has volumes: keep" in json.dumps(waits.component("engine"))
    m.run("docker info >/dev/null && docker volume rm keep")
    wanted.remove()
    assert packages_and_settings(m) == before
