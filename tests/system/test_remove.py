"""The way back: after ``gpuready remove`` a machine is what it was before ``gpuready apply``, byte for byte."""

import json
import re
from typing import Any

import pytest

from gpuready.contract.node_record import PATH
from tests.lab import DISTROS, Machine, repository
from tests.system.harness import Result
from tests.system.host import LIBRARIES, Host, Hosts
from tests.system.warm import LIMITS

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
    return told | {line.split(" ", 1)[0]: line for line in machine.run(_FILES).stdout.splitlines()}


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What is not the same."""
    names = sorted(before.keys() | after.keys())
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def used(machine: Host) -> None:
    """A machine that has a life of its own: libraries, an old list, Docker settings, a container."""
    machine.put_libraries()
    (machine.root / OLD_LIST[1:]).write_text(f"# by hand\ndeb [trusted=yes] {_url()} /\n")
    (machine.root / "etc/docker").mkdir(exist_ok=True)
    (machine.root / "etc/docker/daemon.json").write_text(json.dumps(USERS, ensure_ascii=False, indent=1), "utf-8")
    (machine.root / "etc/docker/daemon.json").chmod(0o600)
    machine.run("systemctl restart docker.service && docker run -d --name work busybox:lab sleep 100000")


@pytest.mark.promise
@pytest.mark.parametrize("distro", DISTROS)
def test_a_node_is_what_it_was(distro: str, fresh: Hosts) -> None:
    engines = {"containerd": "auto", "docker": {"default_runtime": True, "shm_size": "1g"}}
    m = fresh(distro).with_spec(ldso=[LIBRARIES], runtimes=engines)
    used(m)
    before = whole(m)

    applied = m.apply()
    converged = whole(m)
    assert {"docker", "holds", "packages", "linker", OLD_LIST} <= differences(before, converged).keys()
    recorded(m, applied)
    assert differences(converged, whole(m)) == {}

    shown = m.remove("--dry-run")
    assert shown.host()["outcome"] == "would_change", shown.explain()
    assert differences(converged, whole(m)) == {}
    removed = m.remove()
    assert removed.changed() >= {"containerd", "docker", "ldso", "toolkit", "repository"}
    assert differences(before, whole(m)) == {}
    assert status(m)["record"] is None

    again = m.remove()
    assert (again.host()["outcome"], again.host()["execs"]) == ("ok", 1), again.explain()
    m.apply()
    assert differences(converged, whole(m)).keys() <= {"/var/lib/gpuready/docker.effective", f"content:{PATH}"}


def recorded(node: Host, applied: Result) -> None:
    """The node's record tells what that apply did, and status what changed since; each with one exec, reading only."""
    now = status(node)
    assert (now["outcome"], now["release"], now["spec_changed"], now["rebooted"]) == ("converged", "same", False, False)
    assert (now["differs"], now["blocked"], now["lock"], now["step"]) == ([], [], "", "")
    assert 0 <= now["age"] < 3600 and "@" in now["record"]["by"]
    assert {name for name, each in now["record"]["components"].items() if each == "changed"} == applied.changed()
    other = status(node, "-e", "reconverge.on_driver_change=off")
    assert (other["spec_changed"], other["record"]) == (True, now["record"])


def status(node: Host, *more: str) -> dict[str, Any]:
    """What the node's record and its state now come to."""
    result = node.call("status", *more)
    found: dict[str, Any] = result.host()["status"]
    outcome = "would_change" if found["differs"] or found["blocked"] else "ok"
    assert (result.host()["outcome"], result.host()["execs"]) == (outcome, 1), result.explain()
    return found


