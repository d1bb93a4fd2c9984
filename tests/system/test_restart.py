"""The one restart that Docker is ever given, for features.cdi: it waits where containers would stop, and only there.

default-shm-size, which its reference does not list among what a reload takes over, is taken over by one.
"""

from __future__ import annotations

import json

import pytest

from gpuready.spec.model import TOOLKIT_VERSION
from tests.lab import DISTROS, Machine
from tests.lab.fixtures import MachineFactory
from tests.system.harness import Gpuready, Inventories, Sessions, listing

WORK = "docker run -d --restart=no --name work busybox:lab sleep 100000"
CDI = {"docker": {"cdi": True}}


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


def devices(machine: Machine) -> list[str]:
    """Where the running engine looks for CDI devices."""
    found: list[str] = json.loads(machine.run("docker info -f '{{json .CDISpecDirs}}'").stdout) or []
    return found


@pytest.mark.parametrize("distro", DISTROS)
def test_a_size_needs_only_a_reload(
    distro: str, module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    node = module_machine(distro)
    node.run("""printf '{"live-restore": false}' >/etc/docker/daemon.json && systemctl reload docker""")
    node.run(WORK)
    before = pids(node)
    where = inventory(node, runtimes={"docker": {"shm_size": "256m"}})
    first = gpuready("apply", "--yes", inventory=where)
    assert (first.code, first.changed()) == (0, {"repository", "toolkit", "docker"}), first.explain()
    assert first.component("docker")["disruption"] == "reload"
    assert (shm(node), pids(node)) == (256, before)
    told = node.run("docker info -f '{{json .Runtimes}} {{.LiveRestoreEnabled}}'; nvidia-ctk --version").stdout
    assert '"nvidia"' in told and "} false" in told and TOOLKIT_VERSION in told

    # That it is converged is known although the file is younger than the engine's start: one exec, nothing written.
    count, untouched = Sessions(node), listing(node)
    again = gpuready("apply", "--yes", inventory=where)
    assert (again.code, again.host()["outcome"], count.count()) == (0, "ok", 1), again.explain()
    assert untouched ^ listing(node) == frozenset()

    # A user's own edit that nobody loaded is a difference, and mended by a reload.
    node.run("sed -i s/256m/192m/ /etc/docker/daemon.json")
    edited = inventory(node, runtimes={"docker": {"shm_size": "192m"}})
    plan = gpuready("plan", inventory=edited)
    assert set(plan.diff("docker")) == {"docker.running.default-shm-size"}, plan.explain()
    assert gpuready("apply", "--yes", inventory=edited).code == 0
    assert (shm(node), pids(node)) == (192, before)
    assert gpuready("apply", "--yes", inventory=edited).host()["execs"] == 1


def test_a_restart_waits_while_containers_would_stop(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    node = module_machine("debian13")
    before = pids(node)
    assert devices(node) == []
    text = json.loads(node.run("cat /etc/docker/daemon.json").stdout)
    node.run("cat >/etc/docker/daemon.json", stdin=json.dumps(text | {"features": {"containerd-snapshotter": False}}))

    # The user's own false is respected, so a restart would stop the container: that alone waits.
    both = inventory(node, runtimes={"docker": {"cdi": True, "shm_size": "128m"}})
    first = gpuready("apply", "--yes", inventory=both)
    assert (first.code, first.host()["outcome"]) == (7, "pending"), first.explain()
    assert first.changed() == {"docker"}
    assert "work" in first.component("docker")["waits"]
    assert (shm(node), devices(node), pids(node)) == (128, [], before)
    written = json.loads(node.run("cat /etc/docker/daemon.json").stdout)
    assert written["features"] == {"containerd-snapshotter": False, "cdi": True}

    # Again: it still waits, and nothing else happens.
    where = inventory(node, runtimes=CDI)
    count, untouched = Sessions(node), listing(node)
    second = gpuready("apply", "--yes", inventory=where)
    assert (second.code, second.host()["execs"], second.changed()) == (7, 1, set()), second.explain()
    assert set(second.diff("docker")) == {"docker.running.features.cdi"}
    assert "work" in second.component("docker")["waits"]
    assert count.count() == 1
    assert untouched ^ listing(node) == frozenset()
    assert pids(node) == before

    # The work is over, and still nobody permitted the restart.
    node.run("docker rm -f work")
    never = gpuready("apply", "--yes", inventory=inventory(node, runtimes=CDI, maintenance={"restart": "never"}))
    assert (never.code, devices(node)) == (7, []), never.explain()
    assert "maintenance.restart is never" in never.component("docker")["waits"]

    # With consent: one restart, and it holds.
    third = gpuready("apply", "--yes", inventory=where)
    assert (third.code, third.changed()) == (0, {"docker"}), third.explain()
    assert devices(node) == ["/etc/cdi", "/var/run/cdi"]
    assert shm(node) == 128
    assert gpuready("apply", "--yes", inventory=where).host()["execs"] == 1


def test_containers_outlive_a_restart_with_live_restore(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    node = module_machine("debian13")
    node.run(f"docker rm -f work; printf '{{}}' >/etc/docker/daemon.json; systemctl restart docker; {WORK}")
    before = pids(node)
    where = inventory(node, runtimes=CDI)

    # Nothing has to wait but whoever did not consent; the rest is done, live-restore first of all.
    limited = gpuready("apply", "--yes", "--allow-disruption", "recreate", inventory=where)
    assert (limited.code, limited.host()["outcome"]) == (7, "pending"), limited.explain()
    assert node.run("docker info -f '{{.LiveRestoreEnabled}}'").stdout == "true\n"
    assert pids(node) == before
    node.run(f"docker rm -f work; printf '{{}}' >/etc/docker/daemon.json; systemctl restart docker; {WORK}")
    before = pids(node)

    # All of it in one step: the reload turns live-restore on, then the engine is restarted under the container.
    done = gpuready("apply", "--yes", inventory=where)
    assert (done.code, done.changed()) == (0, {"docker"}), done.explain()
    after = pids(node)
    assert after[0] != before[0] and after[1] == before[1]
    assert devices(node) == ["/etc/cdi", "/var/run/cdi"]
    again = gpuready("apply", "--yes", inventory=where)
    assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 1), again.explain()

    # A unit whose containers systemd would end with it is no such case: that is seen on the node, just before.
    node.run(
        "mkdir -p /etc/systemd/system/docker.service.d; cd /etc/systemd/system/docker.service.d\n"
        "printf '[Service]\\nKillMode=mixed\\n' >kill.conf; systemctl daemon-reload"
    )
    back = gpuready("apply", "--yes", inventory=inventory(node, runtimes={"docker": {"cdi": False}}))
    assert (back.code, back.host()["outcome"]) == (7, "pending"), back.explain()
    assert "work" in back.component("docker")["waits"]
    assert pids(node) == after
    node.run("rm -r /etc/systemd/system/docker.service.d; systemctl daemon-reload")
    assert gpuready("apply", "--yes", inventory=inventory(node, runtimes={"docker": {"cdi": False}})).code == 0
    assert (devices(node), pids(node)[1]) == ([], before[1])


def test_20_10_has_no_cdi(module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> None:
    node = module_machine("debian12")
    plan = gpuready("plan", inventory=inventory(node, runtimes=CDI))
    assert plan.code == 1
    assert "needs Docker 25.0 or newer, this one is 20.10" in plan.component("docker")["error"]["message"]
