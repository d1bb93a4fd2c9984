"""templates/lib/drained.sh.j2: the mark of a drained node. Each way to drain leaves the marks of the others alone.

That of Slurm is in tests/system/test_slurm.py, with the real one.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuready.base.step import Script
from gpuready.gpu.node import DRAINED
from gpuready.operations.drain import DrainByCommand, MarkKubernetes

Run = Callable[[Script], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(script: Script) -> "subprocess.CompletedProcess[str]":
        text = script.render()
        assert DRAINED in text
        text = text.replace(DRAINED, str(tmp_path / "drained"))
        return subprocess.run(["sh"], input=text, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


#: The text of a way's mark, and its step for each phase.
WAYS: dict[str, Callable[[str], Script]] = {
    "in Kubernetes, as n1": lambda phase: MarkKubernetes(phase, "n1"),
    "by maintenance.drain.before": lambda phase: DrainByCommand(phase, f"echo {phase} >>told"),
}


@pytest.mark.fault("drained-another-way")
@pytest.mark.parametrize("way", WAYS)
def test_only_the_way_that_drained_a_node_removes_its_mark(way: str, run: Run, tmp_path: Path) -> None:
    mark = tmp_path / "drained"
    for other in [*WAYS, "in Kubernetes, as n2", "in Slurm, as n1"]:
        if other == way:
            continue
        mark.write_text(f"{other}\n", "utf-8")
        says = f"an earlier run drained the node {other}: once it is back in service, remove {mark}\n"
        before, after = (run(WAYS[way](phase)) for phase in ("before", "after"))
        assert (before.returncode, before.stdout, before.stderr) == (1, "", says)
        assert (after.returncode, after.stdout, after.stderr) == (0, says, "")
        assert mark.read_text("utf-8") == f"{other}\n"
    assert not (tmp_path / "told").exists()
    mark.unlink()
    for phase in ("before", "before", "after"):  # the second one goes on after a run that was killed
        done = run(WAYS[way](phase))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert mark.exists() == (phase == "before") and (not mark.exists() or mark.read_text("utf-8") == f"{way}\n")


@pytest.mark.fault("drain-mark")
@pytest.mark.parametrize("way", WAYS)
def test_a_mark_that_cannot_be_written(way: str, run: Run, tmp_path: Path) -> None:
    """Nothing is drained."""
    (tmp_path / "drained").mkdir()
    done = run(WAYS[way]("before"))
    assert done.returncode == 1 and done.stderr.endswith(f"cannot write {tmp_path}/drained\n"), done
    assert not (tmp_path / "told").exists()


def test_a_command_runs_between_mark_and_unmark(run: Run, tmp_path: Path) -> None:
    """One that fails has not drained the node, unless an earlier run did."""
    mark, told = tmp_path / "drained", tmp_path / "told"
    for phase, code, there in (("before", 3, False), ("before", 0, True), ("before", 3, True), ("after", 3, True)):
        done = run(DrainByCommand(phase, f"cat drained >told; echo no; exit {code}"))
        assert done.returncode == bool(code) and ("failed (exit 3): no" in done.stderr) == bool(code)
        assert told.read_text("utf-8") == "by maintenance.drain.before\n"
        assert mark.exists() == there


@pytest.mark.fault("drain-mark")
@pytest.mark.parametrize("way", WAYS)
def test_a_mark_that_cannot_be_removed(way: str, run: Run, tmp_path: Path) -> None:
    """The node is back all the same, and a note says what to do. (rm removes no directory.)"""
    (tmp_path / "drained").mkdir()
    done = run(WAYS[way]("after"))
    assert done.returncode == 0 and "drain is over" in done.stdout and "remove it" in done.stdout, done
