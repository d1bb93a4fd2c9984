"""``fabric --tests collective``: the figures from raw times, the verdict, and the search for the host that is bad."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gpuready.base import resources
from gpuready.fabric.collective import SHARES, TEST, Measured, Outcome, Scope, Search, find, findings, judged, size_text
from gpuready.fabric.counters import Snapshot
from gpuready.fabric.job import Role, planned
from gpuready.fabric.job import start as job_start
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.search import Group, Trial, bound, in_order, named, next_round
from gpuready.fabric.verdict import Answer
from gpuready.model.spec import NodeSpec
from gpuready.model.verify import Thresholds
from gpuready.result.model import HostResult
from gpuready.verbs.fabric.rounds import Hosts
from gpuready.verbs.fabric.rounds import test_all as run_rounds
from tests.fabric.test_fabric_training import NAMES, NO_GPUS
from tests.network.test_tcp_choice import state
from tests.verbs.render.test_kubernetes import node

MIB = 1 << 20
LIMITS = Thresholds()
LIMITED = Thresholds(collective=0.1)
#: nccl-tests' doc/PERFORMANCE.md: bus bandwidth is algorithm bandwidth times this, for n ranks.
FACTORS = {"all_reduce": "2(n-1)/n", "all_gather": "(n-1)/n", "reduce_scatter": "(n-1)/n", "all_to_all": "(n-1)/n"}


def roles(gpus: int = 0) -> list[Role]:
    if gpus:
        spec = NodeSpec.model_validate({"hardware": {"gpus": gpus}})
        states = {name: node(int(name[1])) for name in NAMES}
    else:
        spec, states = NO_GPUS, {name: state(f"eth0 virtio_net 10.0.0.{name[1]}/24") for name in NAMES}
    found, wrong = planned(TEST, partial(Scope().arguments, 1, not gpus), 4, states, dict.fromkeys(states, spec))
    assert not wrong
    return found


def line(rank: int, collective: str = "all_reduce", size: int = 3 * MIB, **more: object) -> str:
    row = {"collective": collective, "size": size, "rank": rank, **more}
    return json.dumps(row) + "\n"


def answer(rank: int, *lines: str, rc: int = 0, done: bool = True, moved: int = 1 << 30) -> Answer:
    before, after = (Snapshot("", {"net/tx_bytes": size, "net/rx_bytes": size}) for size in (0, moved))
    return Answer(rc, "".join(lines) + (f"done: rank {rank}\n" if done else ""), before, after)


def timed(rank: int, seconds: float = 0.12, collective: str = "all_reduce") -> str:
    return line(rank, collective, iterations=20, seconds=seconds)


GOOD = [answer(rank, timed(rank, 0.12 + 0.06 * rank)) for rank in range(3)]


@pytest.mark.parametrize(("collective", "factor"), FACTORS.items())
def test_bandwidths_are_those_of_nccl_tests_recomputed_from_the_raw_times(collective: str, factor: str) -> None:
    seconds = [0.12, 0.18, 0.24]
    found = judged(roles(), [answer(n, timed(n, each, collective)) for n, each in enumerate(seconds)], LIMITS)
    (figure,) = found.measured
    one = sum(seconds) / 3 / 20  # the average of all ranks
    algorithm = 3 * MIB / one / 1e9
    n = 3
    share = {"2(n-1)/n": 2 * (n - 1) / n, "(n-1)/n": (n - 1) / n}[factor]
    assert (figure.size, figure.ranks, figure.iterations) == (3 * MIB, 3, 20)
    assert figure.microseconds == pytest.approx(one * 1e6)
    assert figure.algbw == pytest.approx(algorithm, abs=1e-4)
    assert figure.busbw == pytest.approx(algorithm * share, abs=1e-4)
    assert found.status == "pass" and found.passed


def test_what_four_h200_gave_names_the_one_that_had_other_work() -> None:
    recorded = Path(__file__).parents[1] / "data/results/collective-slow.json"
    found = json.loads(recorded.read_text("utf-8"))["fabric"]
    assert found["search"]["named"] == ["n2"]
    for row in found["collectives"]:
        measured = Measured(*(row[key] for key in ("collective", "size", "ranks", "iterations", "microseconds")))
        assert (measured.algbw, measured.busbw) == pytest.approx((row["algbw"], row["busbw"]), abs=1e-4)
        assert row["busbw"] == pytest.approx(
            row["size"] / row["microseconds"] / 1e3 * SHARES[row["collective"]](4), abs=1e-3
        )


@pytest.mark.parametrize(
    ("answers", "status", "fault", "summary"),
    [
        ([*GOOD[:2], answer(2, line(2, wrong=7), done=False)], "fail", "wrong",
         "wrong result: all-reduce of 3 MiB on rank 2 (n3)"),
        ([answer(n, line(n, "all_gather", wrong=9, sources=[1])) for n in range(3)], "fail", "wrong",
         "wrong result: all-gather of 3 MiB on ranks 0, 1, 2 (n[1-3]); the data of rank 1 (n2)"),
        ([GOOD[0], answer(1, timed(1), "[rank1]: RuntimeError: Timed out waiting 12000ms for recv\n", rc=1),
          Answer(None)], "fail", "failed", "ended after all-reduce of 3 MiB: n2: RuntimeError: Timed out waiting"),
        ([*GOOD[:2], Answer(124, "")], "fail", "failed", "ended after all-reduce of 3 MiB: n3: torchrun did not end"),
        ([*GOOD[:2], answer(2, timed(2), done=False)], "unknown", "", "n3: not every rank came to its end"),
        ([*GOOD[:2], Answer(trouble="the connection broke")], "unknown", "",
         "the job was ended: n3: the connection broke"),
        ([*GOOD[:2], Answer(missing="there is no /x")], "skip", "", "n3: there is no /x"),
        ([answer(n, line(n, "all_to_all", lacking="gloo does not support it")) for n in range(3)], "unknown", "",
         "this backend has none of the collectives"),
    ],
)  # fmt: skip
def test_what_goes_wrong_and_whether_a_search_helps(
    answers: list[Answer], status: str, fault: str, summary: str
) -> None:
    found = judged(roles(), answers, LIMITS)
    assert (found.status, found.fault) == (status, fault) and found.summary.startswith(summary), found
    assert found.passed is (False if fault else None)


def test_a_search_measures_the_size_that_was_wrong_although_ranks_rounded_it_down() -> None:
    found = judged(roles(), [answer(n, line(n, size=MIB // 12 * 12, wrong=1)) for n in range(3)], LIMITS)
    options = found.scope.arguments(5, True, 150)
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert int(given["--least"]) <= int(given["--most"]) < 4 * MIB and given["--collectives"] == "all_reduce"


def test_a_collective_that_the_backend_lacks_is_said_and_fails_nothing() -> None:
    lines = [timed(n) + line(n, "all_to_all", lacking="gloo does not support alltoall") for n in range(3)]
    found = judged(roles(), [answer(n, each) for n, each in enumerate(lines)], LIMITS)
    assert found.status == "pass"
    assert found.summary.endswith("all-to-all is not available here: gloo does not support alltoall")


def test_limits_are_the_specs_or_a_share_of_all_rails() -> None:
    plain = judged(roles(), GOOD, LIMITS)
    assert plain.limit is None and "no limit over TCP" in plain.summary
    slow = judged(roles(), GOOD, Thresholds(collective=5))
    assert (slow.status, slow.fault, slow.limit) == ("fail", "slow", 5.0)
    assert slow.scope.collectives == ("all_reduce",) and 3 * MIB < slow.scope.most < 12 * MIB
    rails = [replace(role, ranks=1, rails_gbps=rate) for role, rate in zip(roles(8), (400, 400, 200), strict=True)]
    assert judged(rails, GOOD, LIMITS).limit == pytest.approx(0.85 * 0.8 * 200 / 8)
    assert judged([replace(rails[0], rails_gbps=None), *rails[1:]], GOOD, LIMITS).limit is None


def test_the_ports_of_a_host_are_added_up() -> None:
    rates = {role.rails_gbps for role in roles(8)}
    assert len(rates) == 1 and (rates.pop() or 0) > 0 and {role.ranks for role in roles(8)} == {8}


def test_the_time_to_start_grows_with_the_ranks() -> None:
    """All ranks of all hosts count; the limit of torchrun has room for it, and for the measurement."""
    for gpus, start in ((0, 150), (8, 152)):
        for role in roles(gpus):
            given = dict(zip(role.command.arguments[::2], role.command.arguments[1::2], strict=True))
            assert (int(given["--connect"]), role.command.limit) == (start, start + 30 + 4)
    assert job_start(16_384) > 10 * job_start(1)


#: Options of torchrun (torch/distributed/run.py of PyTorch 2.11) that take a value, or are long.
TORCHRUN = """
    duplicate-stderr-filters duplicate-stdout-filters event-log-handler local-addr local-ranks-filter log-dir logs-specs
    master-addr master-port max-restarts module monitor-interval nnodes no-python node-rank nproc-per-node numa-binding
    rdzv-backend rdzv-conf rdzv-endpoint rdzv-id redirects role run-path signals-to-handle standalone start-method tee
    virtual-local-rank
