"""The fabric's run in every output: each says the same, and names what failed."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.fabric.checks import CHECKS, judge_host
from gpuready.fabric.collective import Measured, Search, Tried
from gpuready.fabric.commands import TESTS
from gpuready.fabric.named import named
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.model.spec import NodeSpec
from gpuready.result.exitcode import exit_code
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.model import INTERRUPTED, CheckResult, HostResult, Run
from gpuready.result.render import render
from gpuready.result.text import printable
from gpuready.verbs.fabric.conclude import fabric_of
from gpuready.verbs.fabric.part import PART
from tests.command import VALIDATOR
from tests.fabric.fabric_samples import ALL, end, finding, sample


def run(fabric: FabricRun | None = None, *names: str) -> Run:
    made = Run(
        "fabric",
        [HostResult(name, outcome="ok") for name in names or ("n1", "n2", "n3")],
        seconds=31.2,
        source="hosts.yaml",
        part=PART,
    )
    found = sample() if fabric is None else fabric
    made.parts["fabric"] = fabric_of(found)
    for host in made.hosts:
        host.checks = list(map(CheckResult.of, judge_host(found, host.name, NodeSpec(), date(2026, 11, 21))))
    return made


def text(form: str) -> str:
    made = run()
    return render(made, exit_code(made), form)


def test_a_failed_test_is_exit_3() -> None:
    assert exit_code(run()) == 3


def test_the_document_fits_its_schema_and_has_every_finding() -> None:
    found = json.loads(text("json"))
    VALIDATOR.validate(found)
    fabric = found["fabric"]
    assert (fabric["pairs"], fabric["seed"], fabric["rounds"]) == ("random:2", 7, 3)
    assert len(fabric["findings"]) == 7
    slow = fabric["findings"][2]
    assert (slow["client"]["host"], slow["server"]["host"], slow["value"], slow["limit"]) == ("n1", "n2", 41.2, 85.0)
    assert fabric["unpaired"][0]["other"] == "n2"
    assert found["level"] == "fabric"


def test_jsonl_has_it_in_the_last_line() -> None:
    last = json.loads(text("jsonl").splitlines()[-1])
    assert len(last["fabric"]["findings"]) == 7


def test_human_shows_the_matrix_what_failed_and_how_it_ended() -> None:
    lines = text("human").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("write_bw:"))
    assert [line.split() for line in lines[at + 1 : at + 5]] == [
        ["n1", "n2", "n3"],
        ["n1", "-", "41.2!"],
        ["n2", "92.4", "-"],
        ["n3", "FAIL", "?", "-"],
    ]
    assert "FAIL  write_bw  n1 mlx5_0:1 -> n2 mlx5_0:1: n1 is slow" in lines
    assert any(line.startswith("SKIP  nccl  n[1-2]") for line in lines)
    assert "not tested  n1 mlx5_1:1: the other host has no port left for it (n2)" in lines
    assert "not tested  1 pair: n4: unreachable" in lines
    assert lines[0] == "fabric: 3 hosts of hosts.yaml, random:2 (seed 7): 3 pairs in 3 rounds, 31.2 s"
    assert "7 tests over 3 links: 3 pass, 2 fail, 1 unknown, 1 skip" in lines[-1]
    assert "exit 3" in lines[-1]


def test_a_good_end_claims_nothing_about_the_spec() -> None:
    good = sample()
    good.findings, good.unpaired, good.not_attempted = good.findings[:2], [], []
    made = run(good, "n1", "n2")
    last = render(made, exit_code(made), "human").splitlines()[-1]
    assert last == "OK: 2 tests over 1 link: 2 pass (level fabric)"


def test_many_hosts_get_the_extremes_and_the_way_to_the_rest() -> None:
    names = [f"gpu{i:03}" for i in range(40)]
    fabric = FabricRun(Wanted(Pairing("ring"), ("write_bw",), 5), rounds=2)
    fabric.findings = [finding("write_bw", a, b, "pass", 90.0 + i) for i, (a, b) in enumerate(pairwise(names))]
    out = render(run(fabric, *names), 0, "human")
    assert "39 of 39 passed; least 90, median 109, most 128 Gbit/s" in out
    assert "--output svg:PATH" in out
    assert max(map(len, out.splitlines())) < 120


@pytest.mark.parametrize("hosts", [2, 40])
def test_ports_that_pass_are_listed_only_if_they_are_few(hosts: int) -> None:
    names = [f"gpu{i:03}" for i in range(hosts)]
    fabric = FabricRun(Wanted(Pairing("ring"), ("loopback",), 5))
    fabric.findings = [finding("loopback", name, name, "pass", 90.0 + i) for i, name in enumerate(names)]
    for number, status in enumerate(("skip", "warn", "unknown", "fail")):
        fabric.findings.append(finding("loopback", f"bad{number}", f"bad{number}", status, None))
    out = render(run(fabric, *names), 0, "human")
    words = [line.split()[0] for line in out.splitlines() if "  loopback  " in line]
    assert words == ["FAIL", "UNKNOWN", "WARN", *["PASS"] * (2 if hosts == 2 else 0), "SKIP"]
    assert ("40 of 44 passed; least 90, median 109.5, most 129 Gbit/s" in out) is (hosts == 40)


def test_csv_has_a_line_a_finding() -> None:
    rows = list(csv.DictReader(io.StringIO(text("csv"))))
    assert len(rows) == 7
    for number, part in (
        (1, {"client_host": "n2", "server_host": "n1", "value": "92.4", "limit": "85"}),
        (4, {"status": "skip", "value": ""}),
    ):
        assert rows[number] | part == rows[number]


def test_junit_has_a_case_a_finding() -> None:
    root = ET.fromstring(text("junit"))
    suite = next(each for each in root if each.get("name") == "fabric")
    assert suite.get("tests") == "7"
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("2", "1", "1")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["n1 mlx5_0:1 -> n2 mlx5_0:1", "n3 mlx5_0:1 -> n1 mlx5_0:1"]


def test_svg_has_a_square_for_each_cell_and_says_what_it_is() -> None:
    root = ET.fromstring(text("svg"))
    space = "{http://www.w3.org/2000/svg}"
    titles = [each.text or "" for each in root.iter(f"{space}title")]
    assert len(titles) == 6  # nccl has only skips, and no square
    assert "n1 mlx5_0:1 -> n2 mlx5_0:1: n1 is slow" in titles
    assert len(list(root.iter(f"{space}rect"))) == 1 + 3 * 9
    fills = {each.find(f"{space}title").text: each.get("fill") for each in root.iter(f"{space}rect") if len(each)}  # type: ignore[union-attr]
    assert fills["n2 mlx5_0:1 -> n1 mlx5_0:1: fine"] == "#41ab5d"
    assert fills["n3 mlx5_0:1 -> n2 mlx5_0:1: no counters"] == "#bdbdbd"


@pytest.mark.parametrize("form", MATRIX_FORMATS)
def test_nothing_tested_is_still_a_document(form: str) -> None:
    empty = run(FabricRun(Wanted(Pairing("ring"), ALL, 5)))
    assert render(empty, exit_code(empty), form).endswith("\n")
    assert exit_code(empty) == 3  # nothing tested proves nothing
    assert render(Run("fabric", error=INTERRUPTED, part=PART), 130, form).endswith("\n")


@given(st.text(max_size=20), st.text(max_size=60))
def test_any_words_of_a_node_leave_every_format_well_formed(host: str, words: str) -> None:
    fabric = FabricRun(Wanted(Pairing("ring"), ("write_bw",), 5), rounds=1)
    base = finding("write_bw", "n1", "n2", "fail", 1.0)
    fabric.findings = [type(base)(**{**base.__dict__, "summary": words, "client": end(host + "1")})]
    made = run(fabric, host + "1", "n2")
    VALIDATOR.validate(json.loads(render(made, 3, "json")))
    for form in ("svg", "junit"):
        ET.fromstring(render(made, 3, form))
    assert "\x1b" not in printable(render(made, 3, "human"))
    assert len(list(csv.reader(io.StringIO(render(made, 3, "csv"))))) == 2


def test_verdicts_of_hosts_follow_their_findings() -> None:
    by = {host.name: {check.id: check for check in host.checks} for host in run().hosts}
    assert by["n1"]["fabric.rping"].status == "pass"
    assert by["n2"]["fabric.write_bw"].status == "fail"
    assert "n1 mlx5_0:1 -> n2 mlx5_0:1: n1 is slow" in by["n2"]["fabric.write_bw"].summary
    assert by["n3"]["fabric.ports"].status == "fail"
    assert by["n3"]["fabric.write_bw"].status == "unknown"
    assert by["n1"]["fabric.nccl"].status == "skip"
    assert by["n3"]["fabric.rping"].status == "skip"


def test_a_waiver_holds_for_a_test_between_hosts_too() -> None:
    waive = [{"check": "fabric.*", "reason": "old cable", "until": "2026-12-31"}]
    spec = NodeSpec.model_validate({"verify": {"waive": [{**waive[0], "check": "fabric.write_bw"}]}})
    found = {judged.check.id: judged.verdict for judged in judge_host(sample(), "n2", spec, date(2026, 11, 21))}
    assert found["fabric.write_bw"].status == "warn"


def test_each_check_of_a_pair_can_be_explained() -> None:
    assert {check.id for check in CHECKS} == {"fabric.ports", *(f"fabric.{name}" for name in TESTS)}
    assert all(check.cause and check.confirm and check.fix for check in CHECKS)


def test_collectives_are_a_table_curves_and_the_search_in_words() -> None:
    fabric = FabricRun(Wanted(Pairing("ring"), ("collective",), 5))
    fabric.findings = [finding("collective", name, name, "pass", 41.5) for name in ("n1", "n2", "n3")]
    fabric.measured = tuple(
        Measured(name, size, 24, 20, size / 40000)
        for name in ("all_reduce", "all_to_all")
        for size in (1 << 20, 1 << 30)
    )
    tried = (Tried(1, ("n1", "n2"), (), "pass", "fine"), Tried(2, ("n3",), (4, 5), "fail", "slow"))
    fabric.search = Search(4, tried, ("n3",), (5,), ("n1", "n2"), "n3: the fault is here")
    made = run(fabric)
    VALIDATOR.validate(json.loads(render(made, 0, "json")))
    lines = [" ".join(line.split()) for line in render(made, 0, "human").splitlines()]
    at = lines.index("bus bandwidth by size, GB/s, 24 ranks")
    assert lines[at + 1 : at + 4] == ["all-reduce all-to-all", "1 MiB 76.7 38.3", "1 GiB 76.7 38.3"]
    assert "round 2: n3 GPU 4, 5: fail: slow" in lines and "search n3: the fault is here" in lines
    picture = ET.fromstring(render(made, 0, "svg"))
    space = "{http://www.w3.org/2000/svg}"
    titles = [each.text for each in picture.iter(f"{space}title")]
    assert len(list(picture.iter(f"{space}polyline"))) == 2 and len(titles) == 4
    assert titles[0] == "all_reduce of 1 MiB: 76.67 GB/s"
    assert "polyline" in render(made, 0, "html")


def test_every_output_names_the_port_that_the_bad_links_share() -> None:
    found = FabricRun(Wanted(Pairing("all"), ("write_bw",), 5), rounds=3)
    pairs = [("n1", "n2"), ("n2", "n1"), ("n1", "n3"), ("n3", "n1"), ("n2", "n3"), ("n3", "n2")]
    found.findings = [
        finding("write_bw", a, b, *(("fail", 41.2, 85.0) if "n3" in (a, b) else ("pass", 92.4, 85.0))) for a, b in pairs
    ]
    found.named = named(found.findings)
    made = run(found)
    code = exit_code(made)
    sentence = "all 4 tests of it fail (41.2 Gbit/s); the 2 tests without it are good (92.4 Gbit/s)"
    human = render(made, code, "human")
    assert f"NAMED  write_bw  n3 mlx5_0:1: {sentence}\n  fix:     look at this port, its cable" in human
    document = json.loads(render(made, code, "json"))
    VALIDATOR.validate(document)
    (one,) = document["fabric"]["named"]
    assert (one["host"], one["device"], one["direction"], one["summary"]) == ("n3", "mlx5_0", "both", sentence)
    (case,) = ET.fromstring(render(made, code, "junit")).findall(".//testcase[@classname='fabric.named']")
    assert case.get("name") == "write_bw: n3 mlx5_0:1"
    assert [each.get("message") for each in case.findall("failure")] == [sentence]
    assert sentence in render(made, code, "html").replace("&gt;", ">")
    assert code == 3 and "named" not in json.loads(text("json"))["fabric"]
    made.choice = "-i hosts.yaml"
    assert "again:" not in render(made, code, "human")  # one host alone has no pair
