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
from gpuready.fabric.job import Role, hosts_of
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.verdict import Answer
from gpuready.model.spec import NodeSpec
from gpuready.model.verify import Thresholds
from gpuready.result.model import HostResult
from gpuready.run.cluster import Cluster
from gpuready.verbs.fabric import divided, rounds
from gpuready.verbs.fabric.rounds import Hosts, RunJobs
from gpuready.verbs.fabric.rounds import test_all as run_rounds
from tests.fabric.test_fabric_collective import roles
from tests.fabric.test_fabric_verdict import recorded
from tests.verbs.render.test_kubernetes import node

#: Two A100, one on each of two hosts.
LOG = recorded("all_reduce_perf")
LOG += "".join(f"{line}\n".replace("gpu-pod0", "gpu-pod1") for line in LOG.splitlines() if "NCCL INFO" in line)
START = "collective: all_reduce\n# nThread 1 nGpus 1\n"
TABLE = f"collective: all_reduce\nhost: 0 gpu-pod0\nhost: 1 gpu-pod1.example\n{LOG}"
ROW = " 10737418240    2684354560     float     sum      -1  3825027    2.81    2.81      0  "


def two() -> list[Role]:
    return [replace(each, ranks=1) for each in roles(8)[:2]]


def test_mpirun_gets_all_hosts_and_the_environment_of_each() -> None:
    made = mpirun.role(two(), 5)
    others, slots, ranks, seconds, _, _, first, second, *words = made.command.arguments
    assert (made.rank, made.end.host, others, made.others) == (0, "n1", "n2=10.0.0.2", ("n2",))
    assert (slots, ranks, seconds) == ("localhost:1,10.0.0.2:1", "2", "200")
    for text in (first, second):
        assert text.startswith("1 ") and "TORCH" not in text
        assert {"NCCL_DEBUG=INFO", "NCCL_IB_HCA==mlx5_0:1", "OMPI_MCA_btl_tcp_if_include=ens1"} <= set(text.split())
    assert " ".join(words) == "-- -b 1048576 -e 1073741824 -f 4 -g 1 -n 20"
    assert made.command.limit == 2 * 25 + 4 * (200 + 15)


@pytest.mark.parametrize(
    ("gbps", "seconds", "size"), [(3200, 5, 16 << 30), (100, 5, 1 << 30), (100, 60, 16 << 30), (None, 5, 1 << 30)]
)
def test_the_largest_size_is_one_that_ends_in_time(gbps: float | None, seconds: int, size: int) -> None:
    """At half of the line rate, with 16 ranks; each size takes 22 all-reduces, out of place and in place."""
    both = [replace(each, ranks=8, rails_gbps=gbps) for each in two()]
    words = mpirun.role(both, seconds).command.arguments
    assert words[words.index("-e") + 1] == str(size)
    if gbps:
        sizes = [size >> shift for shift in range(0, 15, 2)]
        assert sum(each * 15 / 8 / (gbps / 16 * 1e9) * 22 * 2 for each in sizes) < 10 * seconds


@pytest.mark.parametrize(("rank", "value"), [(0, "a b"), (1, "a b"), (2, "$(c)'"), (4, "$(c)'")])
def test_a_rank_has_the_environment_of_its_host(rank: int, value: str, tmp_path: Path) -> None:
    shown = program(tmp_path, "shown", 'printf "%s|" "$NCCL_X" "$@"')
    first, second = (
        replace(each, ranks=ranks, command=replace(each.command, before=(f"NCCL_X={text}",)))
        for each, ranks, text in zip(roles(8), (2, 3), ("a b", "$(c)'"), strict=False)
    )
    _, _, _, _, script, _, *words = mpirun.role([first, second], 5).command.arguments
    given = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)}
    ran = subprocess.run(
        ["bash", "-c", script, str(shown), *words], env=given, capture_output=True, text=True, check=True
    )
    named, _, rest = ran.stdout.rpartition("\n")
    assert rest.split("|")[:3] == [value, "-b", "1048576"]
    assert named == {0: f"host: 0 {os.uname().nodename}", 2: f"host: 1 {os.uname().nodename}"}.get(rank, "")


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


