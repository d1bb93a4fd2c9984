"""The runtime transaction when something goes wrong between its steps: what was there before is there again.

Both engines go through every case side by side, one run of the command line for the two.
"""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest

from tests.lab import Lab
from tests.system.docker_node import ALIASES, DAEMON_JSON, DockerNode, Seen
from tests.system.faults import REAL_CTK, another_ctk
from tests.system.harness import Gpuready, Inventories, Result

T = TypeVar("T")
USERS = json.dumps({"debug": True, "labels": ["ort=München"], "live-restore": False}).encode()
PANIC = """\
for word; do
  case $word in --config=*)
    [ "$(cat "${word#*=}")" = "{}" ] || { echo "panic: assignment to entry in nil map" >&2; exit 2; } ;;
  esac
done"""
WAIT = """\
touch /run/staging
for i in $(seq 600); do [ -e /run/go ] && break; sleep 0.1; done
rm -f /run/go /run/staging"""
FILL = "dd if=/dev/zero of={}/.fill bs=1k count=64 2>/dev/null || true"


class Both:
    """A machine with Docker 26.1 and one with 20.10, treated alike."""

    def __init__(self, nodes: list[DockerNode], gpuready: Gpuready, inventory: Inventories) -> None:
        self.nodes, self.gpuready, self.inventory = nodes, gpuready, inventory

    def all(self, work: Callable[[DockerNode], T]) -> list[T]:
        """The same on both, at the same time."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(work, self.nodes))

    def prepare(self, *arguments: Any, **options: Any) -> list[Seen]:
        """See DockerNode.prepare; then a look."""
        self.all(lambda node: node.prepare(*arguments, **options))
        return self.look()

    def look(self) -> list[Seen]:
        """What is on both now."""
        return self.all(DockerNode.look)

    def sh(self, script: str) -> list[str]:
        """A script as root on both."""
        return self.all(lambda node: node.sh(script))

    def apply(self, verb: str = "apply", code: int | None = None, **spec: Any) -> Result:
        """One run over both."""
        where = self.inventory([node.machine for node in self.nodes], **spec)
        return self.gpuready(verb, *(["--yes"] if verb == "apply" else []), inventory=where, code=code)

    def fails(self, pattern: str, **spec: Any) -> Result:
        """An apply that fails on both with one clear message."""
        result = self.apply(code=1, **spec)
        for node in self.nodes:
            assert result.host(node.name)["outcome"] == "failed", result.explain()
            message = result.component("docker", node.name)["error"]["message"]
            assert re.search(pattern, message), f"{node.distro}: {message}"
            assert "\n" not in message
            assert len(message) < 800
        return result

    def mends(self, **spec: Any) -> list[Seen]:
        """One apply closes what is left."""
        self.apply(code=0, **spec)
        seen = self.look()
        assert all("nvidia" in found.info["Runtimes"] for found in seen)
        return seen

    def settled(self, **spec: Any) -> list[Seen]:
        """The same, and the next apply is one exec that changes nothing."""
        seen = self.mends(**spec)
        second = self.apply(**spec)
        for node, before, after in zip(self.nodes, seen, self.look(), strict=True):
            assert (second.host(node.name)["outcome"], second.host(node.name)["execs"]) == ("ok", 1), second.explain()
            assert after.file == before.file
            assert after.unit == before.unit
        return seen


def untouched(before: list[Seen], after: list[Seen], apart: frozenset[str] = frozenset()) -> None:
    """The very file (inode and times), no leftovers, the engine as it was, the container from before runs on."""
    for was, seen in zip(before, after, strict=True):
        assert seen.file == was.file
        assert seen.differs(was) <= apart
        assert seen.unit == was.unit
        assert seen.before == was.before


@pytest.fixture(scope="module")
def both(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Both]:
    """Both machines, with all but Docker converged while Docker was stopped; that must not start it."""
    with ExitStack() as stack:
        nodes = [DockerNode(stack.enter_context(lab.machine(distro))) for distro in ("debian13", "debian12")]
        found = Both(nodes, gpuready, inventory)
        found.sh("systemctl stop docker.service")
        done = gpuready("apply", "--yes", "--skip", "docker", inventory=inventory([n.machine for n in nodes]))
        assert all(done.changed(node.name) == {"repository", "toolkit"} for node in nodes), done.explain()
        assert [seen.unit for seen in found.look()] == ["inactive 0"] * 2
        yield found


def test_stopped_is_configured_and_not_started(both: Both) -> None:
    both.prepare(USERS, run=False)
    both.sh("systemctl stop docker.service; systemctl is-active docker.socket")
    for verb in ("plan", "apply", "apply", "verify"):
        result = both.apply(verb)
        assert [seen.unit for seen in both.look()] == ["inactive 0"] * 2, verb
    for node, seen in zip(both.nodes, both.look(), strict=True):
        assert seen.document["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
        assert seen.document["labels"] == ["ort=München"]
        assert result.host(node.name)["outcome"] == "ok"
    both.sh("systemctl start docker.service")
    both.settled()


@pytest.mark.fault("engine-refuses")
def test_refused_at_reload(both: Both) -> None:
    """A file that passes validation and that only the engine itself finds wrong."""
    content = b'{"registry-mirrors": ["ftp://mirror"]}'
    before = both.prepare(content, starts=False)
    result = both.fails(rf"Docker rejected the new configuration: .*ftp://mirror.*\. gpuready restored {DAEMON_JSON};")
    untouched(before, both.look(), apart=ALIASES)
    for node, seen in zip(both.nodes, both.look(), strict=True):
        assert seen.backup == {}  # nothing of ours was in force: what is there later is the original then
        told = "until its next start it runs with" in result.component("docker", node.name)["error"]["message"]
        assert told == (node.distro == "debian12")
    both.sh(f"echo '{{}}' >{DAEMON_JSON}")
    both.settled()


@pytest.mark.promise
@pytest.mark.fault("changed-since-plan")
def test_changed_between_plan_and_install(both: Both) -> None:
    before = both.prepare(USERS)
    edit = f"sed -i 's/true/false/' {DAEMON_JSON}"
    with another_ctk(both.sh, f"{edit}\n{REAL_CTK}"):
        both.fails(f"{DAEMON_JSON} changed since the plan was made; it was not touched, run again")
    for was, seen in zip(before, both.look(), strict=True):
        assert seen.content == USERS.replace(b"true", b"false")
        assert seen.beside == was.beside
        assert seen.backup == {}
        assert seen.differs(was) == set()
        assert (seen.unit, seen.before) == (was.unit, was.before)
    for seen in both.mends():
        assert seen.document["debug"] is False
        assert seen.backup["original"] == USERS.replace(b"true", b"false")


@pytest.mark.fault("changed-since-plan")
def test_created_between_plan_and_install(both: Both) -> None:
    both.prepare()
    with another_ctk(both.sh, f"echo '{{\"debug\": true}}' >{DAEMON_JSON}\n{REAL_CTK}"):
        both.fails(f"{DAEMON_JSON} changed since the plan was made")
    assert [seen.content for seen in both.look()] == [b'{"debug": true}\n'] * 2
    assert [seen.document["debug"] for seen in both.mends()] == [True, True]


def test_nvidia_ctk_panics_on_the_users_file(both: Both) -> None:
    """It gets an empty one instead. What a run that was killed left behind goes with this one."""
    before = both.prepare(USERS, arrange="touch /etc/docker/.gpuready-abc123 /etc/docker/.gpuready.before")
    with another_ctk(both.sh, f"{PANIC}\n{REAL_CTK}"):
        after = both.mends()
    for was, seen in zip(before, after, strict=True):
        assert set(seen.beside.split()) <= {"daemon.json", "key.json"}
        ours = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
        assert seen.document == {**was.document, **ours}


FAILURES = (
    ("echo 'goroutine 1:' >&2; echo 'panic: boom' >&2; exit 2", "nvidia-ctk runtime configure failed: panic: boom"),
    ("exit 0", "wrote no runtime 'nvidia' into its copy; nothing was changed"),
    ('for word; do case $word in --config=*) echo oops >"${word#*=}" ;; esac; done', "wrote no runtime 'nvidia'"),
)


def test_nvidia_ctk_fails_or_is_missing(both: Both) -> None:
    before = both.prepare(USERS)
    for script, message in FAILURES:
        with another_ctk(both.sh, script):
            both.fails(message)
        untouched(before, both.look())
    for name, more in (("nvidia-ctk", ""), ("nvidia-container-runtime", f"; {DAEMON_JSON} was not touched")):
        both.sh(f"mv /usr/bin/{name} /usr/bin/away")
        both.fails(f"there is no {name} on this node{more}")
        both.sh(f"mv /usr/bin/away /usr/bin/{name}")
        untouched(before, both.look())
    both.mends()


CDI = {"runtimes": {"docker": {"cdi": True}}}
#: systemd allows one start a minute: without `reset-failed` neither the restart nor the way back would be tried.
ONE_START = "[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=1\n[Service]\n"


@pytest.fixture
def newer(both: Both) -> Both:
    """Only the engine that has something for which it must be restarted."""
    return Both(both.nodes[:1], both.gpuready, both.inventory)


@pytest.mark.promise
@pytest.mark.fault("engine-refuses")
def test_restart_fails_and_the_old_file_comes_back(newer: Both) -> None:
    """The reload that comes first has switched live-restore on: containers live through both restarts."""
    content = b'{"labels": ["a=1"]}'
    before = newer.prepare(content, drop_in=f"{ONE_START}ExecStartPre=/bin/sh -c '! grep -q cdi {DAEMON_JSON}'\n")
    newer.fails(
        rf"Docker did not start with the new configuration: .*\. gpuready restored {DAEMON_JSON}; Docker runs again",
        **CDI,
    )
    for was, seen in zip(before, newer.look(), strict=True):
        assert (seen.file, seen.before, seen.backup) == (was.file, was.before, {})
        assert seen.unit.startswith("active ")
        assert seen.differs(was) == set()
    newer.sh(
        "rm -r /etc/systemd/system/docker.service.d; systemctl daemon-reload; systemctl reset-failed docker.service"
    )
    for was, seen in zip(before, newer.settled(**CDI), strict=True):
        assert seen.unit != was.unit
        assert seen.before == was.before
        assert seen.info["CDISpecDirs"]


@pytest.mark.fault("engine-refuses")
def test_restart_fails_with_the_old_file_too(newer: Both) -> None:
    """The engine is down then, which the message says; the containers are not."""
    before = newer.prepare(b'{"debug": true}', drop_in="[Service]\nExecStartPre=/bin/sh -c '[ ! -e /run/no ]'\n")
    newer.sh("touch /run/no")
    newer.fails(
        rf"Docker does not start: .*\. gpuready restored {DAEMON_JSON}; .* either \(its containers still run.*\)", **CDI
    )
    for node, was, seen in zip(newer.nodes, before, newer.look(), strict=True):
        assert seen.file == was.file
        assert not seen.unit.startswith("active")
        node.sh(f"kill -0 {was.before['Pid']}")
    newer.sh("rm /run/no; systemctl reset-failed docker.service docker.socket; systemctl start docker.service")
    newer.settled(**CDI)


@pytest.mark.fault("engine-refuses")
def test_a_restart_that_waited_fails_in_the_next_run(newer: Both) -> None:
    """A container lets the restart wait. It ends, and the next run restarts Docker, which does not start."""
    refuses = f"[Service]\nExecStartPre=/bin/sh -c '! grep -q cdi {DAEMON_JSON}'\n"
    newer.prepare(b'{"live-restore": false}', drop_in=refuses)
    newer.apply(code=7, **CDI)
    assert all(seen.document["features"] == {"cdi": True} and seen.before["Running"] for seen in newer.look())
    newer.sh("docker rm -f before")
    newer.fails(rf"gpuready set features.cdi in {DAEMON_JSON} back to what Docker ran with; Docker runs again", **CDI)
    for seen in newer.look():
        assert seen.unit.startswith("active ") and "features" not in seen.document
        assert "nvidia" in seen.info["Runtimes"] and not seen.info["CDISpecDirs"]
    newer.sh("rm -r /etc/systemd/system/docker.service.d; systemctl daemon-reload")
    newer.settled(**CDI)


ALL = {"runtimes": {"docker": {"default_runtime": True, "shm_size": "256m", "live_restore": True}}}


def test_what_is_taken_out_leaves_file_and_engine_as_they_were(both: Both) -> None:
    """By a reload alone: what dockerd would not forget is said by name once, then the user's own file is back."""
    users = (
        '{ "labels":["a=1"], "live-restore": false, "runtimes": {"alt": {"path": "runc"}}, "default-runtime": "alt" }'
    )
    before = both.prepare(users.encode())
    both.settled(**ALL)
    assert all("262144" in out for out in both.sh("docker run --rm busybox:lab df -k /dev/shm"))
    where = both.inventory([node.machine for node in both.nodes], **ALL)
    removed = both.gpuready("remove", "--yes", "--batch", "100%", "--only", "docker", inventory=where, code=0)
    for node in both.nodes:
        keys = removed.diff("docker", node.name).keys()
        assert {"docker.runtimes.nvidia.path", "docker.default-runtime", "docker.default-shm-size"} <= keys
    for was, seen in zip(before, both.look(), strict=True):
        assert (seen.content, seen.beside, seen.mode) == (was.content, was.beside, was.mode)
        assert seen.differs(was) <= ALIASES
        assert (seen.unit, seen.before) == (was.unit, was.before)
    assert all(" 65536 " in " ".join(out.split()) for out in both.sh("docker run --rm busybox:lab df -k /dev/shm"))
    both.settled()


