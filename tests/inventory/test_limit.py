"""``--limit`` cannot widen: an empty variable, an open bracket or a range beside a glob never adds a host."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpuready.base.errors import GpureadyError, InventoryError, UsageError
from gpuready.inventory.ansible import YamlSource
from gpuready.inventory.groups import Graph
from gpuready.inventory.hosts import load, read
from gpuready.inventory.patterns import select
from gpuready.inventory.yaml_positions import load_text
from tests.command import Exits, write_hosts

CLUSTER = """
all:
  vars: {gpuready: {}}
  children:
    train: {hosts: {"gpu[01:12].hpc.example.com": }}
    rack1: {hosts: {"gpu[01:02].hpc.example.com": , n1: , n2: , n10: , n100: }}
    empty: {}
"""
EVERY = 12 + 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "hosts.yaml"
    path.write_text(CLUSTER)
    (tmp_path / "empty.txt").write_text("\n \n")
    yield str(path)


def chosen(cluster: str, *limit: str) -> str:
    return " ".join(entry.name.removesuffix(".hpc.example.com") for entry in load([cluster], limit=limit).chosen)


@pytest.mark.fault("empty-limit")
@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ([""], "--limit is empty"),
        ([" "], "--limit is empty"),
        ([","], "--limit , is empty"),
        ([" ::"], "--limit  :: is empty"),
        (["@empty.txt"], "empty.txt is empty"),
        (["@empty.txt,!n1"], "empty.txt is empty"),
        (["train", ""], "--limit is empty"),
        (["!"], "--limit !: no name follows !"),
        (["train:!"], "no name follows !"),
        (["train,&"], "no name follows &"),
        ([",!n1"], "--limit ,!n1: a part beside the separator is empty"),
        ([":!n1"], "a part beside the separator is empty"),
        (["!n1,"], "a part beside the separator is empty"),
        (["!n1,,!n2"], "a part beside the separator is empty"),
        (["&rack1: :!n1"], "a part beside the separator is empty"),
        (["~"], "matches the empty text"),
        (["~n1|n2|"], "matches the empty text"),
        (["~^"], "matches the empty text"),
        (["!~(n1|)"], "matches the empty text"),
        (["!@empty.txt"], "not possible with a file"),
    ],
)
def test_an_empty_limit_does_not_choose_every_host(
    limit: list[str], says: str, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(cluster).parent)
    with pytest.raises(UsageError, match=re.escape(says)) as caught:
        load([cluster], limit=limit)
    assert caught.value.remedy and caught.value.exit_code == 64


@pytest.mark.parametrize("limit", ["n1,", "n1,,", ",n1", "n1:", "@n1.txt", "@n1.txt,"])
def test_an_empty_part_beside_a_host_adds_nothing(limit: str, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(cluster).parent)
    Path("n1.txt").write_text("\nn1\n\n")
    assert chosen(cluster, limit) == "n1"


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_of_the_environment_is_refused(
    value: str, cluster: str, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_LIMIT", value)
    told = exits(64, "apply", "-i", cluster, "--list-hosts")
    assert told.out == "" and told.err.startswith("error: GPUREADY_LIMIT is empty")
    assert exits(0, "apply", "-i", cluster, "--list-hosts", "--limit", "n1").out == "n1\n"


@pytest.mark.fault("range-in-a-glob")
@pytest.mark.parametrize(
    ("limit", "names"),
    [
        ("gpu[01:02]*", "gpu01 gpu02"),
        ("gpu[01-02]*", "gpu01 gpu02"),
        ("gpu[01-02,07]*", "gpu01 gpu02 gpu07"),
        ("gpu{11..12}*", "gpu11 gpu12"),
        ("gpu[10:12].hpc.example.com", "gpu10 gpu11 gpu12"),  # not 0 and 1
        ("*[11:12].hpc*", "gpu11 gpu12"),
        ("gpu[01:12:5].*", "gpu01 gpu06 gpu11"),
        ("gpu1[0:1]*", "gpu10 gpu11"),
        ("n[1:2]*", "n1 n2"),  # not n10
        ("n[1:2]?", "n10"),
        ("n[1-2]*", "n1 n2 n10 n100"),  # a set, as in Ansible
        ("gpu[01][2]*", "gpu02 gpu12"),
        ("[a:g]pu01*", "gpu01"),
        ("gpu*[01:02]", "gpu02 gpu03"),  # a subscript, as in Ansible
        ("!gpu[01:12]*", "n1 n2 n10 n100"),
        ("rack1:&gpu[02:09]*", "gpu02"),
        ("rack[1:9]", "gpu01 gpu02 n1 n2 n10 n100"),
    ],
)
def test_a_range_beside_a_glob(limit: str, names: str, cluster: str) -> None:
    assert chosen(cluster, limit) == names


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("gpu[12:01]*", "[12:01] is an empty range"),
        ("gpu[08-01]", "[08-01] is not a range"),
        ("gpu[01:2]*", "with leading zeros, both ends need equal length"),
        ("gpu[,01]", "[,01] is not a range"),
        ("gpu[!0:2]*", "[!0:2] is not a range"),
        ("gpu[0:99999]*", "is more than 10000 hosts"),
        ("gpu[1-", "[ is not closed"),
        ("gpu[01,n1", "[ is not closed"),
        ("train,!gpu[01", "[ is not closed"),
        ("!gpu[01[02]", "[ is not closed"),
        ("gpu01]", "] has no [ before it"),
        ("~gpu[01", "[ is not closed"),
        ("~(", "not a regular expression"),
        ("~a{9999999999}", "not a regular expression"),
    ],
)
def test_what_is_no_pattern_is_refused(limit: str, says: str, cluster: str, tmp_path: Path) -> None:
    (tmp_path / "limit.txt").write_text(f"n1\n{limit}\n")
    for given_as in (limit, f"@{tmp_path}/limit.txt"):
        with pytest.raises(UsageError, match=re.escape(says)) as caught:
            load([cluster], limit=[given_as])
        assert caught.value.exit_code == 64


@pytest.mark.parametrize(
    ("limit", "meant"),
    [
        ("gpu[001-003]", "no host matches; groups: "),
        ("gpu[01-03]", "did you mean gpu[01-03].hpc.example.com?"),
        ("gpu[01:03]", "did you mean gpu[01:03].hpc.example.com?"),
        ("gpu07", "did you mean gpu07.hpc.example.com?"),
        ("gpu[06-07].hpc", "did you mean gpu[06-07].hpc.example.com?"),
    ],
)
def test_names_without_their_domain(limit: str, meant: str, cluster: str) -> None:
    with pytest.raises(InventoryError, match=re.escape(meant)):
        load([cluster], limit=[limit])
    if "did you mean " in meant:
        assert chosen(cluster, meant.removeprefix("did you mean ")[:-1])
    with pytest.raises(InventoryError, match=r"did you mean a1\.\*\?"):
        load(["a1.x,a1.y,b"], limit=["a1"])


def test_an_intersection_without_a_host_is_noted(cluster: str) -> None:
    notes: list[str] = []
    with pytest.raises(InventoryError, match="no host matches"):
        select(read([cluster]), ["&gpu07"], notes)
    assert notes == ["--limit &gpu07 matches no host; did you mean gpu07.hpc.example.com?"]


def test_an_exclusion_without_a_host_is_an_error(cluster: str, tmp_path: Path) -> None:
    """Otherwise the host that it means would be changed. A group without hosts is a note."""
    says = r"--limit !gpu07: no host matches, so none is left out; did you mean gpu07\.hpc\.example\.com\?"
    with pytest.raises(InventoryError, match=says):
        load([cluster], limit=["all:!gpu07"])
    with pytest.raises(InventoryError, match="so none is left out; groups: "):
        load([cluster], limit=["!zzzzzz"])
    hosts = write_hosts(tmp_path, "all: {hosts: {a: {gpuready: {}}}, children: {broken: {}}}\n")
    (entry,) = load([hosts], limit=["!broken"]).chosen
    assert entry.notes == ("--limit !broken matches no host",)


def test_a_position_that_looks_like_a_number_is_noted() -> None:
    (entry,) = load(["n01,n02,n03,"], limit=["n*[1:1]"]).chosen
    assert (entry.name, entry.notes) == ("n02", ())
    entries = load(["n01,n02,n03,"], limit=["n*[01:02]"]).chosen
    assert [entry.name for entry in entries] == ["n02", "n03"]
    assert entries[0].notes == ("--limit n*[01:02]: by position in n*, from 0, as in Ansible: n[02-03]",)


def test_a_limit_narrows_the_host_of_a_verb(cluster: str, exits: Exits) -> None:
    listed = ("rdma", "list", "rack1", "-i", cluster, "--list-hosts")
    assert exits(0, *listed, "--limit", "n1,train").out.split() == [
        "gpu01.hpc.example.com",
        "gpu02.hpc.example.com",
        "n1",
    ]
    assert exits(0, *listed, "--limit", "!n*").out.split() == ["gpu01.hpc.example.com", "gpu02.hpc.example.com"]
    assert "leaves it out" in exits(5, "rdma", "list", "n1", "-i", cluster, "--list-hosts", "--limit", "train").err


# A second reading of patterns, which knows their parts and needs no text and no regular expression.


class Numbers(NamedTuple):
    text: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Glob:
    """Literal text, ``*``, ``?`` and ranges; the last part is not a range, so that it is no subscript."""

    parts: tuple[str | Numbers, ...]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def names(self, name: str) -> bool:
        return _names(self.parts, name, "")


def _names(parts: tuple[str | Numbers, ...], name: str, before: str) -> bool:
    """Whether the parts can be laid side by side to make the name. ``before``: the part and the character before."""
    if not parts:
        return not name
    first, rest = parts[0], parts[1:]
    if first == "*":
        return any(_names(rest, name[at:], "*" + (name[at - 1] if at else before[1:])) for at in range(len(name) + 1))
    if first == "?":
        return bool(name) and _names(rest, name[1:], f"?{name[0]}")
    if isinstance(first, str):
        return name.startswith(first) and _names(rest, name[len(first) :], f" {first[-1:] or before[1:]}")
    if before[:1] == "*" and before[1:].isdigit():
        return False
    whole = rest[:1] == ("*",)
    return any(
        name.startswith(value)
        and not (whole and name[len(value) : len(value) + 1].isdigit())
        and _names(rest, name[len(value) :], f" {value[-1]}")
        for value in first.values
    )


@st.composite
def numbers(draw: st.DrawFn) -> Numbers:
    first, last = sorted(draw(st.tuples(st.integers(0, 13), st.integers(0, 13))))
    width = draw(st.sampled_from((1, 2)))
    values = [str(number).zfill(width) for number in range(first, last + 1)]
    if len(values[0]) != len(values[-1]) and values[0].startswith("0") and len(values[0]) > 1:
        values = values[:1]
    form = draw(st.sampled_from(("[{}:{}]", "[{}-{}]", "{{{}..{}}}", "[{}-{},99]")))
    if form.endswith("99]"):
        return Numbers(form.format(values[0], values[-1]), (*values, "99"))
    if form == "[{}-{}]" and len(values[0]) == len(values[-1]) == 1:
        form = "[{}:{}]"  # with one digit on both sides, Ansible's set
    return Numbers(form.format(values[0], values[-1]), tuple(values))


LITERALS = st.sampled_from(("gpu", "n", "1", "0", ".hpc.example.com", ".hpc", "x", "rack"))
GLOBS = st.builds(
    lambda parts, last: Glob((*parts, last)),
    st.lists(st.one_of(LITERALS, st.just("*"), st.just("?"), numbers()), max_size=4),
    st.one_of(LITERALS, st.just("*"), st.just("?")),
)
GROUPS = {
    "all": [f"gpu{n:02}.hpc.example.com" for n in range(1, 13)] + ["n1", "n2", "n10", "n100"],
    "train": [f"gpu{n:02}.hpc.example.com" for n in range(1, 13)],
    "rack1": ["gpu01.hpc.example.com", "gpu02.hpc.example.com", "n1", "n2", "n10", "n100"],
    "empty": [],
    "ungrouped": [],
}


class Term(NamedTuple):
    sign: str
    text: str
    hosts: frozenset[str]


def term(sign: str, meant: Glob | str) -> Term:
    if isinstance(meant, str):
        return Term(sign, meant, frozenset(GROUPS.get(meant, {meant} & {*GROUPS["all"]})))
    like = [group for group in GROUPS if meant.names(group)]
    hosts = {host for group in like for host in GROUPS[group]}
    if not like or any(special in meant.text for special in ".?*["):
        hosts |= {host for host in GROUPS["all"] if meant.names(host)}
    return Term(sign, meant.text, frozenset(hosts))


NAMES = st.sampled_from(("all", "train", "rack1", "empty", "n1", "n100", "gpu01", "gpu03.hpc.example.com"))
TERMS = st.lists(st.builds(term, st.sampled_from(("", "", "", "!", "&")), GLOBS | NAMES), min_size=1, max_size=4)


def meant(terms: list[Term]) -> set[str]:
    """The hosts; none if an exclusion names none."""
    if any(each.sign == "!" and not each.hosts and each.text not in GROUPS for each in terms):
        return set()
    plain = [each.hosts for each in terms if not each.sign]
    hosts = set().union(*plain) if plain else set(GROUPS["all"])
    for each in terms:
        hosts = hosts & each.hosts if each.sign == "&" else hosts - each.hosts if each.sign == "!" else hosts
    return hosts


def selected(limit: str) -> set[str]:
    """The hosts; none for an error."""
    try:
        return set(select(graph(), [limit], []))
    except GpureadyError:
        return set()


@functools.cache
def graph() -> Graph:
    found, located = Graph(), load_text(CLUSTER, "hosts.yaml")
    assert located is not None and isinstance(located.value, dict)
    YamlSource(found, []).read(located.value)
    found.reconcile()
    return found


@settings(max_examples=300, deadline=None)
@given(TERMS, st.sampled_from((",", ":", " , ")))
def test_a_limit_chooses_what_its_parts_name(terms: list[Term], separator: str) -> None:
    assume(separator != ":" or not any(each.text.isdigit() for each in terms))  # n1:1 is a host and its port
    assert selected(separator.join(each.sign + each.text for each in terms)) == meant(terms)


@settings(max_examples=150, deadline=None)
@given(TERMS, st.data())
def test_an_empty_variable_or_a_lost_bracket_adds_no_host(terms: list[Term], data: st.DataObject) -> None:
    whole = meant(terms)
    which = data.draw(st.integers(0, len(terms) - 1))
    texts = [each.sign + each.text for each in terms]
    assert selected(",".join([*texts[:which], terms[which].sign, *texts[which + 1 :]])) <= whole
    text = ",".join(texts)
    for place in (at for at, char in enumerate(text) if char in "[]"):
        assert selected(text[:place] + text[place + 1 :]) == set()
