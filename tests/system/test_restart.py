"""default-shm-size, the one setting that needs a restart: it waits where containers would stop, and only there."""

from __future__ import annotations

import json

import pytest

from gpuready.spec.model import TOOLKIT_VERSION
from tests.lab import DISTROS, Machine
from tests.lab.fixtures import MachineFactory
from tests.system.harness import Gpuready, Inventories, Sessions, listing

WORK = "docker run -d --restart=no --name work busybox:lab sleep 100000"


def pids(machine: Machine) -> tuple[str, str]:
    """dockerd's pid, and that of the container that runs."""
    script = (
        "systemctl show -p MainPID --value docker.service; docker inspect -f '{{.State.Running}} {{.State.Pid}}' work"
    )
    dockerd, work = machine.run(script).stdout.splitlines()
    assert work.startswith("true ")
    return dockerd, work


def shm(machine: Machine) -> int:
    """MiB of /dev/shm in a new container."""
    return int(machine.run("docker run --rm busybox:lab df -m /dev/shm | tail -n 1").stdout.split()[1])


@pytest.mark.parametrize("distro", DISTROS)
def test_a_restart_waits_while_containers_would_stop(
    distro: str, machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    node = machine(distro)
    node.run("""printf '{"live-restore": false}' >/etc/docker/daemon.json && systemctl reload docker""")
    node.run(WORK)
    before = pids(node)
    where = inventory(node, runtimes={"docker": {"shm_size": "256m"}})

    # The user's own false is respected, so a restart would stop the container: that alone waits.
    first = gpuready("apply", "--yes", inventory=where)
    assert (first.code, first.host()["outcome"]) == (7, "pending"), first.explain()
    assert first.changed() == {"repository", "toolkit", "docker"}
    assert "work" in first.component("docker")["waits"]
    assert pids(node) == before
    assert json.loads(node.run("cat /etc/docker/daemon.json").stdout)["default-shm-size"] == "256m"
    told = node.run("docker info -f '{{json .Runtimes}} {{.LiveRestoreEnabled}}'; nvidia-ctk --version").stdout
    assert '"nvidia"' in told and "} false" in told and TOOLKIT_VERSION in told

    # Again: it still waits, and nothing else happens.
    count, untouched = Sessions(node), listing(node)
    second = gpuready("apply", "--yes", inventory=where)
    assert (second.code, second.host()["execs"], second.changed()) == (7, 1, set()), second.explain()
    assert set(second.diff("docker")) == {"docker.running.default-shm-size"}
    assert "work" in second.component("docker")["waits"]
    assert count.count() == 1
    assert untouched ^ listing(node) == frozenset()
    assert pids(node) == before

    # The work is over: one restart, and the new size holds.
    node.run("docker rm -f work")
    third = gpuready("apply", "--yes", inventory=where)
    assert (third.code, third.changed()) == (0, {"docker"}), third.explain()
    assert shm(node) == 256
    assert gpuready("apply", "--yes", inventory=where).host()["execs"] == 1

    # A reload afterwards makes the file younger than the engine: that it is converged is still known.
    node.run(WORK)
    before = pids(node)
    reloaded = inventory(node, runtimes={"docker": {"shm_size": "256m", "default_runtime": True}})
    assert gpuready("apply", "--yes", inventory=reloaded).code == 0
    again = gpuready("apply", "--yes", inventory=reloaded)
    assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 1), again.explain()
    assert pids(node) == before

    # With live-restore containers outlive a restart, so nothing has to wait but whoever did not consent.
    surviving = inventory(node, runtimes={"docker": {"shm_size": "192m", "live_restore": True}})
    limited = gpuready("apply", "--yes", "--allow-disruption", "recreate", inventory=surviving)
    assert (limited.code, limited.host()["outcome"]) == (7, "pending"), limited.explain()
    assert node.run("docker info -f '{{.LiveRestoreEnabled}}'").stdout == "true\n"
    assert pids(node) == before
    done = gpuready("apply", "--yes", inventory=surviving)
    assert (done.code, done.changed()) == (0, {"docker"}), done.explain()
    after = pids(node)
    assert after[0] != before[0] and after[1] == before[1]
    assert shm(node) == 192
    again = gpuready("apply", "--yes", inventory=surviving)
    assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 1), again.explain()
