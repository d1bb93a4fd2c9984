"""``gpuready report``: a document in any format, and what changed between two; offline and bounded."""

import json
import sys
from pathlib import Path

import pytest

from gpuready.contract.check import passed
from gpuready.contract.compare import Comparison
from gpuready.model.state import Driver, NodeState
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.model import HostResult, Run
from gpuready.result.render import render
from tests.command import Exits, imported, write_states
from tests.report.test_report_runs import (
    CODES,
    DOCKER,
    LOADED,
    NO_ROUTE,
    SAME,
    STATE,
    STUB,
    TOOLKIT,
    check,
    component,
    host,
    sample,
)
from tests.report.test_report_runs import run as made
from tests.report.test_results_recorded import RECORDED

ROOT = Path(__file__).parents[2]
DATA = RECORDED["failed"]
SAME_DOCKER = Comparison("docker", True, "Docker is on the node")


def written(path: Path, of: Run, code: int = 0) -> Path:
    path.write_text(render(of, code, "json"))
    return path


@pytest.mark.parametrize("form", MATRIX_FORMATS)
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_every_document_shows_in_each_format_that_fits(name: str, form: str, exits: Exits) -> None:
    if form in ("csv", "svg") and json.loads(RECORDED[name].read_text())["verb"] != "fabric":
        told = exits(64, "report", RECORDED[name], "--output", form)
        assert not told.out and f"--output {form} does not fit " in told.err and "one of human, json," in told.err
    else:
        told = exits(0, "report", RECORDED[name], "--output", form)
        assert not told.err and (told.out or form == "github")


@pytest.mark.parametrize("verb", ["inventory", "status"])
def test_a_listing_has_no_report_for_ci(verb: str, exits: Exits, tmp_path: Path) -> None:
    listing = written(tmp_path / "a.json", made(verb, host("a")))
    exits(0, "report", listing, "--output", "json")
    told = exits(64, "report", listing, "--output", "junit")
    assert f"a result of {verb}\n  fix:     one of human, json, jsonl\n" in told.err


@pytest.mark.parametrize("verb", ["plan", "verify", "nccl", "compat"])
def test_it_counts_hosts_as_the_run_did(verb: str, exits: Exits, tmp_path: Path) -> None:
    """One host with GPUs, one that may not be a GPU node, and one that gpuready does not manage."""
    recorded = NodeState.model_validate_json((ROOT / "tests/data/h200-mounted-driver/state.json").read_bytes())
    states = write_states(tmp_path / "states.json", {"gpu": recorded, "plain": NodeState()})
    hosts = {"gpu": {"gpuready": {}}, "plain": {"gpuready": {}}, "other": {}}
    (tmp_path / "hosts.yaml").write_text(json.dumps({"all": {"hosts": hosts}}))
    result = tmp_path / "r.json"
    argv = [verb, "-i", tmp_path / "hosts.yaml", "--state", states, "--output", f"json:{result}", "--output", "human"]
    argv += ["--image-cuda", "12.4.1"] if verb == "compat" else []
    shown = exits(0 if verb == "plan" else 3, *argv).out.splitlines()
    assert "2 hosts" in shown[0] and "2 probed" in shown[0]
    again = exits(0, "report", result).out.splitlines()
    first = [lines[0].rpartition(", ")[0] for lines in (again, shown)]  # without the time, which the document rounds
    assert first[0] == first[1] and again[-1] == shown[-1]
    both = exits(0, "report", result, result).out
    assert both.count(", 2 hosts, exit ") == 2 and both.endswith("no change on 2 hosts\n")


def test_it_says_what_the_run_itself_said(exits: Exits) -> None:
    counts = "NOT OK: 2 hosts: all 2 FAILED; level effective, no GPU was tested"
    assert exits(0, "report", DATA).out.splitlines()[-1] == f"{counts}; exit 1 (a host failed)"


