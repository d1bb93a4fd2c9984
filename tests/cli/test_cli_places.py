"""The pull way without a node: a result that is sent to a place, and ``report`` over the results of a place."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.places import Remote, upload
from gpuready.cli import output
from gpuready.result.document import document
from gpuready.result.exitcode import exit_code
from gpuready.result.model import Error, HostResult, Run, utc
from tests.command import VALIDATOR, Exits, gpuready
from tests.report.test_report_runs import sample
from tests.secure import Secure


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    server = Secure(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    yield server
    server.stop()


def test_a_result_is_put_to_a_web_server(site: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a run that never began. The token is in no argument."""
    monkeypatch.setenv("GPUREADY_OUTPUT_HEADER", "Authorization: Bearer t0ken")
    url = f"{site.url}/spec.yaml#sha256={'0' * 64}"
    done = gpuready("apply", "-i", url, "-i", "@local", "--yes", "--output", f"json:{site.url}/results/gpu01.json")
    assert done.returncode == 5, done.stderr
    assert site.asked == [("GET", "/spec.yaml", ""), ("PUT", "/results/gpu01.json", "Bearer t0ken")]
    found = json.loads(site.files["/results/gpu01.json"])
    VALIDATOR.validate(found)
    assert "/spec.yaml: cannot be fetched" in found["error"]["message"]


def test_a_result_that_the_server_does_not_take_is_an_error(
    site: Secure, exits: Exits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    write(path, "x", sample("converged"))
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    said = exits(74, "report", path, "--output", f"json:{site.url}/r.json").err
    assert f"the result was not written to {site.url}/r.json: " in said and "certificate" in said


def test_the_header_goes_to_one_server(site: Secure, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_OUTPUT_HEADER", "Authorization: Bearer t0ken")
    wanted = [("--output", f"{form}:{url}/r") for form, url in (("json", site.url), ("junit", "https://localhost:1"))]
    said = exits(64, "plan", "-i", "h,", *wanted[0], *wanted[1]).err
    assert "GPUREADY_OUTPUT_HEADER would go to several servers: 127.0.0.1:" in said
    assert site.asked == []


def test_the_answer_to_a_result_is_not_taken(site: Secure) -> None:
    site.put_answer = bytes(64_000_000)
    Remote(site.url).write("r.json", b"{}")
    assert (site.files, site.taken) == ({"/r.json": b"{}"}, [])


def test_a_scheme_in_capitals_is_the_same(site: Secure) -> None:
    found = upload(f"HTTPS{site.url.removeprefix('https')}/r.json", "--output")
    assert found is not None
    found[0].write(found[1], b"{}")
    assert site.files == {"/r.json": b"{}"}


def test_a_result_goes_to_a_store(tmp_path: Path, exits: Exits) -> None:
    write(tmp_path / "result.json", "x", sample("converged"))
    (tmp_path / "store").mkdir()
    exits(0, "report", tmp_path / "result.json", "--output", f"json:file://{tmp_path}/store/a.json")
    assert json.loads((tmp_path / "store/a.json").read_text())["verb"] == "apply"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h/a.json", "results are not sent over http"),
        ("https://h/", "the directory or the name of the file is missing"),
        ("https://h", "the directory or the name of the file is missing"),
        ("s3://bucket", "the directory or the name of the file is missing"),
        ("file:///x", "the directory or the name of the file is missing"),
        ("nosuch://b/x.json", "--output: cannot write to nosuch://b: "),
        ("https://u:p@h/a.json", "all users of the machine see"),
        ("https://a b/a.json", "a space"),
    ],
)
def test_where_no_result_is_sent(url: str, said: str, exits: Exits) -> None:
    assert said in exits(64, "plan", "-i", "h,", "--output", f"json:{url}").err


def write(path: Path, name: str, run: Run, **changes: object) -> None:
    found = {**document(run, exit_code(run)), **changes}
    path.write_text(json.dumps(found))


def ran(outcome: str = "ok", ago: float = 0, error: Error | None = None, **more: Any) -> Run:
    host = HostResult("@local", outcome=outcome, probed=True, error=error, **more)
    return Run("apply", hosts=[host], ended=utc(time.time() - ago))


def put(place: Path, runs: Mapping[str, Run]) -> Path:
    place.mkdir(exist_ok=True)
    for name, run in runs.items():
        write(place / f"{name}.json", name, run)
    return place


def outcomes(found: Mapping[str, Any]) -> dict[str, str]:
    return {name: host["outcome"] for name, host in found["hosts"].items()}


@pytest.mark.promise
def test_all_results_of_a_place_are_one(tmp_path: Path, exits: Exits) -> None:
    place = put(tmp_path / "r", {"gpu01": ran("ok"), "gpu02": ran("changed", 60)})
    found = exits(0, "report", place, "--output", "json").document
    assert (found["verb"], outcomes(found)) == ("apply", {"gpu01": "ok", "gpu02": "changed"})
    assert f"apply: 2 hosts of {place}, 2 probed" in exits(0, "report", place).out

    error = Error("converge", "no disk", exit_code=5)
    put(place, {"gpu03": ran("failed", error=error)})
    found = exits(1, "report", f"file://{place}", "--output", "json").document
    assert outcomes(found) == {"gpu01": "ok", "gpu02": "changed", "gpu03": "failed"}
    assert found["hosts"]["gpu03"]["error"]["message"] == "no disk"


