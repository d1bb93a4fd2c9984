"""The way back: after ``gpuready remove`` a machine is what it was before ``gpuready apply``, byte for byte."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuready.tools.status.record import PATH
from tests.lab import DISTROS, Lab, Machine
from tests.lab.fixtures import MachineFactory
from tests.system.harness import Gpuready, Inventories, Result

LIBRARIES = "/usr/local/nvidia/lib64"
OLD_LIST = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
USERS = {"log-opts": {"max-size": "10m"}, "max-concurrent-uploads": 7, "labels": ["city=zürich"]}
#: Where packages and gpuready leave files. What ldconfig and apt rebuild by themselves is compared by what it says.
_PLACES = (
    "/etc /usr/bin /usr/lib/systemd /var/lib/gpuready /var/lib/dpkg/info "
    "! -type d ! -path /etc/ld.so.cache ! -path '*/gpuready/tx/*'"
)
_FILES = rf"""
find {_PLACES} -printf '%p %y %m %u %l\n' 2>/dev/null
find {_PLACES} -type f -print0 2>/dev/null | xargs -0 sha256sum | sed -E 's/^(\S+)  (.*)/content:\2 \1/'
"""
_SITE_PACKAGE = r"""
cd "$(mktemp -d)" && mkdir -p site/DEBIAN
cat >site/DEBIAN/control <<'END'
Package: site-gpu
Version: 1
Architecture: all
Maintainer: a <a@localhost>
Depends: nvidia-container-toolkit
Description: of a site
END
dpkg-deb --build site site.deb && dpkg -i site.deb
"""
# Docker 20.10 forgets its own names for runc at every reload, whoever asks for it.
_DOCKER = [".DefaultRuntime", ".LiveRestoreEnabled", ".Labels", ".Name"]
_SAYS = {
    "packages": "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' | grep ' installed$'",
    "holds": "apt-mark showhold",
    "linker": "ldconfig -p | grep -E 'libcuda|libnvidia' || true",
    "docker": "docker info --format '" + " ".join(f"{{{{json {field}}}}}" for field in _DOCKER) + "'",
    "runtimes": "docker info --format '{{range $k, $v := .Runtimes}}{{$k}}={{$v}}\n{{end}}' | grep -v '^io.containerd'",
    "work": "docker inspect -f '{{.State.Pid}} {{.State.StartedAt}}' work",
    "engine": "systemctl show -p MainPID --value docker.service",
}


def whole(machine: Machine) -> dict[str, str]:
    """All that apply touches, as the machine itself tells it."""
    told = {name: machine.run(script).stdout for name, script in _SAYS.items()}
    return told | {line.split(" ", 1)[0]: line for line in machine.run(_FILES, timeout=60).stdout.splitlines()}


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What is not the same."""
    names = sorted(before.keys() | after.keys())
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def used(machine: Machine, lab: Lab, *, url: str) -> None:
    """A machine that has a life of its own: libraries, an old list, Docker settings, a container."""
    machine.put(lab.driver_libraries(machine.distro), LIBRARIES)
    (machine.root / OLD_LIST[1:]).write_text(f"# by hand\ndeb [trusted=yes] {url} /\n")
    (machine.root / "etc/docker").mkdir(exist_ok=True)
    (machine.root / "etc/docker/daemon.json").write_text(json.dumps(USERS, ensure_ascii=False, indent=1), "utf-8")
    (machine.root / "etc/docker/daemon.json").chmod(0o600)
    machine.run("systemctl restart docker.service && docker run -d --name work busybox:lab sleep 100000")


