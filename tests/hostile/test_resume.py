"""``apply --state-dir``: what a run stores, what a later one does with it, and whom it connects to.

The hosts are those of tests/hostile/server.py; a login name chooses what a host does.
"""

import fcntl
import json
import os
from typing import Any

import pytest

from tests.hostile.test_connections import APPLY, Site, site
from tests.system.harness import GPUREADY

pytestmark = pytest.mark.long

__all__ = ["site"]

GOOD: dict[str, object] = {"gpuready": {"hardware": {"gpus": 1}, "memlock": "unmanaged"}}
#: A node that is as it should be, one whose steps do nothing, so that it fails, and one that nobody may log in to.
HOSTS: dict[str, dict[str, object]] = {"good": GOOD, "lies_about_steps": {}, "refused": {}}


def command(rollout: "Rollout", *words: str) -> list[str]:
    path = rollout.site.inventory(**rollout.hosts)
    return [GPUREADY, *APPLY, "--state-dir", str(rollout.folder), *words, "-i", path]


class Rollout:
    """Runs of apply over some hosts of a site with one state directory."""

    def __init__(self, site: Site, **hosts: dict[str, object]) -> None:
        self.site, self.folder, self.hosts = site, site.home / "state", hosts or dict(HOSTS)

    def run(self, *words: str) -> dict[str, Any]:
        path = self.site.inventory(**self.hosts)
        found, self.stderr = self.site.run(*APPLY, "--state-dir", str(self.folder), *words, "-i", path)
        return found

    def outcomes(self, *words: str) -> list[str]:
        return [host["outcome"] for host in self.run(*words).values()]

    def connections(self) -> int:
        """Since the last call."""
        count, self.site.server.accepted = self.site.server.accepted, 0
        return count

    def stored(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "apply.jsonl").read_text("utf-8").splitlines()]


ENDED = ["ok", "failed", "unreachable"]


def test_each_host_is_stored_and_resume_connects_to_what_did_not_end_well(site: Site) -> None:
    rollout = Rollout(site)
    assert rollout.outcomes() == ENDED
    lines = {(line["host"], line["begun"], line["result"] and line["result"]["outcome"]) for line in rollout.stored()}
    assert lines == {
        ("good", False, "ok"),
        ("lies_about_steps", True, None),
        ("lies_about_steps", True, "failed"),
        ("refused", False, "unreachable"),
    }
    assert (rollout.folder.stat().st_mode & 0o777, (rollout.folder / "apply.jsonl").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )
    hosts = rollout.run()
    assert [host["outcome"] for host in hosts.values()] == ENDED and rollout.connections() == 2 * len(HOSTS)
    assert "brings it back into service" in "".join(hosts["lies_about_steps"]["notes"])  # also without --resume
    hosts = rollout.run("--resume")
    assert [host["outcome"] for host in hosts.values()] == ENDED and rollout.connections() == 2
    assert [host.get("earlier", "")[:2] for host in hosts.values()] == ["20", "", ""]
    assert "done by an earlier run; this one did not connect to it" in hosts["good"]["notes"]
    assert "brings it back into service" in "".join(hosts["lies_about_steps"]["notes"])
    assert not any("earlier run" in note for note in hosts["refused"]["notes"])


@pytest.mark.parametrize(
    ("words", "change", "says"),
    [
        ((), {"gpuready": {"hardware": {"gpus": 1}, "memlock": "unmanaged", "ldso": "off"}}, "its spec"),
        (("--only", "ldso"), {}, "the components that --only and --skip choose"),
        ((), {"ansible_host": "127.0.0.1"}, "its address"),
    ],
)
def test_a_host_that_is_asked_something_else_is_done_anew(
    site: Site, words: tuple[str, ...], change: dict[str, object], says: str
) -> None:
    rollout = Rollout(site, good=GOOD)
    assert rollout.outcomes() == ["ok"]
    rollout.hosts["good"] = GOOD | change
    rollout.connections()
    (host,) = rollout.run("--resume", *words).values()
    assert rollout.connections() == 1
    assert f"done anew: {says} changed since an earlier run" in host["notes"]
    (host,) = rollout.run("--resume", *words).values()
    assert rollout.connections() == 0 and host["earlier"]


def test_failed_only_chooses_what_failed_or_was_unreachable(site: Site) -> None:
    rollout = Rollout(site)
    rollout.run()
    rollout.connections()
    rollout.hosts["good2"] = GOOD
    hosts = rollout.run("--failed-only")
    assert [host["outcome"] for host in hosts.values()] == [*ENDED, "not_attempted"] and rollout.connections() == 2
    assert "not chosen by --failed-only: no earlier run began it" in hosts["good2"]["notes"]
    rollout.hosts["good"] = GOOD | {"ansible_host": "127.0.0.1"}
    hosts = rollout.run("--failed-only")
    assert hosts["good"]["outcome"] == "not_attempted" and rollout.connections() == 2
    assert any("its address changed since 20" in note and "--resume does it" in note for note in hosts["good"]["notes"])


def test_a_line_that_was_cut_off_is_its_host_s_alone(site: Site) -> None:
    rollout = Rollout(site)
    rollout.run()
    file = rollout.folder / "apply.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    rollout.connections()
    rollout.run("--resume")
    assert rollout.connections() == 2
    file.write_text(file.read_text("utf-8").replace('"begun":', '"begum":', 1), "utf-8")
    done = site.ran(command(rollout, "--resume"))
    assert done.returncode == 5 and f"{file}:1: damaged" in done.stderr


def test_two_runs_do_not_share_a_directory(site: Site) -> None:
    rollout = Rollout(site)
    rollout.folder.mkdir()
    lock = os.open(rollout.folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    done = site.ran(command(rollout))
    os.close(lock)
    assert done.returncode == 64 and "another gpuready run uses it" in done.stderr
    assert site.server.accepted == 0


@pytest.mark.parametrize("option", ["--resume", "--failed-only"])
def test_they_need_the_directory(site: Site, option: str) -> None:
    done = site.ran([GPUREADY, *APPLY, option, "-i", site.inventory(good={})])
    assert done.returncode == 64 and f"{option} needs --state-dir" in done.stderr


def test_a_disk_that_is_full_stops_before_the_next_batch(site: Site) -> None:
    """What cannot be stored is not begun."""
    rollout = Rollout(site, lies_about_steps1={}, lies_about_steps2={})
    words = command(rollout, "--batch", "1", "--max-fail", "100%", "--output", "json")
    found = json.loads(site.ran(["prlimit", "--fsize=3000:3000", *words]).stdout)
    assert found["error"]["kind"] == "output" and "cannot be written to" in found["error"]["message"]
    assert [host["outcome"] for host in found["hosts"].values()] == ["failed", "not_attempted"]
    assert "not begun: the state of this run cannot be written" in found["hosts"]["lies_about_steps2"]["notes"]
