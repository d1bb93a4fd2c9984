"""Shards: each host in exactly one, a failure domain whole, the same everywhere, and whoever else is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base.errors import UsageError, Where
from gpuready.inventory.hosts import Connection, HostEntry
from gpuready.inventory.shards import parse_shard, shards
from gpuready.model.spec import NodeSpec

SPEC = NodeSpec()


def entry(name: str, rack: str | None = None) -> HostEntry:
    spread = None if rack is None else ("rack", rack)
    return HostEntry(name, Connection(name), SPEC, (), (), Where(""), spread)


HOSTS = st.dictionaries(st.text(min_size=1, max_size=8), st.none() | st.sampled_from("abcde"), max_size=30)


@given(HOSTS, st.integers(1, 20), st.text(min_size=1, max_size=8))
def test_any_hosts_in_any_shards(hosts: dict[str, str | None], count: int, new: str) -> None:
    entries = [entry(name, rack) for name, rack in hosts.items()]
    found = shards(entries, count)
    assert list(found) == list(hosts) and set(found.values()) <= set(range(1, count + 1))
    for rack in "abcde":
        assert len({found[name] for name in hosts if hosts[name] == rack}) <= 1, "a rack is divided"
    if new not in hosts:
        assert {**found, **shards([entry(new)], count)} == shards([entry(new), *entries], count), "a host moved"


def test_the_shard_of_a_host_is_the_same_everywhere_and_for_ever() -> None:
    """The SHA-256 that sha256sum prints, as a number, modulo 3, plus 1."""
    names = [entry(f"gpu{number:02}") for number in range(1, 9)] + [entry("a", "a"), entry("b", "b"), entry("ü")]
    assert list(shards(names, 3).values()) == [3, 3, 3, 3, 3, 1, 3, 2, 1, 2, 2]


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/3", "a/b", "1/", "/3", "١/٣", "1/100000"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(UsageError, match="not a shard"):
        parse_shard(text)


def test_what_is_a_shard() -> None:
    assert (parse_shard("1/1"), parse_shard("03/12"), parse_shard("99999/99999")) == ((1, 1), (3, 12), (99999, 99999))