"""


def test_no_option_of_the_script_is_short_for_one_of_torchrun() -> None:
    """Python before 3.12.7 looks for options also behind the script, and refuses what is short for two."""
    scripts = [role.command.arguments for role in roles(8)] + [("--seconds", "5")]
    for option in {word[2:] for arguments in scripts for word in arguments if word.startswith("--")}:
        assert not [each for each in TORCHRUN.split() if each.startswith(option)], option


def test_eight_gpus_of_one_host_have_the_limit_of_their_model() -> None:
    one = [replace(roles(8)[0], ranks=8)]
    text = "gpu: NVIDIA H200\n" * 8 + "".join(timed(n) + f"done: rank {n}\n" for n in range(8))
    found = judged(one, [replace(GOOD[0], text=text)], LIMITS)
    assert found.fault == "slow" and found.limit and 200 < found.limit < 432, found


def test_a_size_that_ranks_rounded_down_keeps_its_unit() -> None:
    assert [size_text(size) for size in (MIB // 12 * 12, MIB, 16 << 30, 3 << 10, 12)] == [
        "1 MiB", "1 MiB", "16 GiB", "3 KiB", "12 B",
    ]  # fmt: skip


def test_figures_count_only_with_proof() -> None:
    some = [*GOOD[:2], answer(2, timed(2), moved=4000)]
    made = findings(roles(), some, judged(roles(), some, LIMITS), None)
    assert [each.status for each in made] == ["pass", "pass", "fail"]
    assert made[2].summary.endswith("but not through eth0")


# --- who is wrong


def searched(
    count: int, bad: set[str], *, alone: bool = True, racks: Mapping[str, str] | None = None
) -> tuple[Group, int]:
    """What the search names, and its rounds. ``alone``: a bad host fails by itself, too; a bad port does not."""
    hosts = in_order(tuple(f"n{number}" for number in range(count)), racks or {})
    trials, rounds = [Trial(hosts, False)], 0
    while groups := next_round(trials, racks):
        members = [member for group in groups for member in group]
        assert len(members) == len(set(members)), "no host is in two tests at once"
        trials += [Trial(group, not bad & set(group) or (len(group) == 1 and not alone)) for group in groups]
        rounds += 1
    return named(trials), rounds


@pytest.mark.parametrize("alone", [True, False])
def test_any_single_bad_host_is_named_within_the_bound(alone: bool) -> None:
    for count in range(2 if alone else 3, 65):
        for number in range(count):
            found, rounds = searched(count, {f"n{number}"}, alone=alone)
            assert found == (f"n{number}",) and rounds <= bound(count), (count, number, found, rounds)


@pytest.mark.parametrize("alone", [True, False])
def test_of_two_bad_hosts_at_least_one_is_named_and_never_a_good_one(alone: bool) -> None:
    for count in (*range(2, 12), 33):
        for pair in combinations((f"n{number}" for number in range(count)), 2):
            found, rounds = searched(count, set(pair), alone=alone)
            assert set(found) <= set(pair) and rounds <= bound(count), (count, pair, found, rounds)
            assert found or (count < 4 and not alone), (count, pair)


def racked(*sizes: int) -> dict[str, str]:
    """Hosts in racks of these sizes, whose names are not in the order of the racks."""
    racks = [f"r{number}" for number, size in enumerate(sizes) for _ in range(size)]
    return dict(zip((f"n{number}" for number in reversed(range(len(racks)))), racks, strict=True))


@pytest.mark.parametrize("alone", [True, False])
def test_halves_follow_the_racks_within_the_same_bound(alone: bool) -> None:
    sizes = [(2, 2), (1, 1, 1), (4, 4), (3, 5), (7, 1), (4, 4, 4, 4), (5, 3, 5, 3), (8, 8, 8, 8, 8), (16, 16, 4),
             (1,) * 9, (20, 12, 8, 5, 3, 2, 1), (32, 32), (40, 24)]  # fmt: skip
    for each in sizes:
        racks = racked(*each)
        hosts = tuple(f"n{number}" for number in range(len(racks)))
        for bad in hosts:
            found, rounds = searched(len(hosts), {bad}, alone=alone, racks=racks)
            assert found == (bad,) and rounds <= bound(len(hosts)), (each, bad, found, rounds)


def test_the_first_halves_are_whole_racks_where_the_middle_is_near() -> None:
    def first(*sizes: int) -> list[list[str]]:
        racks = racked(*sizes)
        hosts = in_order(tuple(racks), racks)
        return [[racks[host] for host in half] for half in next_round([Trial(hosts, False)], racks)]

    assert first(4, 4) == [["r0"] * 4, ["r1"] * 4]
    assert first(5, 3) == [["r0"] * 5, ["r1"] * 3]
    assert first(2, 2, 2) == [["r0"] * 2, ["r1"] * 2 + ["r2"] * 2]
    assert first(2, 3, 2, 2) == [["r0", "r0", "r1", "r1", "r1"], ["r2", "r2", "r3", "r3"]]
    assert first(7, 1) == [["r0"] * 4, ["r0", "r0", "r0", "r1"]]  # too far from the middle


def uplink(racks: Mapping[str, str], bad: str) -> tuple[Search, list[Sequence[Group]]]:
    """The search over racks of which one has a bad uplink: what spans racks and includes this one fails."""
    asked: list[Sequence[Group]] = []

    def test(groups: Sequence[tuple[Group, tuple[int, ...]]]) -> list[Outcome]:
        asked.append([names for names, _ in groups])
        spans = [{racks[name] for name in names} for names, _ in groups]
        wrong = [len(each) > 1 and bad in each for each in spans]
        return [Outcome("fail", "slow", fault="slow") if each else Outcome("pass", "fine") for each in wrong]

    return find(tuple(racks), dict.fromkeys(racks, 0), test, racks), asked


def test_a_bad_uplink_between_racks_is_said() -> None:
    found, asked = uplink({f"n{number}": f"r{number % 2}" for number in range(4)}, "r1")
    assert found.named == () and asked == [[("n0", "n2"), ("n1", "n3")]]
    assert "n[0-3] fail together; n[0,2] and n[1,3] pass by themselves" in found.summary
    assert found.summary.endswith("look at what connects these racks"), found.summary
    names = tuple(f"n{number}" for number in range(4))
    for places in ({}, dict.fromkeys(names, "r0")):
        passes = find(names, dict.fromkeys(names, 0), lambda groups: [Outcome("pass", "")] * len(groups), places)
        assert passes.summary.endswith("look at what connects these parts"), passes.summary


@pytest.mark.parametrize(
    ("bad", "summary"),
    [
        ("r0", "n[12-19] fail together; n[16-19] and n[12-15] pass by themselves"),
        ("r2", "n[0-11] fail together; n[8-11] and n[0-7] pass by themselves"),
        ("r4", "n[0-7] fail together; n[4-7] and n[0-3] pass by themselves"),
    ],
)
def test_which_of_five_racks_has_the_bad_uplink_is_said(bad: str, summary: str) -> None:
    found, _ = uplink(racked(4, 4, 4, 4, 4), bad)
    assert summary in found.summary and found.summary.endswith("these racks"), found.summary


@pytest.mark.parametrize("count", range(2, 8))
def test_a_bad_uplink_of_one_rack_names_no_host(count: int) -> None:
    """A test fails if it spans racks and the bad one is among them."""
    for sizes in (*((size,) * count for size in (2, 3, 4, 8)), (4, 5, 2), (5, 5, 2)):
        racks = racked(*sizes)
        for bad in sorted(set(racks.values())):
            found, _ = uplink(racks, bad)
            assert not found.named, (sizes, bad, found)


def test_the_run_hands_the_racks_to_the_search() -> None:
    names = tuple(f"n{number}" for number in range(1, 5))
    states = {name: state(f"eth0 virtio_net 10.0.0.{name[1]}/24") for name in names}
    racks = dict(zip(names, ("r1", "r2") * 2, strict=True))
    entries = {name: SimpleNamespace(spec=NO_GPUS, spread=("rack", racks[name])) for name in names}
    results = {name: HostResult(name, outcome="ok") for name in names}
    hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))
    fabric = FabricRun(Wanted(Pairing("ring"), ("collective",), 5))

    def run(jobs: Sequence[Sequence[Role]]) -> list[list[Answer]]:
        return [
            [
                answer(rank, line(rank, wrong=1) if len({racks[role.end.host] for role in job}) > 1 else timed(rank))
                for rank, role in enumerate(job)
            ]
            for job in jobs
        ]

    run_rounds(hosts, fabric, states, lambda meetings: None, run)
    assert fabric.search and [each.hosts for each in fabric.search.tried] == [("n1", "n3"), ("n2", "n4")]
    assert fabric.search.summary.endswith("look at what connects these racks")


@pytest.mark.parametrize("fault", ["wrong", "failed", "slow"])
@pytest.mark.parametrize("count", range(2, 17))
def test_a_run_over_any_number_of_hosts_names_the_bad_one_within_the_bound(count: int, fault: str) -> None:
    """A slow network is one only between hosts, so of two none is named. A wrong result and a hang are seen alone."""
    names = tuple(f"n{number}" for number in range(1, count + 1))
    states = {name: state(f"eth0 virtio_net 10.0.0.{number}/24") for number, name in enumerate(names, 1)}
    spec = NO_GPUS.model_copy(update={"verify": NO_GPUS.verify.model_copy(update={"thresholds": LIMITED})})
    entries = {name: SimpleNamespace(spec=spec, spread=None) for name in names}

    def spoilt(role: Role, job: Sequence[Role], bad: str) -> Answer:
        here = bad in [each.end.host for each in job]
        if here and fault == "failed":  # the others time out, and it is ended
            error = "[rank1]: RuntimeError: Timed out waiting 12000ms for recv\n"
            ended = len(job) > 1 and role.end.host == bad
            return Answer(None) if ended else answer(role.rank, error, rc=1, done=False)
        if here and fault == "wrong":
            return answer(role.rank, line(role.rank, wrong=1), done=False)
        return answer(role.rank, timed(role.rank, 12.0 if here and len(job) > 1 else 0.12))

    for bad in names:
        results = {name: HostResult(name, outcome="ok") for name in names}
        hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))
        fabric = FabricRun(Wanted(Pairing("ring"), ("collective",), 5))

        def run(jobs: Sequence[Sequence[Role]], bad: str = bad) -> list[list[Answer]]:
            busy = [role.end.host for job in jobs for role in job]
            assert len(busy) == len(set(busy)), "no host is in two jobs at once"
            return [[spoilt(role, job, bad) for role in job] for job in jobs]

        run_rounds(hosts, fabric, states, lambda meetings: None, run)
        search = fabric.search
        assert search and fabric.fault == fault, fabric.findings
        assert max(each.round for each in search.tried) <= search.most_rounds == bound(count)
        unnamed = count == 2 and fault == "slow"
        assert search.named == (() if unnamed else (bad,)), search
        others = "fail" if count == 2 else "pass"  # of two, the other one passed only alone
        assert {each.client.host: each.status for each in fabric.findings} == dict.fromkeys(names, others) | {
            bad: "fail"
        }


def test_of_two_hosts_with_a_bad_network_between_them_none_is_named() -> None:
    assert searched(2, {"n0"}, alone=False)[0] == ()


def test_a_fault_that_does_not_come_back_names_nobody() -> None:
    trials = [Trial(("a", "b", "c"), False), Trial(("a", "b"), True)]
    assert named(trials) == () and next_round(trials) == [("c", "a")]
    assert next_round([*trials, Trial(("c", "a"), True)]) == []


def cluster(hosts: int, gpus: int, bad: str, card: int | None = None) -> tuple[Search, list[Sequence[Group]]]:
    """The search over hosts of which one is bad: one GPU of it, or its network."""
    asked: list[Sequence[Group]] = []

    def test(groups: Sequence[tuple[Group, tuple[int, ...]]]) -> list[Outcome]:
        asked.append([names for names, _ in groups])
        found = []
        for names, cards in groups:
            alone = names == (bad,)
            wrong = bad in names and (card in (cards or range(gpus)) if card is not None else not alone)
            found.append(Outcome("fail", "wrong", fault="wrong") if wrong else Outcome("pass", "fine"))
        return found

    names = tuple(f"n{number}" for number in range(hosts))
    return find(names, dict.fromkeys(names, gpus), test), asked


def test_a_gpu_of_the_host_is_named_or_its_network() -> None:
    for card in range(8):
        found, _ = cluster(5, 8, "n3", card)
        assert (found.named, found.gpus) == (("n3",), (card,)) and f"; GPU {card}" in found.summary
        assert [each.round for each in found.tried] == sorted(each.round for each in found.tried)
    network, _ = cluster(5, 8, "n3")
    assert (network.named, network.gpus) == (("n3",), ()) and "look at its ports and cables" in network.summary
    assert set(network.cleared) == {"n0", "n1", "n2", "n4"}
    without, asked = cluster(5, 0, "n3")
    assert without.named == ("n3",) and ("n3",) not in [group for groups in asked for group in groups]


def test_after_a_search_only_the_named_host_fails() -> None:
    spoiled = [answer(n, line(n, wrong=1)) for n in range(3)]
    search = Search(4, (), ("n2",), (), ("n1", "n3"), "n2: the fault is here")
    made = findings(roles(), spoiled, judged(roles(), spoiled, LIMITS), search)
    assert [each.status for each in made] == ["pass", "fail", "pass"] and made[1].summary.startswith(
        "the fault is here; wrong"
    )
    nobody = replace(search, named=(), cleared=("n1",))
    made = findings(roles(), spoiled, judged(roles(), spoiled, LIMITS), nobody)
    assert [each.status for each in made] == ["warn", "fail", "fail"]


def test_the_script_is_python_and_gets_what_it_asks_for() -> None:
    script = resources.document("fabric/collective.py")
    compile(script, "collective.py", "exec")
    options = Scope().arguments(5, True, 150)[::2]
    assert all(f'"{option}"' in script for option in options) and len(options) == 7
    # The ranks find each other before a rank that does not start is killed.
    assert "watched(args.connect, " in script and "timeout=timedelta(seconds=0.8 * args.connect)" in script


def test_a_fault_of_all_hosts_is_none_of_one_host() -> None:
    names = ("n0", "n1", "n2")
    found = find(
        names, dict.fromkeys(names, 8), lambda groups: [Outcome("fail", "no option --x", fault="failed")] * len(groups)
    )
    assert not found.named and not found.cleared and "every host fails by itself" in found.summary