@pytest.mark.fault("full-disk")
@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("/etc/docker", "size=16k", r"cannot write in /etc/docker \(full"),
        ("/etc/docker", "nr_inodes=$(find /etc/docker | wc -l)", r"cannot write in /etc/docker"),
        ("/var/lib/gpuready", "size=16k", "is /var full"),
        ("/var/lib/gpuready/backup", "size=16k", "is /var full"),
    ],
    ids=["etc", "etc-inodes", "var", "var-copies"],
)
def test_disk_full(both: Both, place: str, options: str, message: str) -> None:
    """A small file system of its own in that place, filled up."""
    both.prepare(USERS)
    both.sh(
        f"mkdir -p {place} /run/same; [ {place} != /etc/docker ] || cp -a {place}/. /run/same\n"
        f"mount -t tmpfs -o {options},mode=755 tmpfs {place}; cp -a /run/same/. {place}; rm -rf /run/same\n"
        f"{FILL.format(place) if 'size' in options else ''}"
    )
    try:
        before = both.look()
        both.fails(message)
        untouched(before, both.look())
    finally:
        both.sh(f"rm -f {place}/.fill; mount -o remount,size=1m,nr_inodes=1k {place}")
    try:
        both.mends()
    finally:
        both.sh(f"umount {place}")


@pytest.mark.fault("two-controllers")
def test_two_controllers(both: Both) -> None:
    """The second is told who changes the node; the first ends as if nothing had been."""
    both.prepare(USERS)
    inventory = both.inventory([node.machine for node in both.nodes])
    with another_ctk(both.sh, f"{WAIT}\n{REAL_CTK}"):
        first = both.gpuready.start("apply", "--yes", inventory=inventory)
        both.sh("for i in $(seq 600); do [ -e /run/staging ] && break; sleep 0.1; done; [ -e /run/staging ]")
        before = both.look()
        second = both.gpuready("apply", "--yes", inventory=inventory, code=1)
        held = both.look()
        both.sh("touch /run/go")
        done = both.gpuready.finish(first, code=0)
    for node in both.nodes:
        message = second.component("docker", node.name)["error"]["message"]
        assert re.fullmatch(r"another gpuready run is changing this node \(\S+@\S+\)", message)
    untouched(before, held)
    assert all(done.changed(node.name) == {"docker"} for node in both.nodes)
    both.settled()