#: nccl-tests without MPI: each rank is a job of its own.
ALONE = " 1048576  262144  float  sum  -1  4.51  232.50  0.00  0  0.31  3382.5  0.00  0\n"
FAILED = """n7:100:200 [3] NCCL WARN NET/IB: Got completion from peer 10.0.0.7 with status=12 opcode=0
n7: Test NCCL failure all_reduce.cu:44 'remote process exited or there was a network error'
 .. n7 pid 100: Test failure common.cu:201
 .. n7 pid 100: Test failure common.cu:650
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:
   Process name: [prterun-n1-3021@1,3]
   Exit code:    3
"""


@pytest.mark.parametrize(
    ("answer", "status", "fault", "words"),
    [
        (Answer(0, TABLE.replace(ROW, ROW.replace("  0  ", "  2e+06  "))), "fail", "wrong",
         "wrong result: all-reduce of 10 GiB, 2000000 elements"),
        (Answer(1, TABLE.replace("2.81      0\n", "2.81     17\n")), "fail", "wrong",
         "wrong result: all-reduce of 10 GiB, 17 elements"),
        (Answer(1, TABLE.replace("values : 0 OK", "values : 3 FAILED")), "fail", "wrong",
         "wrong result: all-reduce of 10 GiB, 3 elements"),
        (Answer(1, f"{START}mpirun noticed that process rank 3 exited on signal 9\n"), "fail", "failed",
         "mpirun failed on n1 in all-reduce (exit 1): mpirun noticed that process rank 3"),
        (Answer(3, START + FAILED), "fail", "failed",
         "mpirun failed on n1 in all-reduce (exit 3): n7:100:200 [3] NCCL WARN NET/IB: Got completion from peer "
         "10.0.0.7 with status=12 opcode=0; n7: Test NCCL failure all_reduce.cu:44 "),
        (Answer(124, START), "fail", "failed", "mpirun failed on n1 in all-reduce (it did not end in time)"),
        (Answer(213, "collective: all_reduce\nA daemon failed to start\n"), "unknown", "",
         "mpirun started no nccl-tests on n1 (exit 213): A daemon failed to start"),
        (Answer(0, "collective: all_reduce\n# a\n"), "unknown", "", "nccl-tests printed no figure of all-reduce: # a"),
        (Answer(0, f"collective: all_gather\n{ROW.replace('2.81    2.81', '2.81    1.40')}\n"), "unknown", "",
         "nccl-tests printed no figure of all-reduce"),
        (Answer(0, START + ALONE), "unknown", "", "the figures of all-reduce are not those of one job of 2 ranks"),
        (Answer(0, f"{START}{ROW}\n{ROW}\n"), "unknown", "",
         "the figures of all-reduce are not those of one job of 2 ranks"),
        (Answer(3, "cannot: there is no mpirun in the PATH of root\n"), "skip", "",
         "n1: there is no mpirun in the PATH of root"),
        (Answer(3, "cannot: there is no a on n3\ncannot: there is no a on n2\n"), "skip", "",
         "n1: there is no a on n2 (and 1 more)"),
        (Answer(trouble="the connection broke"), "unknown", "", "the job was ended: n1: the connection broke"),
    ],
)  # fmt: skip
def test_what_goes_wrong(answer: Answer, status: str, fault: str, words: str) -> None:
    found = mpirun.judged(two(), answer, Thresholds())
    assert (found.status, found.fault) == (status, fault) and found.summary.startswith(words), found


