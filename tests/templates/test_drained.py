"""templates/lib/drained.sh.j2: the mark of a drained node. Each way to drain leaves the marks of the others alone."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuready.base.step import Script
from gpuready.gpu.node import DRAINED
from gpuready.operations.drain import DrainByCommand, DrainSlurm, MarkKubernetes

#: A scontrol that keeps the state of one node in a file.
SCONTROL = """#!/bin/sh
case $* in
  *State=DRAIN*) echo 'NodeName=n1 State=IDLE+DRAIN Reason=gpuready [root@now]' >"$SHOWN" ;;
  *State=RESUME*) echo 'NodeName=n1 State=IDLE Reason=none' >"$SHOWN" ;;
  show*) cat "$SHOWN" ;;
esac
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, text in (("scontrol", SCONTROL), ("squeue", '#!/bin/sh\ncat "$SHOWN.jobs"\n')):
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("SHOWN", str(tmp_path / "shown"))
    (tmp_path / "shown").write_text("NodeName=n1 State=IDLE Reason=none\n", "utf-8")
    (tmp_path / "shown.jobs").touch()

    def run(script: Script, meanwhile: str = "exit 9") -> "subprocess.CompletedProcess[str]":
        """``meanwhile``: what happens at each pause."""
        text = f"sleep() {{ {meanwhile}; }}\n{script.render()}"
        assert DRAINED in text
        text = text.replace(DRAINED, str(tmp_path / "drained")).replace("\nPATH=", f"\nPATH={tmp_path}:")
        return subprocess.run(["sh"], input=text, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


#: The text of a way's mark, and its step for each phase.
WAYS: dict[str, Callable[[str], Script]] = {
    "in Kubernetes, as n1": lambda phase: MarkKubernetes(phase, "n1"),
    "in Slurm, as n1": lambda phase: DrainSlurm(phase, "n1"),
    "by maintenance.drain.before": lambda phase: DrainByCommand(phase, f"echo {phase} >>told"),
}


@pytest.mark.fault("drained-another-way")
@pytest.mark.parametrize("way", WAYS)
def test_only_the_way_that_drained_a_node_removes_its_mark(way: str, run: Run, tmp_path: Path) -> None:
    mark, shown = tmp_path / "drained", tmp_path / "shown"
    for other in [*WAYS, "in Kubernetes, as n2"]:
        if other == way:
            continue
        mark.write_text(f"{other}\n", "utf-8")
        says = f"an earlier run drained the node {other}: once it is back in service, remove {mark}\n"
        before, after = (run(WAYS[way](phase)) for phase in ("before", "after"))
        assert (before.returncode, before.stdout, before.stderr) == (1, "", says)
        assert (after.returncode, after.stdout, after.stderr) == (0, says, "")
        assert mark.read_text("utf-8") == f"{other}\n"
    assert not (tmp_path / "told").exists() and "DRAIN" not in shown.read_text("utf-8")
    mark.unlink()
    for phase in ("before", "before", "after"):  # the second one goes on after a run that was killed
        done = run(WAYS[way](phase))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert mark.exists() == (phase == "before") and (not mark.exists() or mark.read_text("utf-8") == f"{way}\n")


@pytest.mark.fault("slurm-resumed")
@pytest.mark.parametrize("job", ["7\n", ""], ids=["a job runs", "no job"])
def test_a_node_that_others_resume_is_given_up_at_once(job: str, run: Run, tmp_path: Path) -> None:
    """More jobs may start there at any time."""
    (tmp_path / "shown.jobs").write_text("7\n", "utf-8")
    resumed = f'scontrol update NodeName=n1 State=RESUME; printf "{job}" >"$SHOWN.jobs"; paused=$((paused + 1))'
    done = run(DrainSlurm("before", "n1"), f"{resumed}; [ $paused -lt 3 ] || exit 9")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "n1 went back into service while gpuready waited for its jobs\n"
    assert not (tmp_path / "drained").exists()


@pytest.mark.fault("slurm-node-dies")
def test_a_node_that_dies_while_its_jobs_are_asked_for_is_not_disturbed(run: Run, tmp_path: Path) -> None:
    """slurmctld requeues its jobs, so that none is listed any more; but they may still run there."""
    down = "NodeName=n1 State=DOWN*+DRAIN Reason=gpuready [root@now]"
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '{down}' >\"$SHOWN\"\n", "utf-8")
    done = run(DrainSlurm("before", "n1"))
    assert done.returncode == 1 and done.stderr.startswith("n1 went down while gpuready waited for its jobs"), done


