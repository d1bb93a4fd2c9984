"""Batches: every host exactly once, never two of one place together, sizes as asked for, and when it stops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base.errors import BugError, ConvergeError, UnreachableError, Where
from gpuready.base.fields import BATCH
from gpuready.contract.rollout import MAX_FAIL, NO_SHARE, WHOLE, Batch, Member, Rollout, Share, batches, reasons
from gpuready.inventory.hosts import Connection, HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.result.exitcode import exit_code
from gpuready.result.human import human
from gpuready.result.model import HostResult
from gpuready.run.evaluate import plan_batches, went_wrong
from tests.report.test_report_runs import (
    BROKEN,
    DOCKER,
    NO_RUNTIME,
    TOOLKIT,
    UNSEEN,
    blocked,
    component,
    differing,
    host,
    run,
)

SIZE = st.one_of(st.integers(1, 30).map(str), st.integers(1, 100).map(lambda n: f"{n}%"))
SIZES = st.lists(SIZE, min_size=1, max_size=4).map(",".join)


@st.composite
def members(draw: st.DrawFn) -> list[Member]:
    count = draw(st.integers(0, 40))
    racks = st.none() | st.integers(0, 3).map(lambda n: ("rack", f"r{n}"))
    sizes = st.just("") | SIZES
    return [Member(f"n{i}", draw(st.booleans()), draw(sizes), draw(racks)) for i in range(count)]


def rolled(hosts: list[Member], wish: str, proofs: list[bool], share: Share = WHOLE) -> list[Batch]:
    """All batches; whether each proved something comes from ``proofs``, and is true after them."""
    rollout, found, proved = batches(hosts, wish, share), list[Batch](), None
    try:
        while True:
            found.append(rollout.send(proved))
            proved = proofs.pop(0) if proofs else True
    except StopIteration:
        return found


@given(members(), st.just("") | SIZES, st.lists(st.booleans(), max_size=20))
def test_any_hosts_in_any_batches(hosts: list[Member], wish: str, proofs: list[bool]) -> None:
    by_name = {m.name: m for m in hosts}
    found = rolled(hosts, wish, proofs)
    assert all(found), "a batch without hosts"
    assert sorted(name for batch in found for name in batch) == sorted(by_name), "each host exactly once"
    for batch in found:
        places = [by_name[name].spread for name in batch if by_name[name].spread and (wish or by_name[name].disturbed)]
        assert len(places) == len(set(places)), "two of one place, whose work could be affected"
        own = [by_name[name].sizes for name in batch if by_name[name].disturbed] if wish else []
        for asked in filter(None, (wish, *own)):
            if "%" not in asked:
                assert len(batch) <= max(map(int, asked.split(","))), "larger than the smaller of the two sizes"


@given(members(), st.just("") | SIZES)
def test_batches_do_not_grow_before_a_success(hosts: list[Member], wish: str) -> None:
    plain = [Member(m.name, m.disturbed) for m in hosts]
    staged = [batch for batch in rolled(plain, wish, [False] * 60) if wish or batch[0] in disturbed(plain)]
    assert all(len(batch) <= len(staged[0]) for batch in staged)


def disturbed(hosts: list[Member]) -> set[str]:
    return {m.name for m in hosts if m.disturbed}


def hosts(count: int, first: int = 1, **more: object) -> list[Member]:
    return [Member(f"n{i}", **{"disturbed": True, **more}) for i in range(first, first + count)]  # type: ignore[arg-type]


def sizes(found: list[Batch]) -> list[int]:
    return [len(batch) for batch in found]


@pytest.mark.parametrize(
    ("count", "wish", "expected"),
    [
        (1, "", [1]),
        (3, "", [1, 1, 1]),
        (10, "", [1, 2, 2, 2, 2, 1]),
        (200, "", [1, 50, 50, 50, 49]),
        (10, "3", [3, 3, 3, 1]),
        (10, "100%", [10]),
        (10, "1,25%,50%", [1, 2, 5, 2]),
        (10, "5%", [1] * 10),
        (0, "", []),
    ],
)
def test_sizes(count: int, wish: str, expected: list[int]) -> None:
    assert sizes(rolled(hosts(count), wish, [])) == expected


def test_where_nothing_is_disturbed_all_go_at_once_and_first() -> None:
    calm = hosts(5, first=10, disturbed=False, spread=("rack", "a"), sizes="2")
    found = rolled(hosts(2) + calm, "", [])
    assert found[0] == tuple(m.name for m in calm)
    assert sizes(found) == [5, 1, 1]
    assert sizes(rolled(calm, "2", [])) == [1] * 5  # who asks for batches gets them


def test_each_wish_is_a_sequence_of_its_own() -> None:
    found = rolled(hosts(4, sizes="2") + hosts(8, first=5, sizes="50%"), "", [])
    assert found == [("n1", "n2"), ("n3", "n4"), ("n5", "n6", "n7", "n8"), ("n9", "n10", "n11", "n12")]


def test_one_host_succeeds_before_larger_batches() -> None:
    """The first two wait for something, so they tell nothing about the rest."""
    assert sizes(rolled(hosts(10), "", [False, False])) == [1, 1, 1, 2, 2, 2, 1]


def test_a_rack_at_a_time() -> None:
    racks = [Member(f"n{i}", True, "", ("rack", "ab"[i % 2])) for i in range(8)]
    assert rolled(racks, "4", []) == [("n0", "n1"), ("n2", "n3"), ("n4", "n5"), ("n6", "n7")]


@pytest.mark.parametrize(
    ("wrong", "total", "limit", "begun"),
    [
        ([], 4, "0", 4), ([1], 4, "0", 1), ([3], 4, "0", 3), ([1], 4, "1", 4), ([1, 3], 4, "1", 3),
        ([1, 2], 20, "10%", 20), ([1, 2, 5], 20, "10%", 5), ([1], 5, "10%", 1), ([1, 2, 3, 4, 5], 5, "100%", 5),
    ],
)  # fmt: skip
def test_when_it_stops(wrong: list[int], total: int, limit: str, begun: int) -> None:
    """One at a time; those of these numbers go wrong."""
    rollout = Rollout(hosts(total), "1", limit)
    seen = []
    for (name,) in rollout:
        seen.append(name)
        rollout.record(wrong=[name] if int(name[1:]) in wrong else [], proved=True)
    assert seen == [f"n{i}" for i in range(1, begun + 1)]
    assert rollout.left == [f"n{i}" for i in range(begun + 1, total + 1)]
    if rollout.left:
        assert rollout.why.endswith(f"failed, and --max-fail is {limit}")


def test_a_rollout_that_is_cut_off() -> None:
    rollout = Rollout(hosts(3))
    assert next(iter(rollout)) == ("n1",)
    assert (rollout.left, rollout.why) == (["n2", "n3"], "interrupted")


def test_the_forms_of_sizes_and_limits() -> None:
    good, bad = ("1", "25%", "100%", "1,25%", "2,10,50%"), ("", "0", "0%", "101%", "1,", ",1", "-1", "1 ,2", "x", "1%%")
    assert all(BATCH.fullmatch(text) for text in good) and not any(BATCH.fullmatch(text) for text in bad)
    assert all(MAX_FAIL.fullmatch(text) for text in ("0", "3", "0%", "10%", "100%"))
    assert not any(MAX_FAIL.fullmatch(text) for text in ("", "-1", "101%", "1,2", "many"))


DOES_NOT = ConvergeError("docker did not start")
CANNOT = ConvergeError(BROKEN.error)


@pytest.mark.parametrize(
    ("found", "before", "wrong"),
    [
        (host("a", "changed", component(DOCKER, changed=True)), set(), False),
        (host("a", "pending", component(DOCKER, pending="until idle")), set(), False),
        (host("a", "failed", component(DOCKER, error=DOES_NOT), error=DOES_NOT), set(), True),
        (host("a", "unreachable", component(DOCKER), error=UnreachableError("gone")), set(), True),
        (host("a", "failed", component(DOCKER), error=BugError("bug")), set(), True),
        (host("a", "failed", component(BROKEN, error=CANNOT), error=CANNOT), set(), False),
        (host("a", "failed", component(TOOLKIT, changed=True), component(BROKEN, error=CANNOT)), set(), False),
        (host("a", "failed", component(TOOLKIT, error=DOES_NOT), component(BROKEN, error=CANNOT)), set(), True),
        (host("a", "changed", component(DOCKER), checks=(NO_RUNTIME, UNSEEN)), set(), True),
        (host("a", "changed", component(DOCKER), checks=(NO_RUNTIME, UNSEEN)), {"docker.runtime"}, False),
    ],
    ids=[
        "changed", "waits", "failed", "gone", "bug", "was broken before", "was broken in part", "failed beside it",
        "a check fails", "which failed before",
    ],
)  # fmt: skip
def test_what_keeps_the_next_batch_from_beginning(found: HostResult, before: set[str], wrong: bool) -> None:
    assert went_wrong(found, before) is wrong


def test_a_host_that_failed_before_the_change_is_in_no_batch() -> None:
    spec = NodeSpec()
    entries = {name: HostEntry(name, Connection(name), spec, (), (), Where("")) for name in ("gpu01", "gpu02")}
    made = run("apply", blocked("failed"), differing("gpu02"))
    assert [member.name for member in plan_batches(made, entries, "1")] == ["gpu02"]
    assert made.batches == [("gpu02",)]


def test_a_host_whose_turn_never_came() -> None:
    left = host("b", "would_change", component(DOCKER))
    left.leave_out("not begun: a failed, and --max-fail is 0")
    whole = run("apply", host("a", "failed", error=DOES_NOT), left)
    assert exit_code(whole) == 1 and exit_code(run("apply", left)) == 6
    shown = human(whole, 1)
    assert "docker: not attempted on b" in shown and "b: not begun: a failed" in shown and "NOT ATTEMPTED" in shown


def test_batches_are_shown_where_there_are_several() -> None:
    whole = run("plan", *(host(f"n{i}", "would_change", component(TOOLKIT)) for i in range(1, 61)))
    whole.batches = [("n1",), *(tuple(f"n{i}" for i in range(a, a + 5)) for a in range(2, 61, 5))]
    shown = human(whole, 0)
    assert "in 13 batches, one after another\n  hosts:   1: n1; 2: n[2-6]; " in shown and "; and 5 more\n" in shown
    assert "affects: trainer (nvcr.io/nvidia/pytorch:26.01-py3)" in shown
    whole.batches = [tuple(m.name for m in whole.hosts)]
    assert "batches" not in human(whole, 0)


@pytest.mark.parametrize(
    ("members", "given", "said"),
    [
        (hosts(3), "", ["of hosts whose changes are of class recreate or above, one goes first"]),
        (hosts(3), "2", ["--batch 2"]),
        (hosts(2, sizes="1") + hosts(2, 3, spread=("rack", "a")), "",
         ["maintenance.batch 1", "of hosts whose", "maintenance.spread_by: never two hosts of one rack"]),
        (hosts(2, sizes="1", disturbed=False), "", []),
        (hosts(2, disturbed=False, spread=("rack", "a")), "5%", ["--batch 5%", "maintenance.spread_by: never two"]),
    ],
)  # fmt: skip
def test_the_reasons_of_batches(members: list[Member], given: str, said: list[str]) -> None:
    found = reasons(members, given)
    assert len(found) == len(said) and all(map(str.startswith, found, said)), found
    whole = run("plan", *(host(m.name, "would_change", component(TOOLKIT)) for m in members))
    whole.batches, whole.why_batches = [(m.name,) for m in members], found
    assert ("  why:     " in human(whole, 0)) == bool(said)


# --- shards of one run, at the same time


@given(members(), SIZES, st.integers(1, 12), st.data())
def test_all_shards_together_keep_within_the_budget(
    hosts: list[Member], wish: str, count: int, data: st.DataObject
) -> None:
    """Whichever hosts each shard has, and whichever batch of it runs: no more hosts at once than in one run."""
    plain = [Member(m.name, m.disturbed) for m in hosts]
    shard_of = {m.name: data.draw(st.integers(0, count - 1)) for m in plain}
    of_shards = [
        rolled([m for m in plain if shard_of[m.name] == rank], wish, [], Share(rank, count)) for rank in range(count)
    ]
    for stage, word in enumerate(words := wish.split(",")):
        last = stage == len(words) - 1
        at_once = sum(
            max((len(batch) for batch in (found[stage:] if last else found[stage : stage + 1])), default=0)
            for found in of_shards
        )
        whole = len(plain) * int(word[:-1]) // 100 if "%" in word else int(word)
        assert at_once <= max(whole, count == 1)
    begun = [name for found in of_shards for batch in found for name in batch]
    assert len(begun) == len(set(begun))


@pytest.mark.parametrize(("budget", "count", "parts"), [
    ("4", 3, ["2", "1", "1"]), ("1", 3, ["1", "0", "0"]), ("3,25%", 2, ["2,25%", "1,25%"]), ("10%", 2, ["10%", "10%"]),
])  # fmt: skip
def test_the_parts_of_a_budget(budget: str, count: int, parts: list[str]) -> None:
    assert [Share(rank, count).of_budget(budget) for rank in range(count)] == parts


def test_by_default_each_shard_begins_with_one_host() -> None:
    """As one run does: nobody set a budget that the shards could exceed together."""
    one = [Member(f"n{i}", disturbed=True) for i in range(8)]
    assert rolled(one, "", [], Share(2, 3)) == rolled(one, "", []) and len(rolled(one, "", [])[0]) == 1
    calm = [Member(f"n{i}") for i in range(8)]
    assert rolled(calm, "", [], Share(2, 3)) == [tuple(m.name for m in calm)]


def test_a_shard_without_a_share_begins_no_host_and_says_why() -> None:
    for wish in ("1", "1,100%", "24%"):
        rollout = Rollout([Member(f"n{i}") for i in range(4)], wish, "0", Share(1, 2))
        assert list(rollout) == [] and rollout.left == ["n0", "n1", "n2", "n3"] and rollout.why == NO_SHARE


def test_max_fail_is_divided() -> None:
    hosts = [Member(f"n{i}") for i in range(6)]
    begun: list[list[Batch]] = []
    for rank in range(2):
        rollout = Rollout(hosts, "2", "1", Share(rank, 2))
        begun.append([])
        for batch in rollout:
            begun[-1].append(batch)
            rollout.record(wrong=batch, proved=True)
    assert begun == [[("n0",), ("n1",)], [("n0",)]]
    assert rollout.why == "n0 failed, and --max-fail is 1 in all shards, 0 in this one"