def test_what_was_there_before_or_was_changed_since_stays(fresh: Hosts) -> None:
    m = fresh()
    m.run("apt-get update -q")
    old = m.root / OLD_LIST[1:]
    old.write_text(f"deb [trusted=yes] {_url()} /\ndeb [trusted=yes] http://other.invalid/deb /\n")
    m.apply()
    old.write_text(old.read_text() + "# mine\n")
    daemon = m.root / "etc/docker/daemon.json"
    daemon.write_text(json.dumps(json.loads(daemon.read_text()) | {"debug": True}))
    m.run("systemctl reload docker.service && docker run -d --name work --runtime=nvidia busybox:lab sleep 100000")

    # A container's shim calls its runtime to stop it: so neither goes while such a container runs.
    waits = m.remove(code=7)
    assert "work" in json.dumps(waits.component("docker")) + json.dumps(waits.component("toolkit")), waits.explain()
    m.run("nvidia-ctk --version && docker rm -f work")

    # Docker's file and memory name what the packages bring: they do not go alone, nor with what others put in.
    alone = m.remove("--only", "toolkit", code=7)
    assert "docker (not selected)" in alone.component("toolkit")["pending_reason"], alone.explain()
    m.run(_SITE_PACKAGE)
    config = m.root / "etc/nvidia-container-runtime/config.toml"
    config.write_text(config.read_text() + "# mine\n")
    dependent = m.remove(code=1)
    assert "apt would purge site-gpu as well" in dependent.component("toolkit")["error"]["message"]
    m.run("nvidia-ctk --version && dpkg -r site-gpu")

    m.remove()
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


def test_a_way_back_that_failed_is_gone_again(fresh: Hosts) -> None:
    m = fresh()
    daemon = m.root / "etc/docker/daemon.json"
    daemon.parent.mkdir(exist_ok=True)
    users = {"runtimes": {"nvidia": {"path": "/usr/local/bin/own"}}, "labels": ["a=b"]}
    daemon.write_text(json.dumps(users))
    m.run("ln -s /usr/bin/runc /usr/local/bin/own && systemctl restart docker.service")
    m.run("docker run -d --name work busybox:lab sleep 100000")
    before = whole(m)
    m.apply()
    converged = daemon.read_text()
    toolkit = "nvidia-ctk --version && docker run --rm --runtime=nvidia busybox:lab true"

    def fails(edited: str, why: str) -> None:
        """Remove says why not, and all is still there."""
        daemon.write_text(edited)
        result = m.remove(code=1)
        assert re.search(why, result.component("docker")["error"]["message"]), result.explain()
        assert daemon.read_text() == edited
        m.run(toolkit)

    # A file that passes validation and that only the engine itself finds wrong, at the reload.
    refused = json.dumps(json.loads(converged) | {"registry-mirrors": ["ftp://mirror"]})
    fails(refused, r"Docker rejected the new configuration: .* gpuready restored /etc/docker/daemon.json;")
    fails(converged.replace("\n}", ",\n}"), r"/etc/docker/daemon.json: line \d+, column \d+.*fix it by hand")
    daemon.write_text(converged)
    m.run("pid=$(cat /run/docker.pid); kill -STOP $pid")
    blind = m.remove(code=1, env={LIMITS: "model.probe.PATIENCE=2 model.probe.LONGER=2"})
    m.run("kill -CONT $(cat /run/docker.pid)")
    assert "docker.running" in blind.component("docker")["error"]["message"], blind.explain()
    m.run(toolkit)

    race = m.script("/usr/local/sbin/docker", _RACE)
    m.run("docker run -d --name passing busybox:lab sleep 100000 && touch /run/race")
    removed = m.remove()
    race.unlink()
    assert removed.changed() >= {"docker", "toolkit"}, removed.explain()
    assert not (m.root / "run/race").exists()
    m.run("rm -f /var/lib/gpuready/tx/*")
    assert differences(before, whole(m)) == {}


def test_a_node_that_gpuready_never_saw_is_left_alone(shared: Hosts) -> None:
    m = shared()
    with m.untouched(sessions=1):
        result = m.remove()
    assert result.host()["outcome"] == "ok", result.explain()


def _url() -> str:
    """The repository that each inventory names."""
    return str(repository.shared().settings()["url"])