@pytest.mark.parametrize(
    ("log", "status", "proof"),
    [
        (TABLE.replace("gpu-pod1:52047:52056 [0] NCCL INFO Using network IBext", "gpu-pod1:1:1 [0] NCCL INFO Using "
         "network Socket"), "fail", "n2 mlx5_0:1: NCCL's log shows Socket"),
        (TABLE.replace("host: 1 ", "host: 7 "), "unknown", "n2 mlx5_0:1: no log of this host"),
    ],
)  # fmt: skip
def test_each_host_needs_its_own_proof(log: str, status: str, proof: str) -> None:
    answer = Answer(0, log)
    first, second = findings(
        two(), [answer] * 2, mpirun.judged(two(), answer, Thresholds(collective=2)), None, mpirun.proof
    )
    assert (first.status, second.status, second.proof) == ("pass", status, proof)


def said(path: Path, others: str = "") -> str:
    """What the script says on this machine, with the programs of a folder alone for mpirun and nccl-tests."""
    for name in ("ssh", "sh", "bash", "id", "awk", "tr", "xargs", "timeout", "sleep"):
        if not (path / name).exists():
            (path / name).symlink_to(f"/usr/bin/{name}")
    command = mpirun.role(two(), 5).command
    words = ["/bin/bash", "-c", command.shell, others, *command.arguments[1:]]
    ran = subprocess.run(words, env={"PATH": str(path)}, capture_output=True, text=True, check=False)
    return ran.stdout