@pytest.mark.promise
@pytest.mark.parametrize("distro", DISTROS)
def test_a_node_is_what_it_was(
    distro: str, machine: MachineFactory, lab: Lab, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = machine(distro)
    engines = {"containerd": "auto", "docker": {"default_runtime": True, "shm_size": "1g"}}
    where = inventory(m, ldso=[LIBRARIES], runtimes=engines)
    used(m, lab, url=_url(where))
    before = whole(m)

    applied = gpuready("apply", "--yes", inventory=where)
    assert applied.code == 0, applied.explain()
    converged = whole(m)
    assert {"docker", "holds", "packages", "linker", OLD_LIST} <= differences(before, converged).keys()
    recorded(gpuready, where, applied)
    assert differences(converged, whole(m)) == {}

    shown = gpuready("remove", "--dry-run", inventory=where)
    assert shown.code == 0 and shown.host()["outcome"] == "would_change", shown.explain()
    assert differences(converged, whole(m)) == {}
    removed = gpuready("remove", "--yes", inventory=where)
    assert removed.code == 0, removed.explain()
    assert removed.changed() >= {"containerd", "docker", "ldso", "toolkit", "repository"}
    assert differences(before, whole(m)) == {}
    assert status(gpuready, where)["record"] is None

    again = gpuready("remove", "--yes", inventory=where)
    assert (again.code, again.host()["outcome"], again.host()["execs"]) == (0, "ok", 1), again.explain()
    assert gpuready("apply", "--yes", inventory=where).code == 0
    assert differences(converged, whole(m)).keys() <= {"/var/lib/gpuready/docker.effective", f"content:{PATH}"}


def recorded(gpuready: Gpuready, where: Path, applied: Result) -> None:
    """The node's record tells what that apply did, and status what changed since; each with one exec, reading only."""
    now = status(gpuready, where)
    assert (now["outcome"], now["release"], now["spec_changed"], now["rebooted"]) == ("converged", "same", False, False)
    assert (now["differs"], now["blocked"], now["lock"], now["step"]) == ([], [], "", "")
    assert 0 <= now["age"] < 3600 and "@" in now["record"]["by"]
    assert {name for name, each in now["record"]["components"].items() if each == "changed"} == applied.changed()
    other = status(gpuready, where, "-e", "reconverge.on_driver_change=off")
    assert (other["spec_changed"], other["record"]) == (True, now["record"])


def status(gpuready: Gpuready, where: Path, *more: str) -> dict[str, Any]:
    """The status of the only host."""
    result = gpuready("status", *more, inventory=where)
    assert (result.code, result.host()["outcome"], result.host()["execs"]) == (0, "ok", 1), result.explain()
    found: dict[str, Any] = result.host()["status"]
    return found


def test_what_was_there_before_or_was_changed_since_stays(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = machine()
    where = inventory(m)
    url = _url(where)
    m.run("apt-get update -q")
    old = m.root / OLD_LIST[1:]
    old.write_text(f"deb [trusted=yes] {url} /\ndeb [trusted=yes] http://other.invalid/deb /\n")
    assert gpuready("apply", "--yes", inventory=where).code == 0
    old.write_text(old.read_text() + "# mine\n")
    daemon = m.root / "etc/docker/daemon.json"
    daemon.write_text(json.dumps(json.loads(daemon.read_text()) | {"debug": True}))
    m.run("systemctl reload docker.service && docker run -d --name work --runtime=nvidia busybox:lab sleep 100000")

    # A container's shim calls its runtime to stop it: so neither goes while such a container runs.
    waits = gpuready("remove", "--yes", inventory=where)
    assert waits.code == 7, waits.explain()
    assert "work" in json.dumps(waits.component("docker")) + json.dumps(waits.component("toolkit")), waits.explain()
    m.run("nvidia-ctk --version && docker rm -f work")

    # Docker's file and memory name what the packages bring: they do not go alone, nor with what others put in.
    alone = gpuready("remove", "--yes", "--only", "toolkit", inventory=where)
    assert alone.code == 7 and "docker (not selected)" in alone.component("toolkit")["waits"], alone.explain()
    m.run(_SITE_PACKAGE)
    config = m.root / "etc/nvidia-container-runtime/config.toml"
    config.write_text(config.read_text() + "# mine\n")
    dependent = gpuready("remove", "--yes", inventory=where)
    assert dependent.code == 1, dependent.explain()
    assert "apt would purge site-gpu as well" in dependent.component("toolkit")["error"]["message"]
    m.run("nvidia-ctk --version && dpkg -r site-gpu")

    removed = gpuready("remove", "--yes", inventory=where)
    assert removed.code == 0, removed.explain()
    assert json.loads(daemon.read_text()) == {"debug": True}
    assert old.read_text().splitlines()[-1] == "# mine"
    assert config.read_text().endswith("# mine\n")
    left = m.run("find /var/lib/gpuready -type f").stdout.split()
    assert left == [f"/var/lib/gpuready/left{OLD_LIST}.original"]  # of the file that was edited since
    assert "trusted=yes" in m.run(f"cat {left[0]}").stdout
    m.run("docker run --rm busybox:lab true")


#: A container that ends between `docker ps` and `docker inspect`, at the first inspection only.
_RACE = """#!/bin/sh
if [ "$1" = inspect ] && [ -e /run/race ]; then rm /run/race; /usr/bin/docker rm -f passing >/dev/null; fi
exec /usr/bin/docker "$@"
"""


def test_a_way_back_that_failed_is_gone_again(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = machine()
    where = inventory(m)
    daemon = m.root / "etc/docker/daemon.json"
    daemon.parent.mkdir(exist_ok=True)
    users = {"runtimes": {"nvidia": {"path": "/usr/local/bin/own"}}, "labels": ["a=b"]}
    daemon.write_text(json.dumps(users))
    m.run("ln -s /usr/bin/runc /usr/local/bin/own && systemctl restart docker.service")
    m.run("docker run -d --name work busybox:lab sleep 100000")
    before = whole(m)
    assert gpuready("apply", "--yes", inventory=where).code == 0
    converged = daemon.read_text()
    toolkit = "nvidia-ctk --version && docker run --rm --runtime=nvidia busybox:lab true"

    def fails(edited: str, why: str) -> None:
        """Remove says why not, and all is still there."""
        daemon.write_text(edited)
        result = gpuready("remove", "--yes", inventory=where)
        assert result.code == 1, result.explain()
        assert re.search(why, result.component("docker")["error"]["message"]), result.explain()
        assert daemon.read_text() == edited
        m.run(toolkit)

    # A file that passes validation and that only the engine itself finds wrong, at the reload.
    refused = json.dumps(json.loads(converged) | {"registry-mirrors": ["ftp://mirror"]})
    fails(refused, r"docker did not take over .*; /etc/docker/daemon.json is what it was, docker runs on")
    fails(converged.replace("\n}", ",\n}"), r"/etc/docker/daemon.json: line \d+, column \d+.*fix it by hand")
    daemon.write_text(converged)
    m.run("pid=$(cat /run/docker.pid); kill -STOP $pid")
    blind = gpuready("remove", "--yes", inventory=where)
    m.run("kill -CONT $(cat /run/docker.pid)")
    assert blind.code == 1 and "docker.running" in blind.component("docker")["error"]["message"], blind.explain()
    m.run(toolkit)

    race = m.root / "usr/local/sbin/docker"
    race.write_text(_RACE)
    race.chmod(0o755)
    m.run("docker run -d --name passing busybox:lab sleep 100000 && touch /run/race")
    removed = gpuready("remove", "--yes", inventory=where)
    race.unlink()
    assert removed.code == 0 and removed.changed() >= {"docker", "toolkit"}, removed.explain()
    assert not (m.root / "run/race").exists()
    m.run("rm -f /var/lib/gpuready/tx/*")
    assert differences(before, whole(m)) == {}


def test_a_node_that_gpuready_never_saw_is_left_alone(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = module_machine()
    before = whole_files(m)
    result = gpuready("remove", "--yes", inventory=inventory(m))
    assert (result.code, result.host()["outcome"], result.host()["execs"]) == (0, "ok", 1), result.explain()
    assert whole_files(m) == before


def whole_files(machine: Machine) -> str:
    """Only the files."""
    return machine.run(_FILES, timeout=60).stdout


def _url(where: Path) -> str:
    """The repository that the inventory names."""
    words = where.read_text("utf-8").split()
    return words[words.index("url:") + 1]
