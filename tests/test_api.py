"""gpuready.api: the result of a command as objects, whatever became of the hosts; an error if there is none."""

import dataclasses
import json
import re
import typing
from pathlib import Path

import pytest

from gpuready import api
from gpuready.api import CheckResult, DocumentError, Result, RunError, read, run
from gpuready.model.state import NodeState
from tests.command import gpuready, python, write_hosts, write_states
from tests.pages import ROOT, blocks

RECORDED = ROOT / "tests/data/h200-mounted-driver/state.json"


def test_a_result_is_the_document_as_objects(tmp_path: Path) -> None:
    hosts = Path(write_hosts(tmp_path, "all: {hosts: {gpu01: {gpuready: {hardware: {gpus: 8}}}, other: {}}}\n"))
    state = write_states(tmp_path / "states.json", {"gpu01": NodeState.model_validate_json(RECORDED.read_bytes())})
    result = run("verify", "-i", hosts, "--state", state)
    assert (result.exit_code, result.summary.verb, [*result.hosts]) == (3, "verify", ["gpu01", "other"])
    assert result.document["exit_code"] == 3 and result.document["hosts"].keys() == result.hosts.keys()
    host = result.hosts["gpu01"]
    assert host.outcome == "would_change" and result.hosts["other"].outcome == "skipped"
    assert host.failed and not result.hosts["other"].failed
    (count,) = [check for check in host.checks if check.id == "gpu.count"]
    assert isinstance(count, CheckResult) and (count.status, count.summary) == ("fail", "1 of 8 GPUs seen")
    assert len(repr(result)) < 3000 and "would_change" in repr(result)  # it is printed in a terminal
    written = tmp_path / "gpuready.json"
    gpuready("verify", "-i", hosts, "--state", state, "--output", f"json:{written}")
    again = read(written)
    assert isinstance(again, Result) and again.hosts["gpu01"].checks == host.checks
    assert [check["id"] for check in json.loads(written.read_text())["hosts"]["gpu01"]["checks"]] == [
        check.id for check in host.checks
    ]


def test_what_could_not_be_done_is_an_error_with_its_fix(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^absent.yaml: no such inventory[^\n]*\nfix: check the path") as wrong:
        run("plan", "-i", "absent.yaml")
    assert (wrong.value.error.kind, wrong.value.result.exit_code, wrong.value.result.hosts) == ("inventory", 5, {})
    with pytest.raises(RunError, match="no option --check"):
        run("apply", "--check")
    with pytest.raises(DocumentError, match="gpuready plan --help: exit code 0, and no result document"):
        run("plan", "--help")
    (tmp_path / "text.json").write_text("[]")
    with pytest.raises(DocumentError, match="not a result document"):
        read(tmp_path / "text.json")


def test_a_module_of_the_current_directory_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yaml.py").write_text("raise SystemExit('mine')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="no such inventory"):
        run("plan", "-i", "absent.yaml")


def test_the_classes_of_all_fields_are_exported() -> None:
    exported = [value for value in vars(api).values() if dataclasses.is_dataclass(value)]
    hints = [str(hint) for each in exported if each is not api.Result for hint in typing.get_type_hints(each).values()]
    named = {word for hint in hints for word in re.findall(r"gpuready\.[\w.]+\.([A-Z]\w+)", hint)}
    assert {"Reboot", "UnknownValue"} <= named and named <= {*api.__all__}


@pytest.mark.parametrize("interrupt", ["os.killpg(0, signal.SIGINT)", "os.kill(os.getppid(), signal.SIGUSR1)"])
def test_an_interrupted_run_ends_by_itself(interrupt: str, tmp_path: Path) -> None:
    """By Ctrl-C, which reaches both processes, and by an exception of a handler in the program that called ``run``."""
    (tmp_path / "slow.py").write_text(f"""
import os, pathlib, signal, sys, time
def finish(*_):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(1)
    pathlib.Path("finished").touch()
    sys.exit(130)
signal.signal(signal.SIGINT, finish)
time.sleep(1)  # until the other one waits
{interrupt}
time.sleep(100)
""")
    code = """
import signal, sys
from gpuready import api
class Up(BaseException): pass
def handler(*_): raise Up
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGUSR1, handler)
api.child.command = lambda module: [sys.executable, "slow.py"]
try: api.run("apply")
except (Up, KeyboardInterrupt) as e: print(type(e).__name__)
"""
    done = python("-c", code, cwd=tmp_path, start_new_session=True)
    assert done.stdout in ("Up\n", "KeyboardInterrupt\n") and (tmp_path / "finished").exists(), done.stderr


def test_the_example_of_the_guide_names_a_host_whose_checks_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its outcome is ``ok``: it matches its spec, but GPUs are missing."""
    write_hosts(tmp_path, "all: {hosts: {gpu01: {gpuready: {hardware: {gpus: 8}}}}}\n")
    state = NodeState.model_validate_json(RECORDED.read_bytes())
    recorded = ("--state", str(write_states(tmp_path / "states.json", {"gpu01": state})))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "run", lambda *words: run(*words, *recorded, "--only", "docker"))
    (code,) = [text for text in blocks(ROOT / "docs/guides/own-code.md", "python") if "gpuready.api" in text]
    with pytest.raises(SystemExit, match="3"):
        exec(code, {})
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "gpu01 failed " and any(line.startswith("  gpu.count: 1 of 8 GPUs seen") for line in rest)
    assert api.run("verify", "-i", "hosts.yaml").hosts["gpu01"].outcome == "ok"