def test_a_file_and_stdin(exits: Exits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DATA.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        exits(0, "report", "-", "--output", f"html:{tmp_path / 'r.html'}")
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "this is not a result document"),
        ('{"schema": "gpuready/result/9", "hosts": {}}', "the schema is 'gpuready/result/9'"),
        ('{"schema": "gpuready/result/1", "hosts": []}', "another release wrote it"),
    ],
)
def test_other_files_are_refused_by_name_and_reason(text: str, message: str, exits: Exits, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    for argv in ([path], [DATA, path], [path, DATA]):
        err = exits(5, "report", *argv).err
        assert f"{path}: " in err and message in err and "fix:" in err, err
    exits(5, "report", tmp_path / "absent.json")


def test_an_endless_file_is_refused(exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuready.cli.documents._MOST", 1000)
    assert "cannot be read" in exits(5, "report", DATA).err


def test_it_needs_no_engine() -> None:
    assert not {"gevent", "paramiko", "pyinfra", "jinja2"} & imported("report", DATA, DATA)


@pytest.fixture
def two_drivers(tmp_path: Path) -> Path:
    """Three hosts: one with an older driver, and one that was not read."""
    old = host("gpu02")
    old.read(STATE.model_copy(update={"driver": Driver(proc_version="570.172.08"), "kernel": "5.15.0"}))
    run = made("verify", host("gpu01", checks=(LOADED, STUB)), old, host("gpu03", "unreachable", error=NO_ROUTE))
    run.batches = [("gpu01",), ("gpu02", "gpu03")]
    return written(tmp_path / "drivers.json", run, 4)


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        (["driver=580"], ["gpu01"]), (["driver!=580"], ["gpu02"]), (["docker=26"], ["gpu01", "gpu02"]),
        (["docker=26", "kernel=5.15"], ["gpu02"]),
    ],
)  # fmt: skip
def test_only_hosts_with_a_fact(where: list[str], shown: list[str], exits: Exits, two_drivers: Path) -> None:
    options = [word for each in where for word in ("--where", each)]
    found = json.loads(exits(0, "report", two_drivers, *options, "--output", "json").out)
    assert list(found["hosts"]) == shown and found["batches"] == [[name] for name in shown]
    assert found["exit_code"] == (3 if "gpu01" in shown else 0), "that of the hosts that are shown"
    assert found["source"] == f"hosts.yaml where {' and '.join(where)}"


def test_no_host_has_the_fact(exits: Exits, two_drivers: Path) -> None:
    err = exits(5, "report", two_drivers, "--where", "driver=590").err
    assert "no host has driver=590" in err and "the hosts have driver: 570.172.08, 580.95.05" in err
    for odd in ("driver", "drivers=580", "driver>580"):
        assert f"--where {odd}: not a condition" in exits(64, "report", two_drivers, "--where", odd).err


def test_a_comparison_of_hosts_that_had_or_have_a_fact(exits: Exits, two_drivers: Path, tmp_path: Path) -> None:
    both = [host("gpu01", checks=(LOADED, STUB)), host("gpu02")]
    after = written(tmp_path / "after.json", made("verify", *both), 3)
    out = exits(0, "report", two_drivers, after, "--where", "driver=570").out
    assert "facts\n  driver: 570.172.08 -> 580.95.05 on gpu02\n" in out and "  kernel: 5.15.0 -> 6.12.48" in out
    assert out.splitlines()[-1] == "1 host changed, 0 only in before, 0 only in after, 0 unchanged"
    page = tmp_path / "changes.html"
    exits(0, "report", two_drivers, after, "--output", f"html:{page}")
    assert page.read_text().startswith("<!DOCTYPE html>") and "<h2 id=" in page.read_text()
    err = exits(64, "report", two_drivers, after, "--output", "junit").err
    assert "one of human, json, html, then :PATH" in err


