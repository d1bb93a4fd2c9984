"""What --resume does with hosts that ended in one way or another; tests/hostile/test_resume.py has whole runs."""

import shutil
from pathlib import Path

import pytest

from gpuready.base.errors import Where
from gpuready.inventory.hosts import Connection, HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.result.model import CheckResult, ComponentResult, HostResult, Run
from gpuready.run.journal import Journal

NOTE = "known_hosts comes from the inventory"
GPUS = {"hardware": {"gpus": 8}}


def entry(**spec: object) -> HostEntry:
    spec_now = NodeSpec.model_validate(GPUS | spec)
    return HostEntry("gpu01", Connection("gpu01"), spec_now, (), (NOTE,), Where(""))


def ended(folder: Path, begun: bool = True, **of: str) -> Path:
    """A first run, in which the host changed and has one check; a copy, because its directory stays locked."""
    check = {"id": "docker.runtime", "level": "effective", "gpu": False, "summary": "a reason", "status": "pass"}
    result = HostResult("gpu01", outcome="changed", probed=True, notes=[NOTE, "rebooted in 30 s"])
    result.checks = [CheckResult(**check | of)]  # type: ignore[arg-type]
    journal = Journal(folder / "first", [entry()], None)
    if begun:
        journal.begin(["gpu01"])
    journal.end(result)
    return shutil.copytree(folder / "first", folder / "copy")


@pytest.mark.parametrize(
    ("begun", "status", "again"), [(True, "unknown", True), (False, "unknown", False), (True, "fail", True)]
)
def test_a_host_with_an_open_check_is_done_again(begun: bool, status: str, again: bool, tmp_path: Path) -> None:
    """After a change, active checks ran, and they run again. ``again`` makes the run ask them without a change."""
    journal = Journal(ended(tmp_path, begun, status=status), [entry()], None, resume=True)
    assert [each.name for each in journal.entries] == ["gpu01"] and not journal.earlier
    assert journal.again == ({"gpu01"} if again else frozenset())
    assert any("did not end well" in note for note in journal.entries[0].notes) == again


@pytest.mark.parametrize("of", [{}, {"status": "warn"}, {"status": "unknown", "advisory": True}])
def test_a_host_whose_checks_are_judged_is_skipped_and_its_notes_are_old(of: dict[str, str], tmp_path: Path) -> None:
    journal = Journal(ended(tmp_path, **of), [entry()], None, resume=True)
    assert not journal.entries and not journal.again
    assert journal.earlier["gpu01"].notes == [
        NOTE,
        "in an earlier run: rebooted in 30 s",
        "done by an earlier run; this one did not connect to it",
    ]


@pytest.mark.parametrize(
    ("spec", "left"), [({"maintenance": {"window": "02:00-04:00 UTC", "batch": "1"}}, False), ({"ldso": "off"}, True)]
)
def test_maintenance_says_when_and_not_what(spec: dict[str, object], left: bool, tmp_path: Path) -> None:
    assert bool(Journal(ended(tmp_path), [entry(**spec)], None, resume=True).entries) == left


def test_what_is_left_is_said(tmp_path: Path) -> None:
    """Also a host with an open check, and one that --failed-only does not choose."""
    for n, (outcome, failed_only, says) in enumerate(
        [
            ("ok", False, ""),
            ("skipped", False, ""),
            ("pending", False, "the same command with --resume"),
            ("failed", True, "the same command with --resume instead of --failed-only"),
        ]
    ):
        journal = Journal(tmp_path / str(n), [entry()], None, failed_only=failed_only)
        run = Run("apply", [] if failed_only else [HostResult("gpu01", outcome=outcome, probed=True)])
        for host in run.hosts:
            journal.end(host)
        journal.complete(run)
        assert run.for_the_rest == says, outcome


def test_a_node_that_was_not_changed_is_not_called_changed(tmp_path: Path) -> None:
    for n, changed in enumerate((False, True)):
        journal = Journal(tmp_path / str(n), [entry()], None)
        journal.begin(["gpu01"])
        docker = ComponentResult("docker", applies=True, changed=changed)
        journal.end(HostResult("gpu01", outcome="pending", probed=True, components=[docker]))
        copy = shutil.copytree(tmp_path / str(n), tmp_path / f"copy{n}")
        (left,) = Journal(copy, [entry()], None, resume=True).entries
        assert ("an earlier run changed this node" in left.notes[-1]) == changed, left.notes