def program(path: Path, name: str, text: str = "") -> Path:
    file = path / name
    file.unlink(missing_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    file.chmod(0o755)
    return file


def mpirun_of(path: Path, text: str = "") -> None:
    program(path, "mpirun", f'case $* in *--version) echo "mpirun (Open MPI) 5.0.7"; exit ;; esac\n{text}')


def test_the_script_says_why_it_cannot_run(tmp_path: Path) -> None:
    """Programs that do nothing stand for mpirun and nccl-tests; ssh is the real one."""
    assert said(tmp_path).startswith("cannot: there is no mpirun in the PATH of ")
    program(tmp_path, "mpirun", "echo HYDRA")
    assert said(tmp_path) == f"cannot: {tmp_path}/mpirun is not Open MPI's, or does not run\n"
    mpirun_of(tmp_path)
    assert said(tmp_path).startswith("cannot: there is no all_reduce_perf of nccl-tests in the PATH of ")
    program(tmp_path, "all_reduce_perf")
    assert " does not reach n2 by SSH from here: " in said(tmp_path, "n2=127.0.0.1")
    program(tmp_path, "ssh", 'for word; do :; done; exec sh -c "$word"')
    assert said(tmp_path, "n2=n2 n3=n3") == "collective: all_reduce\n"
    program(tmp_path, "ssh", "exit 4")
    assert said(tmp_path, "n2=n2") == f"cannot: there is no {tmp_path}/all_reduce_perf on n2\n"
    program(tmp_path, "ssh", "exit 3")
    both = "".join(f"cannot: there is no {tmp_path}/mpirun on n{number}\n" for number in (2, 3))
    assert "".join(sorted(said(tmp_path, "n2=n2 n3=n3").splitlines(keepends=True))) == both


def test_all_hosts_are_asked_at_once_and_each_has_a_limit(tmp_path: Path) -> None:
    """Each of two ssh waits for the other; timeout ends the third one."""
    mpirun_of(tmp_path)
    program(tmp_path, "all_reduce_perf")
    program(tmp_path, "timeout", 'case $* in *n9*) exit 124 ;; esac; shift 3; exec "$@"')
    waits = " || ".join(f"[ ! -e {tmp_path}/at-n{number} ]" for number in (2, 3))
    once = f"while {waits}; do tries=x$tries; [ ${{#tries}} -lt 200 ] || exit 9; sleep 0.1; done"
    program(tmp_path, "ssh", f"case $* in *n2*) n=n2 ;; *) n=n3 ;; esac\n: >{tmp_path}/at-$n\n{once}")
    found = said(tmp_path, "n2=n2 n3=n3 n9=n9").splitlines()
    assert len(found) == 1 and found[0].endswith(" does not reach n9 by SSH from here: no answer within 20 s")


def test_each_collective_has_a_limit_and_mpirun_starts_all_hosts_itself(tmp_path: Path) -> None:
    mpirun_of(tmp_path, 'echo "$OMPI_MCA_plm_rsh_no_tree_spawn $PRTE_MCA_plm_ssh_no_tree_spawn $*"')
    program(tmp_path, "timeout", 'case $* in *--version) ;; *) echo "limit $1 $2 $3 $4" ;; esac\n'
            'while [ "${1##*/}" != mpirun ]; do shift; done; exec "$@"')  # fmt: skip
    for name in ("all_reduce_perf", "all_reduce_perf_mpi", "alltoall_perf"):
        program(tmp_path, name)
    _, first, second = said(tmp_path).split("collective: ")
    for text, name in ((first, "all_reduce_perf_mpi"), (second, "alltoall_perf")):
        assert "\nlimit --foreground -k 15 200\n1 1 " in text and f" {tmp_path}/{name} 1 " in text


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
def test_the_script_runs_as_the_user_who_called_sudo() -> None:
    command = mpirun.role(two(), 5).command
    words = ["/bin/bash", "-c", command.shell, *command.arguments]
    ran = subprocess.run(words, env={**os.environ, "SUDO_USER": "nobody"}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.split("PATH of ")[1]) == (3, "nobody\n"), ran


def filtered(path: Path, text: str) -> list[str]:
    """What the script prints of nccl-tests' output."""
    program(path, "all_reduce_perf")
    (path / "text").write_text(text, "utf-8")
    (path / "cat").symlink_to("/usr/bin/cat")
    mpirun_of(path, f"cat {path}/text; exit 7")
    return said(path).splitlines()[1:]


def test_of_nccls_log_each_hosts_network_is_kept_once(tmp_path: Path) -> None:
    """Of 64 ranks, those of the last host fall back to sockets; nccl-tests names each rank and NCCL each channel."""
    lines = ["# nThread 1 nGpus 1", "# Using devices"]
    for rank in range(64):
        head = f"n{rank // 8}:{rank}:{rank} [{rank % 8}] NCCL INFO"
        kind = "Socket" if rank > 55 else "IB"
        lines += [f"#  Rank {rank} Group 0", f"{head} Trees 1", f"{head} NET/{kind} : Using [0]x:1", f"{head} Using "
                  f"network {kind}", *(f"{head} Channel 0{n}/0 : 0[0] -> 1[0] [send] via NET/{kind}/{n}/GDRDMA"
                  for n in range(8)), "n1: an error"]  # fmt: skip
    kept = filtered(tmp_path, "".join(f"{line}\n" for line in lines))
    assert kept[0] == lines[0] and kept.count("n1: an error") == 64 and len(kept) == 1 + 64 + 8 * 3
    tails = ("NET/Socket : Using [0]x:1", "Using network Socket", "via NET/Socket")
    assert [line for line in kept if line.startswith("n7:")] == [f"n7:56:56 [0] NCCL INFO {tail}" for tail in tails]


def test_what_nccl_tests_and_open_mpi_4_1_printed_on_two_h200(tmp_path: Path) -> None:
    """Two namespaces of one machine with a GPU each. Rank 0 begins with a NUL; both hosts call themselves vm."""
    text = "\n".join(("collective: all_reduce", *filtered(tmp_path, recorded("mpirun-h200")), ""))
    answer, limits = Answer(0, text), Thresholds(collective=2)
    ends = [replace(each, end=replace(each.end, device="eth0", port=0)) for each in two()]
    outcome = mpirun.judged(ends, answer, limits)
    assert [(row.size >> 20, row.busbw) for row in outcome.measured] == [
        (1, 1.6521),
        (4, 2.6338),
        (16, 2.4634),
        (64, 2.7779),
    ]
    found = findings(ends, [answer] * 2, outcome, None, mpirun.proof)
    assert [each.status for each in found] == ["pass", "pass"], found
    assert [each.proof for each in found] == [f"{each.end}: NCCL's log shows Socket" for each in ends]


SPLIT = "     524288  131072  float  sum  -1     300.1    1.75    3.39      0     210.0    2.50    4.84      0"


@pytest.mark.parametrize("at", [len(SPLIT), *(SPLIT.index(each) for each in ("     300", "     210"))])
@pytest.mark.parametrize("blank", [" ", ""])
def test_a_row_survives_what_nccl_logs_in_the_middle(at: int, blank: str, tmp_path: Path) -> None:
    """As in NVIDIA/nccl#1453."""
    host = "0a-1:2:3 [0] NCCL INFO"
    log = f"{host} NVLS comm 0x5639\n{host} Channel 01/0 : 16[0] -> 0[0] [receive] via NET/IBext_v8/7/GDRDMA\n"
    end = "# Out of bounds values : 0 OK"
    kept = filtered(tmp_path, f"{host} Bootstrap\n{SPLIT[:at]}{blank}{log}{SPLIT[at:]}\n{ROW}\n{end}\n")
    assert kept[0] == f"{host} via NET/IBext" and kept[3:] == [end]
    assert [line.split() for line in kept[1:3]] == [SPLIT.split(), ROW.split()]


def one_run(run: RunJobs) -> FabricRun:
    states = {f"n{number}": node(number) for number in (1, 2)}
    entries = {name: SimpleNamespace(spec=NodeSpec(), spread=None) for name in states}
    results = {name: HostResult(name, outcome="ok") for name in states}
    hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))
    fabric = FabricRun(Wanted(Pairing("ring"), ("collective",), 5, mpirun=True))
    run_rounds(hosts, fabric, states, lambda meetings: None, run)
    return fabric


