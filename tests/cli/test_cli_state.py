"""plan and verify of recorded states: no connection, no engine, and clear words about files that are none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpuready.cli.app import run
from gpuready.report.mask import mask_state
from gpuready.report.result import result_schema
from gpuready.state.model import NodeState
from tests.lab import scale
from tests.report.test_report_runs import STATE

VALIDATOR = jsonschema.Draft202012Validator(result_schema())
HOSTS = "all:\n  hosts:\n    gpu[01:02]:\n  vars:\n    gpuready: {hardware: {gpus: none}}\n"


def recorded(**hosts: object) -> dict[str, Any]:
    """As ``gpuready probe`` writes it, without what ``--state`` does not read."""
    return {"schema": "gpuready/result/1", "verb": "probe", "hosts": {name: {"state": s} for name, s in hosts.items()}}


class Files:
    """An inventory of two hosts, and a place for a state file."""

    def __init__(self, at: Path) -> None:
        self.hosts, self.states = at / "hosts.yaml", at / "states.json"
        self.hosts.write_text(HOSTS)

    def argv(self, verb: str, document: object, *more: str) -> list[str]:
        """Write the document; the command line that reads it."""
        text = document if isinstance(document, str) else json.dumps(document)
        self.states.write_text(text)
        return [verb, "-i", str(self.hosts), "--state", str(self.states), *more]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def state() -> dict[str, Any]:
    return mask_state(STATE)


@pytest.mark.parametrize("verb", ["plan", "verify"])
def test_no_pyinfra_and_no_gevent(verb: str, files: Files, state: dict[str, Any]) -> None:
    code = (
        "import sys\nfrom gpuready.cli.main import run\ncode = run(sys.argv[1:])\n"
        "print(code, sorted({'pyinfra', 'gevent'} & set(sys.modules)), file=sys.stderr)"
    )
    argv = files.argv(verb, recorded(gpu01=state, gpu02=state))
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=scale.seconds(60), check=False
    )
    assert done.stderr == ("0 []\n" if verb == "plan" else "3 []\n")
    assert "gpu[01-02]" in done.stdout and "0 execs" in done.stdout


def test_a_document_gives_each_host_its_state(
    files: Files, state: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(files.argv("plan", recorded(gpu01=state, other={"format": 99}), "--output", "json")) == 6
    found = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(found)
    assert found["hosts"]["gpu01"]["outcome"] == "would_change"
    assert found["hosts"]["gpu02"]["outcome"] == "not_attempted"
    assert "the file has no state of this host" in found["hosts"]["gpu02"]["notes"]
    assert "other" not in found["hosts"]


def test_what_probe_prints_reads_back(files: Files, state: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files.argv("plan", recorded(gpu01=state, gpu02=state), "--detailed-exitcode")) == 2
    assert "docker: would change on gpu[01-02]" in capsys.readouterr().out


def test_only_leaves_out_the_other_components_and_their_checks(
    files: Files, state: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run(files.argv("plan", recorded(gpu01=state, gpu02=state), "--only", "docker", "--output", "json"))
    host = json.loads(capsys.readouterr().out)["hosts"]["gpu01"]
    assert [item["name"] for item in host["components"]] == ["docker"]
    status = {check["id"]: check["status"] for check in host["checks"]}
    assert status["docker.config"] == "fail" and status["toolkit.config"] == status["toolkit.version"] == "skip"


def test_a_surprise_on_one_host_is_that_hosts_outcome(
    files: Files, state: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(catalogue: object, spec: object, state: object, host: str, **more: object) -> tuple[()]:
        return () if host == "gpu01" else 1 / 0  # type: ignore[return-value]

    monkeypatch.setattr("gpuready.evaluate.run_checks", judge)
    assert run(files.argv("plan", recorded(gpu01=state, gpu02=state), "--output", "json")) == 70
    told = capsys.readouterr()
    found = json.loads(told.out)
    VALIDATOR.validate(found)
    assert found["hosts"]["gpu01"]["outcome"] == "would_change"
    assert found["hosts"]["gpu02"]["error"]["message"] == "bug in gpuready: ZeroDivisionError: division by zero"
    assert "Traceback" in told.err and "Traceback" not in told.out


def test_a_bare_state_needs_one_host(files: Files, state: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files.argv("plan", state, "--limit", "gpu02")) == 0
    assert run(files.argv("plan", state)) == 5
    assert "--limit" in capsys.readouterr().err


def test_verify_counts_active_checks_that_were_recorded(
    files: Files, state: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    state["active"] = {"done": True}
    run(files.argv("verify", state, "--limit", "gpu01", "--output", "json"))
    ids = [check["id"] for check in json.loads(capsys.readouterr().out)["hosts"]["gpu01"]["checks"]]
    assert "docker.smoke" in ids


BAD = (
    ("", "no JSON"),
    ("[]", "a state document is a mapping"),
    ("{", "no JSON"),
    ("[" * 100_000, "no JSON"),
    ({"schema": "gpuready/result/2", "hosts": {}}, "this gpuready reads 'gpuready/result/1'"),
    ({"schema": "gpuready/result/1", "hosts": {}}, "there is no state in it"),
    ({"schema": "gpuready/result/1", "hosts": {"gpu01": {"outcome": "ok"}}}, "there is no state in it"),
    ({"schema": "gpuready/result/1"}, "there is no state in it"),
    (recorded(gpu01={"format": 2}), "state format 2; this gpuready reads format 1"),
    (recorded(gpu01={}), "state format none"),
    (recorded(gpu01=[]), "state format none"),
    (recorded(gpu01={"format": 1, "colour": "blue"}), "colour"),
    (recorded(gpu01={"format": 1, "os": 7}), "os"),
)


@pytest.mark.parametrize(("document", "words"), BAD)
def test_bad_state_files_are_5(document: object, words: str, files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files.argv("verify", document, "--output", "json")) == 5
    told = capsys.readouterr()
    found = json.loads(told.out)
    VALIDATOR.validate(found)
    assert found["error"]["kind"] == "state" and words in told.err and "Traceback" not in told.err


def test_a_missing_state_file_is_5(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "-i", str(files.hosts), "--state", "/nonexistent.json"]) == 5
    assert "No such file" in capsys.readouterr().err


def test_a_fresh_state_of_another_field_order_is_the_same(state: dict[str, Any]) -> None:
    assert NodeState.model_validate(dict(reversed(state.items()))) == NodeState.model_validate(state)
