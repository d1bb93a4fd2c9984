"""Rounds by property: who is to meet meets once, and no host is in two pairs at once."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base.errors import UsageError
from gpuready.fabric.schedule import Pairing, Round, pairing

HOSTS = st.lists(st.text("abcdef0123456789-", min_size=1, max_size=6), unique=True, max_size=40)
PAIRINGS = st.sampled_from(["ring", "all", "random:1", "random:3", "random:1000"])


def meetings(rounds: tuple[Round, ...]) -> Counter[frozenset[str]]:
    return Counter(frozenset(pair) for found in rounds for pair in found)


@given(HOSTS, PAIRINGS, st.integers(0, 1 << 32))
def test_no_host_is_in_two_pairs_at_once_and_no_pair_meets_twice(hosts: list[str], text: str, seed: int) -> None:
    rounds = pairing(text, seed).rounds(hosts)
    for found in rounds:
        busy = [host for pair in found for host in pair]
        assert found
        assert len(busy) == len(set(busy))
        assert set(busy) <= set(hosts)
    assert set(meetings(rounds).values()) <= {1}


@given(HOSTS)
def test_all_is_each_with_each_in_the_fewest_rounds(hosts: list[str]) -> None:
    rounds = Pairing("all").rounds(hosts)
    assert set(meetings(rounds)) == {frozenset(pair) for pair in combinations(hosts, 2)}
    assert len(rounds) == (0 if len(hosts) < 2 else len(hosts) - 1 + len(hosts) % 2)


@given(HOSTS)
def test_a_ring_is_each_with_the_next(hosts: list[str]) -> None:
    rounds = Pairing("ring").rounds(hosts)
    wanted = {frozenset((host, hosts[i - 1])) for i, host in enumerate(hosts) if hosts[i - 1] != host}
    assert set(meetings(rounds)) == wanted
    assert len(rounds) <= 3


@given(HOSTS, st.integers(1, 60), st.integers(0, 1 << 32))
def test_random_is_that_many_meetings_for_each_and_the_seed_decides_which(
    hosts: list[str], count: int, seed: int
) -> None:
    rounds = Pairing("random", count, seed).rounds(hosts)
    assert rounds == Pairing("random", count, seed).rounds(list(hosts))
    each = Counter(host for found in rounds for pair in found for host in pair)
    most = min(count, len(hosts) - 1)
    for host in hosts if len(hosts) > 1 else ():
        assert each[host] in ((most,) if len(hosts) % 2 == 0 else (count - 1, most, len(hosts) - 1))


def test_another_seed_makes_other_pairs() -> None:
    hosts = [f"n{i}" for i in range(20)]
    assert len({Pairing("random", 1, seed).rounds(hosts) for seed in range(10)}) == 10


@pytest.mark.parametrize("text", ["", "rings", "random", "random:", "random:0", "random:-1", "random:1.5", "all:2"])
def test_what_is_no_way_to_make_pairs_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="unknown pairing"):
        pairing(text, 0)


@pytest.mark.parametrize("text", ["ring", "all", "random:12"])
def test_a_pairing_is_shown_as_it_was_given(text: str) -> None:
    assert str(pairing(text, 1)) == text
