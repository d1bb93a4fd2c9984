"""``fabric --tests loopback``: each port of a host by itself, and the one port that is slower than the others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import cast

import pytest

from gpuready.fabric import loopback
from gpuready.fabric.checks import judge_host
from gpuready.fabric.commands import commands
from gpuready.fabric.job import Role
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.verdict import Answer, Finding, found
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.model.verify import Thresholds
from gpuready.network.links import loops
from gpuready.result.model import HostResult
from gpuready.verbs.fabric.matrix import matrices
from gpuready.verbs.fabric.rounds import Hosts, Meeting
from gpuready.verbs.fabric.rounds import test_all as run_rounds
from tests.fabric.fabric_samples import choices, chosen, down, end, unwanted
from tests.fabric.test_fabric_collective import answer, line, timed
from tests.fabric.test_fabric_verdict import recorded, said
from tests.verbs.render.test_kubernetes import node

PORTS = tuple(f"mlx5_{number}" for number in range(4))
NAMES = ("n1", "n2", "n3")


def port(device: str, value: float | None, host: str = "n2", line: float | None = 400.0) -> Finding:
    own = end(host, device, line)
    status = "fail" if value is None else "pass"
    return Finding("loopback", own, own, status, "no answer within its time limit" if value is None else "", value)


def compared(*ports: Finding) -> list[tuple[str, str]]:
    return [(each.status, each.summary) for each in loopback.compared(ports, dict.fromkeys(NAMES, 0.85))]


def test_a_port_writes_to_itself_without_the_network() -> None:
    own = replace(end("n1"), address="")  # such as InfiniBand without IPoIB
    server, client = commands(loopback.TEST, own, own, 5)
    for each in (server, client):
        assert " ".join(each.arguments).startswith("-d mlx5_0 -i 1 -x 3 -u 20 -F --report_gbits -D 5 -s 65536")
    assert client.arguments[-1] == "127.0.0.1" and "127.0.0.1" not in server.arguments


def test_ports_of_the_fabric_are_tested_also_if_one_is_down() -> None:
    links = loops("n1", choices(chosen("mlx5_0"), replace(down("mlx5_1"), fabric=True), unwanted("mlx5_2")))
    assert [(each.server.device, each.obstacle) for each in links] == [
        ("mlx5_0", ""), ("mlx5_1", "n1 mlx5_1:1: its state is DOWN, not ACTIVE"),
    ]  # fmt: skip
    assert all(each.server == each.client for each in links)


def test_what_perftest_printed_needs_no_counters() -> None:
    text = recorded("rxe-bw-ok")
    made = found(loopback.TEST, end("n1"), end("n1"), said(text, out=0, into=0), Thresholds())
    assert (made.status, made.proof) == ("pass", "") and made.value
    assert found(loopback.TEST, end("n1"), end("n1"), said("", rc=(0, 1)), Thresholds()).status == "fail"


def test_the_slow_port_is_named_beside_the_median_of_the_others() -> None:
    assert compared(*(port(name, 380 + n) for n, name in enumerate(PORTS[:3])), port("mlx5_3", 97.0)) == [
        ("pass", "380 Gbit/s (median of the others: 381)"),
        ("pass", "381 Gbit/s (median of the others: 380)"),
        ("pass", "382 Gbit/s (median of the others: 380)"),
        ("fail", "97 Gbit/s, below 0.85 of 381, the median of the host's other ports"),
    ]


def test_only_ports_of_one_host_and_one_line_rate_are_compared() -> None:
    assert [status for status, _ in compared(port("mlx5_0", 380), port("bond0", 24, line=25), port("x", 90, "n1"))] == [
        "pass", "warn", "pass",
    ]  # fmt: skip
    assert compared(port("mlx5_0", 380), port("mlx5_1", None))[0][1].endswith(
        "no other port of its line rate has a figure)"
    )
    unknown = compared(port("rxe0", 3, line=None), port("rxe1", 9, line=None))
    assert [summary for _, summary in unknown] == [
        "3 Gbit/s (no limit: its line rate is unknown)", "9 Gbit/s (no limit: its line rate is unknown)",
    ]  # fmt: skip


def test_a_port_whose_line_rate_is_lower_is_a_warning() -> None:
    fast = [port(name, 380) for name in PORTS[:3]]
    assert compared(*fast, port("mlx5_3", 196, line=200))[3] == (
        "warn",
        "its line rate is 200 Gbit/s, that of the host's other ports 400; "
        "196 Gbit/s (no limit: no other port of its line rate has a figure)",
    )
    both = compared(*fast, port("mlx5_3", 196, line=200), port("mlx5_4", 90, line=200))
    assert [status for status, _ in both] == ["pass", "pass", "pass", "warn", "fail"]
    assert [status for status, _ in compared(*fast, port("down", None, line=None))] == ["pass"] * 3 + ["fail"]


# --- in a run


def run(
    tests: tuple[str, ...], figures: Mapping[str, float], fault: str, states: Mapping[str, NodeState]
) -> tuple[FabricRun, list[Meeting]]:
    """A run in which n2 spoils each job. ``figures``: of the ports, by device. ``fault``: what the jobs find."""
    spec = NodeSpec.model_validate({"hardware": {"gpus": 8}})
    entries = {name: SimpleNamespace(spec=spec, spread=None) for name in states}
    results = {name: HostResult(name, outcome="ok") for name in states}
    hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))
    fabric, met = FabricRun(Wanted(Pairing("ring"), tests, 5)), list[Meeting]()

    def meet(meetings: Sequence[Meeting]) -> None:
        met.extend(meetings)
        for each in meetings:
            for names, link in each.legs:
                assert names == ("loopback",)
                fabric.add(replace(port(link.server.device, figures[link.server.device]), server=link.server,
                                   client=link.client))  # fmt: skip

    def of_role(role: Role, bad: bool) -> Answer:
        ranks = range(role.rank * 8, role.rank * 8 + role.ranks)
        if bad and fault == "failed":
            return answer(role.rank, "[rank1]: RuntimeError: Timed out\n", rc=1)
        lines = [line(rank, wrong=1) if bad else timed(rank, 0.0003) for rank in ranks]
        return answer(role.rank, *lines, *(f"done: rank {rank}\n" for rank in ranks), done=False)

    def run_jobs(jobs: Sequence[Sequence[Role]]) -> list[list[Answer]]:
        spoilt = [len(job) > 1 and any(role.end.host == "n2" for role in job) for job in jobs]
        return [[of_role(role, bad) for role in job] for job, bad in zip(jobs, spoilt, strict=True)]

    run_rounds(hosts, fabric, states, meet, run_jobs)
    return fabric, met


def nodes(count: int = 3) -> dict[str, NodeState]:
    return {f"n{number}": node(number, *PORTS) for number in range(1, count + 1)}


def test_after_a_search_the_ports_of_the_named_host_are_tested() -> None:
    fabric, met = run(("collective",), dict(zip(PORTS, (390, 380, 97, 385), strict=True)), "failed", nodes())
    assert [each.pair for each in met] == [("n2", "n2")] and len(met[0].legs) == 4
    assert fabric.search and fabric.search.named == ("n2",)
    assert "; n2 mlx5_2:1, tested by itself: 97 Gbit/s, below 0.85 of 385," in fabric.search.summary
    judged = {name: judge_host(fabric, name, NodeSpec(), date(2026, 1, 1)) for name in NAMES}
    of_loopback = {
        name: [each.verdict.status for each in checks if each.check.id == "fabric.loopback"]
        for name, checks in judged.items()
    }
    assert of_loopback == {"n1": [], "n2": ["fail"], "n3": []}


def test_if_all_ports_are_fast_the_cables_are_left() -> None:
    fabric, _ = run(("collective",), dict.fromkeys(PORTS, 390), "failed", nodes())
    assert fabric.search and fabric.search.summary.endswith("fast by itself: look at cables and switch ports")


def test_a_single_port_is_not_called_fast() -> None:
    one = {f"n{number}": node(number, "mlx5_0") for number in range(1, 4)}
    fabric, _ = run(("collective",), {"mlx5_0": 40}, "failed", one)
    assert fabric.search and fabric.search.named == ("n2",)
    assert fabric.search.summary.endswith("; n2 mlx5_0:1 cannot be compared with another port: 40 Gbit/s of 100")


def test_ports_that_were_measured_before_an_interrupt_are_compared() -> None:
    spec = NodeSpec.model_validate({"hardware": {"gpus": 8}})
    entries, fabric = {"n1": SimpleNamespace(spec=spec)}, FabricRun(Wanted(Pairing("ring"), ("loopback",), 5))
    results = {"n1": HostResult("n1", outcome="ok")}
    hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))

    def meet(meetings: Sequence[Meeting]) -> None:
        if meetings:
            for name, value in zip(PORTS[:3], (390, 97, 385), strict=True):
                fabric.add(port(name, value, "n1"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_rounds(hosts, fabric, nodes(1), meet, lambda jobs: [])
    assert [each.status for each in fabric.findings] == ["pass", "fail", "pass"]


def test_a_wrong_result_is_not_looked_for_in_the_ports() -> None:
    fabric, met = run(("collective",), {}, "wrong", nodes())
    assert fabric.search and fabric.search.named == ("n2",) and met == []


def test_one_host_alone() -> None:
    fabric, met = run(("loopback",), dict(zip(PORTS, (390, 380, 97, 385), strict=True)), "", nodes(1))
    assert [each.pair for each in met] == [("n1", "n1")] and fabric.rounds == 0
    (check,) = judge_host(fabric, "n1", NodeSpec(), date(2026, 1, 1))
    assert (check.check.id, check.verdict.status) == ("fabric.loopback", "fail")
    assert matrices(fabric.wanted.tests, fabric.findings, ["n1"]) == []


def test_a_host_without_a_port_is_unknown() -> None:
    bare = nodes(1)["n1"].model_copy(update={"rdma": {}})
    fabric, met = run(("loopback",), {}, "", {"n1": bare})
    assert met == [] and [each.status for each in fabric.findings] == ["unknown"]
    (check,) = judge_host(fabric, "n1", NodeSpec(), date(2026, 1, 1))
    assert check.verdict.status == "unknown" and "no RDMA port" in check.verdict.summary


def test_a_missing_tool_is_said_in_the_summary() -> None:
    lacking = replace(port("mlx5_0", 1.0), status="unknown", summary="n2: there is no ib_write_bw")
    assert loopback.summary([lacking]).endswith("not all tested by themselves: n2: there is no ib_write_bw")
    assert loopback.summary([]) == ""
