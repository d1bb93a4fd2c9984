"""``fabric --tests collective --mpirun``: what mpirun is given, why it cannot run, and the figures of nccl-tests."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gpuready.fabric import mpirun
from gpuready.fabric.collective import findings
from gpuready.fabric.job import Part
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.verdict import Answer
from gpuready.model.spec import NodeSpec
from gpuready.model.verify import Thresholds
from gpuready.result.model import HostResult
from gpuready.verbs.fabric.rounds import Hosts
from gpuready.verbs.fabric.rounds import test_all as run_rounds
from tests.fabric.test_fabric_collective import parts
from tests.fabric.test_fabric_verdict import recorded
from tests.verbs.render.test_kubernetes import node

#: Two A100, one on each of two hosts.
TABLE = f"collective: all_reduce\n{recorded('all_reduce_perf')}"
ROW = " 10737418240    2684354560     float     sum      -1  3825027    2.81    2.81      0  "


def two() -> list[Part]:
    return [replace(each, ranks=1) for each in parts(8)[:2]]


def test_mpirun_gets_all_hosts_and_the_environment_of_each() -> None:
    made = mpirun.part(two(), 5)
    others, slots, ranks, _, first, second, *words = made.command.arguments
    assert (made.rank, made.end.host, others) == (0, "n1", "n2=10.0.0.2")
    assert (slots, ranks) == ("localhost:1,10.0.0.2:1", "2")
    for text in (first, second):
        assert text.startswith("1 ") and "TORCH" not in text
        assert {"NCCL_DEBUG=INFO", "NCCL_IB_HCA==mlx5_0:1", "OMPI_MCA_btl_tcp_if_include=ens1"} <= set(text.split())
    assert " ".join(words) == "-- -b 1048576 -e 17179869184 -f 4 -g 1 -n 20"
    assert made.command.limit == 150 + 4 * 50


@pytest.mark.parametrize(("rank", "value"), [(0, "a b"), (1, "a b"), (2, "$(c)'"), (4, "$(c)'")])
def test_a_rank_has_the_environment_of_its_host(rank: int, value: str, tmp_path: Path) -> None:
    shown = program(tmp_path, "shown", 'printf "%s|" "$NCCL_X" "$@"')
    first, second = (
        replace(each, ranks=ranks, command=replace(each.command, before=(f"NCCL_X={text}",)))
        for each, ranks, text in zip(parts(8), (2, 3), ("a b", "$(c)'"), strict=False)
    )
    _, _, _, script, *words = mpirun.part([first, second], 5).command.arguments
    given = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)}
    ran = subprocess.run(
        ["bash", "-c", script, str(shown), *words], env=given, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("|")[:3] == [value, "-b", "1048576"]


def test_the_table_of_nccl_tests_has_the_same_result_as_our_own() -> None:
    found = mpirun.judged(two(), Answer(0, TABLE), Thresholds(collective=2))
    (figure,) = found.measured
    assert (figure.collective, figure.size, figure.ranks, figure.microseconds) == (
        "all_reduce", 10737418240, 2, 3825027.0,
    )  # fmt: skip
    assert (round(figure.algbw, 2), round(figure.busbw, 2)) == (2.81, 2.81)  # as nccl-tests printed them
    assert (found.status, found.limit) == ("pass", 2.0) and found.summary.endswith("nccl-tests")
    made = findings(two(), [Answer(0, TABLE)] * 2, found, None, mpirun.proof)
    assert [(each.status, each.proof) for each in made] == [
        ("pass", f"{name} mlx5_0:1: NCCL's log shows NET/IB irdma0:1/RoCE") for name in ("n1", "n2")
    ]
    slow = mpirun.judged(two(), Answer(0, TABLE), Thresholds(collective=3))
    assert (slow.status, slow.fault) == ("fail", "slow")


@pytest.mark.parametrize(
    ("answer", "status", "fault", "words"),
    [
        (Answer(0, TABLE.replace(ROW, ROW.replace("  0  ", "  2e+06  "))), "fail", "wrong",
         "wrong result: all-reduce of 10 GiB, 2000000 elements"),
        (Answer(1, "collective: all_reduce\nmpirun noticed that process rank 3 exited on signal 9\n"), "fail", "failed",
         "mpirun failed on n1 (exit 1): collective: all_reduce; mpirun noticed that process rank 3"),
        (Answer(124, "collective: all_reduce\n"), "fail", "failed", "mpirun failed on n1 (it did not end in time)"),
        (Answer(0, "collective: all_reduce\n# a\n"), "unknown", "", "nccl-tests printed no figure: # a"),
        (Answer(3, "cannot: there is no mpirun in the PATH of root\n"), "skip", "",
         "n1: there is no mpirun in the PATH of root"),
        (Answer(trouble="the connection broke"), "unknown", "", "the job was ended: n1: the connection broke"),
    ],
)  # fmt: skip
def test_what_goes_wrong(answer: Answer, status: str, fault: str, words: str) -> None:
    found = mpirun.judged(two(), answer, Thresholds())
    assert (found.status, found.fault) == (status, fault) and found.summary.startswith(words), found


def said(path: Path, others: str = "") -> str:
    """What the script says on this machine, with the programs of a folder alone for mpirun and nccl-tests."""
    for name in ("ssh", "sh", "id", "awk", "tail"):
        if not (path / name).exists():
            (path / name).symlink_to(f"/usr/bin/{name}")
    command = mpirun.part(two(), 5).command
    words = ["/bin/bash", "-c", command.shell, others, *command.arguments[1:]]
    ran = subprocess.run(words, env={"PATH": str(path)}, capture_output=True, text=True, check=False)
    return ran.stdout


def program(path: Path, name: str, text: str = "") -> Path:
    file = path / name
    file.unlink(missing_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    file.chmod(0o755)
    return file


def test_the_script_says_why_it_cannot_run(tmp_path: Path) -> None:
    """Programs that do nothing stand for mpirun and nccl-tests; ssh is the real one."""
    assert said(tmp_path).startswith("cannot: there is no mpirun in the PATH of ")
    program(tmp_path, "mpirun")
    assert said(tmp_path).startswith("cannot: there is no all_reduce_perf of nccl-tests in the PATH of ")
    program(tmp_path, "all_reduce_perf")
    assert " does not reach n2 by SSH from here: " in said(tmp_path, "n2=127.0.0.1")
    program(tmp_path, "ssh", 'for word; do :; done; exec sh -c "$word"')
    assert said(tmp_path, "n2=n2") == "collective: all_reduce\n"
    program(tmp_path, "ssh", "exit 1")
    assert said(tmp_path, "n2=n2") == f"cannot: there is no {tmp_path}/mpirun on n2\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
def test_the_script_runs_as_the_user_who_called_sudo() -> None:
    command = mpirun.part(two(), 5).command
    words = ["/bin/bash", "-c", command.shell, *command.arguments]
    ran = subprocess.run(words, env={**os.environ, "SUDO_USER": "nobody"}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.split("PATH of ")[1]) == (3, "nobody\n"), ran


def test_nccls_log_is_cut_and_tables_are_kept(tmp_path: Path) -> None:
    program(tmp_path, "all_reduce_perf")
    text = "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE\\nn1:1:2 [0] NCCL INFO Trees 1\\n 8 2 float\\n"
    program(tmp_path, "mpirun", f"printf '{text}'; exit 7")
    assert said(tmp_path).splitlines() == [
        "collective: all_reduce", "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE", " 8 2 float",
    ]  # fmt: skip


def test_a_run_hands_all_hosts_to_mpirun_and_says_why_it_cannot() -> None:
    states = {f"n{number}": node(number) for number in (1, 2)}
    entries = {name: SimpleNamespace(spec=NodeSpec(), spread=None) for name in states}
    results = {name: HostResult(name, outcome="ok") for name in states}
    hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))
    fabric = FabricRun(Wanted(Pairing("ring"), ("collective",), 5, mpirun=True))
    asked: list[list[str]] = []

    def run(jobs: Sequence[Sequence[Part]]) -> list[list[Answer]]:
        asked.extend([part.end.host for part in job] for job in jobs)
        return [[Answer(3, "cannot: there is no mpirun in the PATH of ubuntu\n")]]

    run_rounds(hosts, fabric, states, lambda meetings: None, run)
    assert asked == [["n1"]] and fabric.search is None
    assert [(each.status, each.summary) for each in fabric.findings] == [
        ("unknown", "n1: there is no mpirun in the PATH of ubuntu")
    ] * 2