def test_a_run_hands_all_hosts_to_mpirun_and_says_why_it_cannot() -> None:
    asked: list[list[str]] = []

    def run(jobs: Sequence[Sequence[Role]]) -> list[list[Answer]]:
        asked.append(hosts_of(jobs))  # whose locks a worker holds
        return [[Answer(3, "cannot: there is no mpirun in the PATH of ubuntu\n")]]

    fabric = one_run(run)
    assert asked == [["n1", "n2"]] and fabric.search is None
    assert [(each.status, each.summary) for each in fabric.findings] == [
        ("unknown", "n1: there is no mpirun in the PATH of ubuntu")
    ] * 2


def test_a_worker_holds_the_locks_of_all_hosts_that_mpirun_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], int]] = []
    cluster = cast(Cluster, SimpleNamespace(
        entries={}, results={name: HostResult(name, outcome="ok") for name in ("n1", "n2")},
        each=lambda work, names, together=1: asked.append((names, together)),
        work=lambda verb, work: work(SimpleNamespace(parts={})),
    ))  # fmt: skip
    monkeypatch.setattr(divided, "test_all", lambda *given: given[-1]([[mpirun.role(two(), 5)]]))
    monkeypatch.setattr(divided, "conclude", lambda run, *given: run)
    divided.run_tests(cluster, wanted=Wanted(Pairing("ring"), ("collective",), 5, mpirun=True))
    assert asked[1:] == [(["n1", "n2"], 2)]


def test_mpirun_gets_no_ipv6_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """In --host, a colon separates the slots."""
    both = [replace(each, end=replace(each.end, address=f"fd00::{each.rank}")) for each in two()]
    monkeypatch.setattr(rounds, "planned", lambda *given: (both, []))
    fabric = one_run(lambda jobs: pytest.fail("mpirun ran"))
    assert [(each.status, each.summary) for each in fabric.findings] == [
        ("skip", "mpirun needs an IPv4 address of each host: n1 mlx5_0:1, n2 mlx5_0:1 has none")
    ] * 2
