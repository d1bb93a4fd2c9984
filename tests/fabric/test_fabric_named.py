"""The port or host that all bad links share: named if the links of the others prove it, and only then."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

import pytest

from gpuready.fabric.checks import judge_host
from gpuready.fabric.commands import TESTS
from gpuready.fabric.named import Named, named
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing, pairing
from gpuready.fabric.verdict import Finding
from gpuready.model.spec import NodeSpec
from gpuready.network.links import End
from tests.fabric.fabric_samples import end

LIMIT = 85.0
#: The bandwidth from one port to another one.
Speed = Callable[[End, End], float | None]


def hosts(number: int) -> tuple[str, ...]:
    return tuple(f"n{each}" for each in range(1, number + 1))


def measured(
    number: int,
    speed: Speed,
    pairs: str = "all",
    test: str = "write_bw",
    devices: Sequence[str] = ("mlx5_0",),
    limit: float | None = LIMIT,
    seed: int = 7,
) -> list[Finding]:
    """What a run finds, in its order. As there, no link is tested back after a failure."""
    found: list[Finding] = []
    for each in pairing(pairs, seed).rounds(hosts(number)):
        for server, client in each:
            for device in devices:
                ends = end(client, device), end(server, device)
                for a, b in (ends, ends[::-1]) if TESTS[test].both_ways else (ends,):
                    value = speed(a, b)
                    failed = value is None or (limit is not None and value < limit)
                    found.append(Finding(test, b, a, "fail" if failed else "pass", "", value, limit))
                    if failed:
                        break
    return found


def at(host: str, bad: float | None = 10.0) -> Speed:
    """All links of a host are bad; the others differ as those of real hosts do."""
    return lambda a, b: bad if host in (a.host, b.host) else 90.0 + int(a.host[1:]) % 7


def names(found: Sequence[Named]) -> list[str]:
    return [str(each) for each in found]


@pytest.mark.parametrize("bad", [None, 10.0])
@pytest.mark.parametrize("pairs", ["all", "ring", "random:3"])
@pytest.mark.parametrize("number", range(3, 17))
def test_a_bad_host_among_three_to_sixteen_is_named(number: int, pairs: str, bad: float | None) -> None:
    for host in hosts(number):
        (one,) = named(measured(number, at(host, bad), pairs))
        assert (one.host, one.device, one.port, one.direction, one.status) == (host, "mlx5_0", 1, "both", "fail")


def test_the_sentence_has_the_links_and_the_figures_of_the_others() -> None:
    (one,) = named(measured(4, at("n3")))
    assert str(one) == "n3 mlx5_0:1"
    assert one.summary == (
        "all 3 tests of it fail (10 Gbit/s); the 6 tests without it are good (91 to 94 Gbit/s)"
    )  # fmt: skip
    assert "its cable and its switch port; without cables: gpuready fabric --limit n3 --tests loopback" in one.remedy


@pytest.mark.parametrize("test", ["rping", "write_bw", "read_lat"])
def test_of_two_hosts_neither_is_named(test: str) -> None:
    assert not named(measured(2, at("n1", None), test=test))
    assert not named(measured(2, lambda a, _: 10.0 if a.host == "n1" else 90.0, limit=None))


@pytest.mark.parametrize("limit", [None, LIMIT])
@pytest.mark.parametrize("number", range(3, 17))
def test_a_port_that_is_slow_in_one_direction(number: int, limit: float | None) -> None:
    for host in hosts(number):
        (sends,) = named(measured(number, lambda a, _, bad=host: 40.0 if a.host == bad else 90.0, limit=limit))
        # If a link fails first, the other direction is not tested.
        assert sends.host == host and sends.direction in (("from",) if limit is None else ("from", "both"))
        (takes,) = named(measured(number, lambda _, b, bad=host: 40.0 if b.host == bad else 90.0, limit=limit))
        assert takes.host == host and takes.direction in (("to",) if limit is None else ("to", "both"))
        assert sends.status == takes.status == ("warn" if limit is None else "fail")
        if limit is None:
            assert sends.summary.startswith(f"all {number - 1} tests from it are slow (40 Gbit/s); the")


@pytest.mark.parametrize("number", range(5, 17))
def test_two_bad_hosts_are_both_named_but_not_half_of_all(number: int) -> None:
    bad = {"n1", f"n{number}"}
    assert {each.host for each in named(measured(number, lambda a, b: 10.0 if bad & {a.host, b.host} else 90.0))} == bad
    half = set(hosts(number)[: (number + 1) // 2])
    assert not named(measured(number, lambda a, b: 10.0 if half & {a.host, b.host} else 90.0))


@pytest.mark.parametrize("number", range(4, 17))
def test_a_bad_path_or_uplink_names_no_host(number: int) -> None:
    assert not named(measured(number, lambda a, b: 10.0 if {a.host, b.host} == {"n1", "n2"} else 90.0))
    rack = {"n1", "n2"}
    assert not named(measured(number, lambda a, b: 10.0 if (a.host in rack) != (b.host in rack) else 90.0))
    # A host with one partner cannot be told from it.
    assert not named(measured(number, at("n1"), "random:1"))


@pytest.mark.parametrize("pairs", ["ring", "random:3", "random:4", "random:6"])
def test_a_bad_uplink_that_few_links_cross_names_no_host(pairs: str) -> None:
    """Neither hosts that did not meet are named, nor those whose other bad links lie between the same two groups."""
    for rack in ({"n1", "n2"}, {"n1", "n2", "n3", "n4"}, {"n1", "n4"}):
        for seed in range(30):
            links = measured(
                16, lambda a, b, its=rack: 10.0 if (a.host in its) != (b.host in its) else 90.0, pairs, seed=seed
            )
            assert not named(links), (rack, seed)


def test_what_meets_its_limit_is_not_slow() -> None:
    """The limit follows the line rate: a host with 100 Gbit/s among hosts with 400."""
    assert not named(measured(6, lambda a, b: 97.0 if "n1" in (a.host, b.host) else 380.0))


def test_a_warning_has_its_own_remedy() -> None:
    found = [
        replace(each, status="warn", remedy="set the MTU to 9000")
        if "n3" in (each.client.host, each.server.host)
        else each
        for each in measured(4, lambda *_: 92.0)
    ]
    (one,) = named(found)
    assert one.summary.startswith("all 6 tests of it warn (92 Gbit/s)") and one.remedy == "set the MTU to 9000"


def test_a_test_of_no_bandwidth_does_not_speak_of_cables() -> None:
    (one,) = named(measured(4, at("n3", None), test="tcp_connect", limit=None))
    assert one.remedy == "gpuready explain fabric.tcp_connect"


def test_a_second_fault_elsewhere_is_not_hidden() -> None:
    """If few other links are bad, the host is named, and the sentence counts them; if many are, it is not."""
    (one,) = named(measured(8, lambda a, b: None if {a.host, b.host} == {"n7", "n8"} else at("n2")(a, b)))
    assert one.host == "n2" and "all 7 tests of it fail" in one.summary
    assert "of the 41 tests without it, 40 are good" in one.summary
    assert not named(measured(8, lambda a, b: None if {a.host, b.host} == {"n7", "n8"} else at("n2")(a, b), "ring"))
    odd = {"n4", "n5", "n6", "n7", "n8"}
    assert not named(measured(8, lambda a, b: None if {a.host, b.host} <= odd else at("n2")(a, b)))


@pytest.mark.parametrize("number", range(3, 9))
def test_one_rail_is_a_port_and_all_rails_are_the_host(number: int) -> None:
    rails = tuple(f"mlx5_{each}" for each in range(4))
    one = named(
        measured(number, lambda a, b: 10.0 if ("n2", "mlx5_3") in ((a.host, a.device), (b.host, b.device)) else 90.0,
                 devices=rails)
    )  # fmt: skip
    assert names(one) == ["n2 mlx5_3:1"]
    assert names(named(measured(number, at("n2"), devices=rails))) == ["n2"]


def test_what_varies_is_not_a_fault() -> None:
    assert not named(measured(6, lambda a, b: 30.0 + 20.0 * ("n1" in (a.host, b.host)), limit=None))
    assert not named(measured(6, at("n1", 50.0), limit=None))
    assert named(measured(6, at("n1", 45.0), limit=None))
    # The way through the switches makes such a difference, too; with a limit it counts.
    assert not named(measured(6, at("n1", 900.0), test="read_lat", limit=None))


def test_an_unproven_or_untested_link_proves_nothing() -> None:
    found = measured(3, at("n3"))
    assert named(found)
    unproven = [Finding(each.test, each.server, each.client, "unknown", "", each.value) for each in found]
    both = [each if each.status == "fail" else other for each, other in zip(found, unproven, strict=True)]
    assert not named(both)


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_only_the_named_host_has_a_failed_check(limit: float | None) -> None:
    run = FabricRun(Wanted(Pairing("all"), ("write_bw",), 5), rounds=3)
    run.findings = measured(4, at("n3"), limit=limit)
    run.named = named(run.findings)
    checks = {
        host: each.verdict
        for host in hosts(4)
        for each in judge_host(run, host, NodeSpec(), date(2026, 11, 21))
        if each.check.id == "fabric.write_bw"
    }
    bad = checks.pop("n3")
    assert bad.status == ("warn" if limit is None else "fail")
    assert "n3 mlx5_0:1: " in bad.summary
    assert {each.status for each in checks.values()} == {"pass"}
    if limit is not None:
        left = "1 left out, where the fault is at n3 mlx5_0:1"
        assert all(each.summary.endswith(left) for each in checks.values())