@pytest.mark.fault("drain-mark")
@pytest.mark.parametrize("way", WAYS)
def test_a_mark_that_cannot_be_written(way: str, run: Run, tmp_path: Path) -> None:
    """Nothing is drained."""
    (tmp_path / "drained").mkdir()
    done = run(WAYS[way]("before"))
    assert done.returncode == 1 and done.stderr.endswith(f"cannot write {tmp_path}/drained\n"), done
    assert not (tmp_path / "told").exists() and "DRAIN" not in (tmp_path / "shown").read_text("utf-8")


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
    (tmp_path / "shown").write_text("NodeName=n1 State=IDLE+DRAIN Reason=gpuready [root@now]\n", "utf-8")
    (tmp_path / "drained").mkdir()
    done = run(WAYS[way]("after"))
    assert done.returncode == 0 and "drain is over" in done.stdout and "remove it" in done.stdout, done
    if "Slurm" in way:
        assert "State=IDLE " in (tmp_path / "shown").read_text("utf-8")


@pytest.mark.fault("slurm-out-of-service")
def test_slurm_need_not_have_a_reason_for_the_state_of_a_node(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shown").write_text("NodeName=n1 State=DOWN Comment=none\n", "utf-8")
    done = run(DrainSlurm("after", "n1"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Slurm's n1 stays DOWN, because gpuready did not set that state: see sinfo -R\n"


@pytest.mark.fault("slurm-node-dies")
@pytest.mark.parametrize(
    ("reason", "comes_back"),
    [("gpuready : Not responding", True), ("gpuready : Low RealMemory", False), ("gpuready: gpu.count: 7", False)],
)
def test_a_node_whose_slurmd_was_silent_in_a_drain(reason: str, comes_back: bool, run: Run, tmp_path: Path) -> None:
    """slurmctld adds that to gpuready's reason; another addition is a drain of Slurm's own."""
    shown, mark = tmp_path / "shown", tmp_path / "drained"
    shown.write_text(f"NodeName=n1 State=DOWN*+DRAIN Reason={reason} [slurm@2026-11-29T07:00:00]\n", "utf-8")
    mark.write_text("in Slurm, as n1\n", "utf-8")
    done = run(DrainSlurm("after", "n1"))
    assert (done.returncode, done.stderr, mark.exists()) == (0, "", False)
    assert ("State=IDLE " in shown.read_text("utf-8"), "stays DOWN*+DRAIN" in done.stdout) == (
        comes_back,
        not comes_back,
    )


#: The state of the node at the next look, and that its job is over.
BECOMES = 'echo "NodeName=n1 State={} Reason={} [root@now]" >"$SHOWN"; : >"$SHOWN.jobs"'


@pytest.mark.fault("slurm-node-dies", "slurm-out-of-service")
@pytest.mark.parametrize(
    ("before", "becomes", "reason", "says", "stays"),
    [
        pytest.param("MIXED", "IDLE+DRAIN", "gpuready", "", "", id="its job ends"),
        pytest.param("MIXED", "DOWN*+DRAIN", "gpuready : Not responding", "went down", "", id="down"),
        pytest.param("MIXED", "DOWN+DRAIN", "mine", "went down", "DOWN+DRAIN", id="down by others"),
        pytest.param("IDLE+DRAIN", "DOWN+DRAIN", "mine", "went down", "DOWN+DRAIN", id="drained by others, and down"),
        pytest.param("DOWN", "DOWN", "mine", "", "", id="down before"),
    ],
)
def test_a_node_that_goes_down_in_a_drain_is_not_drained(
    before: str, becomes: str, reason: str, says: str, stays: str, run: Run, tmp_path: Path
) -> None:
    """Its job is over in slurmctld's records only."""
    shown = tmp_path / "shown"
    shown.write_text(f"NodeName=n1 State={before} Reason=mine [root@now]\n", "utf-8")
    (tmp_path / "shown.jobs").write_text("7\n", "utf-8")
    done = run(DrainSlurm("before", "n1"), BECOMES.format(becomes, reason))
    assert done.returncode == bool(says), done
    assert done.stderr == (f"n1 {says} while gpuready waited for its jobs\n" if says else "")
    assert (f"stays {stays}, because" in done.stdout) == bool(stays)
    assert ("State=IDLE " in shown.read_text("utf-8")) == (bool(says) and not stays)
    assert (tmp_path / "drained").exists() == (before == "MIXED" and not says)
