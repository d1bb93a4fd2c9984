"""The one restart that Docker is ever given, for features.cdi: it waits where containers would stop, and only there.

default-shm-size, which its reference does not list among what a reload takes over, is taken over by one.
"""

import json

import pytest

from gpuready.model.spec import TOOLKIT_VERSION
from tests.lab import DISTROS, Machine
from tests.system.host import Hosts

WORK = "docker run -d --restart=no --name work busybox:lab sleep 100000"
CDI = {"docker": {"cdi": True}}


def shm(machine: Machine) -> int:
    """MiB of /dev/shm in a new container."""
    return int(machine.run("docker run --rm busybox:lab df -m /dev/shm | tail -n 1").stdout.split()[1])


def devices(machine: Machine) -> list[str]:
    """Where the running engine looks for CDI devices."""
    found: list[str] = json.loads(machine.run("docker info -f '{{json .CDISpecDirs}}'").stdout) or []
    return found


@pytest.mark.parametrize("distro", DISTROS)
def test_a_size_needs_only_a_reload(distro: str, shared: Hosts) -> None:
    node = shared(distro)
    node.run("""printf '{"live-restore": false}' >/etc/docker/daemon.json && systemctl reload docker""")
    node.run(WORK)
    before = node.pids()
    wanted = node.with_spec(runtimes={"docker": {"shm_size": "256m"}})
    first = wanted.apply()
    assert first.changed() == {"repository", "toolkit", "docker"}, first.explain()
    assert first.component("docker")["disruption"] == "reload"
    assert (shm(node), node.pids()) == (256, before)
    told = node.run("docker info -f '{{json .Runtimes}} {{.LiveRestoreEnabled}}'; nvidia-ctk --version").stdout
    assert '"nvidia"' in told and "} false" in told and TOOLKIT_VERSION in told

    # That it is converged is known although the file is younger than the engine's start: one exec, nothing written.
    with node.untouched(sessions=1):
        wanted.settled()

    # A user's own edit that nobody loaded is a difference, and mended by a reload.
    node.run("sed -i s/256m/192m/ /etc/docker/daemon.json")
    edited = node.with_spec(runtimes={"docker": {"shm_size": "192m"}})
    assert set(edited.plan().diff("docker")) == {"docker.running.default-shm-size"}
    edited.apply()
    assert (shm(node), node.pids()) == (192, before)
    edited.settled()


def test_a_restart_waits_while_containers_would_stop(shared: Hosts) -> None:
    node = shared("debian13")
    before = node.pids()
    assert devices(node) == []
    text = json.loads(node.run("cat /etc/docker/daemon.json").stdout)
    node.run("cat >/etc/docker/daemon.json", stdin=json.dumps(text | {"features": {"containerd-snapshotter": False}}))

    # The user's own false is respected, so a restart would stop the container: that alone waits.
    both = node.with_spec(runtimes={"docker": {"cdi": True, "shm_size": "128m"}})
    first = both.apply(code=7)
    assert first.changed() == {"docker"}
    assert "work" in first.component("docker")["pending_reason"]
    assert (shm(node), devices(node), node.pids()) == (128, [], before)
    written = json.loads(node.run("cat /etc/docker/daemon.json").stdout)
    assert written["features"] == {"containerd-snapshotter": False, "cdi": True}

    # Again: it still waits, and nothing else happens.
    wanted = node.with_spec(runtimes=CDI)
    with node.untouched(sessions=1):
        second = wanted.apply(code=7)
    assert (second.host()["execs"], second.changed()) == (1, set()), second.explain()
    assert set(second.diff("docker")) == {"docker.running.features.cdi"}
    assert "work" in second.component("docker")["pending_reason"]
    assert node.pids() == before

    # The work is over, and still nobody permitted the restart.
    node.run("docker rm -f work")
    never = node.apply(runtimes=CDI, maintenance={"restart": "never"}, code=7)
    assert devices(node) == [], never.explain()
    assert "maintenance.restart is never" in never.component("docker")["pending_reason"]

    # With consent: one restart, and it holds.
    assert wanted.apply().changed() == {"docker"}
    assert devices(node) == ["/etc/cdi", "/var/run/cdi"]
    assert shm(node) == 128
    wanted.settled()


def test_containers_outlive_a_restart_with_live_restore(shared: Hosts) -> None:
    node = shared("debian13")
    node.run(f"docker rm -f work; printf '{{}}' >/etc/docker/daemon.json; systemctl restart docker; {WORK}")
    before = node.pids()
    wanted = node.with_spec(runtimes=CDI)

    # Nothing has to wait but whoever did not consent; the rest is done, live-restore first of all.
    wanted.apply("--allow-disruption", "recreate", code=7)
    assert node.run("docker info -f '{{.LiveRestoreEnabled}}'").stdout == "true\n"
    assert node.pids() == before
    node.run(f"docker rm -f work; printf '{{}}' >/etc/docker/daemon.json; systemctl restart docker; {WORK}")
    before = node.pids()

    # All of it in one step: the reload turns live-restore on, then the engine is restarted under the container.
    assert wanted.apply().changed() == {"docker"}
    after = node.pids()
    assert after[0] == before[0] and after[1] != before[1]
    assert devices(node) == ["/etc/cdi", "/var/run/cdi"]
    wanted.settled()

    # A unit whose containers systemd would end with it is no such case: that is seen on the node, just before.
    node.run(
        "mkdir -p /etc/systemd/system/docker.service.d; cd /etc/systemd/system/docker.service.d\n"
        "printf '[Service]\\nKillMode=mixed\\n' >kill.conf; systemctl daemon-reload"
    )
    back = node.apply(runtimes={"docker": {"cdi": False}}, code=7)
    assert "work" in back.component("docker")["pending_reason"]
    assert node.pids() == after
    node.run("rm -r /etc/systemd/system/docker.service.d; systemctl daemon-reload")
    node.apply(runtimes={"docker": {"cdi": False}})
    assert (devices(node), node.pids()[0]) == ([], before[0])