@pytest.mark.fault("silent-node")
def test_a_node_that_has_not_reported_is_unreachable(tmp_path: Path, exits: Exits) -> None:
    place = put(tmp_path / "r", {"gpu01": ran(), "gpu02": ran("changed", 7200), "gpu04": ran()})
    exits(0, "report", place)
    last = json.loads((place / "gpu02.json").read_text())["ended"]
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("all: {hosts: {gpu01: {}, gpu02: {}, gpu03: {}}, vars: {gpuready: {}}}\n")
    found = exits(4, "report", place, "-i", hosts, "--max-age", "90m", "--output", "json").document
    assert list(found["hosts"]) == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert outcomes(found) == {"gpu01": "ok", "gpu02": "unreachable", "gpu03": "unreachable", "gpu04": "ok"}
    said = {name: host["error"]["message"] for name, host in found["hosts"].items() if host["error"]}
    assert said["gpu02"] == f"the node has not reported: the last result is from {last}"
    assert said["gpu03"] == "the node has not reported: no result"
    assert found["hosts"]["gpu04"]["notes"] == ["reports, but is not in the inventory"]


def test_what_failed_before_the_node_was_read_is_its_failure(tmp_path: Path, exits: Exits) -> None:
    error = Error("inventory", "the SHA-256 is 1, expected 2", "", 5)
    ended = utc(time.time())
    early, cut = Run("apply", error=error, ended=ended), ran("ok")
    cut.error = Error("interrupted", "interrupted", "", 130)
    found = exits(1, "report", put(tmp_path / "r", {"a": early, "b": cut}), "--output", "json").document
    assert outcomes(found) == {"a": "failed", "b": "failed"}
    assert [host["error"]["message"] for host in found["hosts"].values()] == [error.message, "interrupted"]


@pytest.mark.fault("hostile-results")
def test_a_file_that_is_broken_or_hostile_ends_no_other(tmp_path: Path, exits: Exits) -> None:
    place = put(tmp_path / "r", {"good": ran(), "future": ran(ago=-3600), "other": Run("plan", ended=utc(time.time()))})
    (place / "cut.json").write_text((place / "good.json").read_text()[:-20])
    (place / "deep.json").write_text("[" * 100_000)
    (place / "list.json").write_text("[1]")
    (place / "bytes.json").write_bytes(b"\xff\xfe")
    (place / "link.json").symlink_to(place / "good.json")
    os.mkfifo(place / "pipe.json")
    (place / "directory.json").mkdir()
    with (place / "large.json").open("wb") as large:
        large.truncate(10_000_001)
    run = ran()
    write(place / "timeless.json", "", run, ended=None)
    write(place / "odd.json", "", run, ended="yesterday")
    write(place / "form.json", "", run, hosts={"@local": {"outcome": 7}})
    write(place / "many.json", "", run, hosts={f"h{number}": {} for number in range(9)})
    (place / "-rf \x1b[2J.json").write_text("{}")
    (place / "README").write_text("")
    done = exits(4, "report", place, "--output", "json")
    found = done.document
    assert {name for name, outcome in outcomes(found).items() if outcome != "unreachable"} == {"good"}
    said = {name: host["error"]["message"] for name, host in found["hosts"].items() if host["error"]}
    assert all(f": {name}.json: " in message for name, message in said.items())
    reasons = {
        "future": "is in the future", "other": "not a result of gpuready apply -i @local", "cut": "not a result",
        "deep": "not a result", "list": "this is not a result document", "bytes": "not a result", "link": "a symlink",
        "pipe": "not a regular file", "directory": "not a regular file", "large": "larger than 10 MB",
        "timeless": "with an end time", "odd": "with an end time", "form": "hosts.@local",
        "many": "not a result of gpuready apply -i @local",
    }  # fmt: skip
    assert said.keys() == reasons.keys()
    assert {name: reason for name, reason in reasons.items() if reason not in said[name]} == {}
    assert "note: README: skipped: not the result of a node" in done.err and "\x1b" not in done.err
    assert done.err.count("skipped") == 2


def test_thousands_of_files_of_no_node_are_counted(tmp_path: Path, exits: Exits) -> None:
    place = put(tmp_path / "r", {"good": ran()})
    for number in range(300):
        (place / f"{number}.tmp").touch()
    assert "note: 280 more files were skipped\n" in exits(0, "report", place).err


def test_a_place_of_history_is_for_history(tmp_path: Path, exits: Exits) -> None:
    (target,) = output.kept(str(tmp_path / "kept"))
    name = str(output._named(target, ran()).path).removesuffix(".json")
    place = put(tmp_path / "kept", {name: ran()})
    told = exits(5, "report", place).err
    assert "the results of --history, not those of nodes" in told and f"gpuready history {place}" in told
    exits(0, "report", put(place, {"gpu01": ran()}))  # a mixed one is read, as before


def test_what_report_refuses(tmp_path: Path, exits: Exits) -> None:
    (tmp_path / "empty").mkdir()
    assert "contains no result of a node" in exits(5, "report", tmp_path / "empty").err
    assert "cannot be read: " in exits(5, "report", "nosuch://a").err
    assert "report https://h/r: results are not kept over https" in exits(64, "report", "https://h/r").err
    assert "must be the only argument" in exits(64, "report", tmp_path / "empty", tmp_path / "r.json").err
    assert "--max-age 2: not a time" in exits(64, "report", tmp_path / "empty", "--max-age", "2").err
    write(tmp_path / "result.json", "x", sample("converged"))
    assert "-i needs a directory or a URL" in exits(64, "report", tmp_path / "result.json", "-i", "a,").err