def test_what_changed(exits: Exits, tmp_path: Path) -> None:
    seen = check("gpu.count", passed("8 GPUs seen"))
    before = made(
        "verify",
        host("gpu01", "would_change", component(TOOLKIT), component(SAME_DOCKER), checks=(seen,)),
        host("gpu02", "ok", component(SAME), component(SAME_DOCKER), checks=(seen, STUB)),
        host("gone"),
    )
    fewer = check("gpu.count", passed("7 GPUs seen"))
    after = made(
        "verify",
        host("gpu01", "ok", component(SAME), component(SAME_DOCKER), checks=(fewer,)),
        host("gpu02", "would_change", component(SAME), component(DOCKER), checks=(seen, STUB)),
        host("new"),
    )
    a, b = written(tmp_path / "a.json", before, 3), written(tmp_path / "b.json", after, 3)
    out, err = exits(0, "report", a, b)
    assert err == ""
    assert "only in after: new\n" in out and "only in before: gone\n" in out
    assert "  differs -> ok on gpu01\n" in out and "  CHECKS FAILED -> differs on gpu02\n" in out
    assert "  toolkit: differs -> as wanted on gpu01\n" in out and "  docker: as wanted -> differs on gpu02\n" in out
    assert "  docker.live-restore: as wanted -> false (expected true) on gpu02\n" in out
    assert "1 check has the same status in other words" in out
    assert out.splitlines()[-1] == "2 hosts changed, 1 only in before, 1 only in after, 0 unchanged"
    found = json.loads(exits(0, "report", a, b, "--output", "json").out)
    assert (found["schema"], found["appeared"], found["vanished"]) == ("gpuready/changes/1", ["new"], ["gone"])
    assert {"kind": "summary", "name": "gpu.count", "before": "8 GPUs seen", "after": "7 GPUs seen", "detail": ""} in (
        found["hosts"]["gpu01"]
    )


def test_the_same_run_has_no_change(exits: Exits) -> None:
    out = exits(0, "report", RECORDED["plan-h200"], RECORDED["plan-h200"]).out
    assert out.splitlines()[-1] == "no change on 1 host"


def test_runs_of_different_commands_are_not_compared(exits: Exits, tmp_path: Path) -> None:
    plan = written(tmp_path / "p.json", made("plan", host("a", "would_change", component(DOCKER))))
    verify = written(tmp_path / "v.json", made("verify", host("a", "would_change", component(DOCKER))), 3)
    out, err = exits(64, "report", plan, verify)
    assert out == "" and f"{plan} is a result of plan, and {verify} of verify: " in err


def test_what_a_run_did_not_look_at_did_not_change(exits: Exits, tmp_path: Path) -> None:
    lost = written(tmp_path / "b.json", made("verify", HostResult("gpu01", outcome="unreachable")), 4)
    looked = written(tmp_path / "a.json", made("verify", host("gpu01", "ok", component(SAME))))
    out = exits(0, "report", looked, lost).out
    assert "  ok -> UNREACHABLE on gpu01" in out and "(not judged)" not in out


def test_many_hosts_share_a_line(exits: Exits, tmp_path: Path) -> None:
    names = [f"gpu{n:03}" for n in range(1, 501)]
    a = written(tmp_path / "a.json", made("verify", *map(host, names)))
    b = written(tmp_path / "b.json", made("verify", *(host(name, checks=(STUB,)) for name in names)), 3)
    out = exits(0, "report", a, b).out
    assert "libcuda.stub: (not judged) -> fail on gpu[001-500]: the cache lists a stub" in out
    assert len(out.splitlines()) < 20


@pytest.mark.fault("D8")
def test_a_document_may_be_hostile(exits: Exits, tmp_path: Path) -> None:
    bad = json.loads(render(sample("failed"), CODES["failed"], "json"))
    bad["hosts"] = {f"{name}\x1b[2J\nOK": value for name, value in bad["hosts"].items()}
    (tmp_path / "b.json").write_text(json.dumps(bad))
    for argv in ([tmp_path / "b.json"], [DATA, tmp_path / "b.json"]):
        out = exits(0, "report", *argv).out
        assert "\x1b" not in out and not any(line == "OK" for line in out.splitlines())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "Missing argument"),
        (["a", "b", "c"], "report compares two documents; 3 are given"),
        (["-", "-"], "only one of the documents can be stdin"),
        ([DATA, DATA, "--output", "junit"], "one of human, json"),
        ([DATA, "--output", "yaml"], "no format 'yaml'"),
    ],
)
def test_wrong_usage(argv: list[object], message: str, exits: Exits) -> None:
    assert message in exits(64, "report", *argv).err
