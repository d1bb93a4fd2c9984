"""The verbs around an engine that only plays back: asking before apply, options, interrupts, signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from gpuready.cli.app import run
from gpuready.report.run import ComponentRun, Run
from tests.lab import scale
from tests.report.test_report_runs import DOCKER, LDCACHE, SAME, STATE, STUB, host
from tests.report.test_report_runs import run as run_of

Play = Callable[[str], Run]


class Engine(types.ModuleType):
    """Stands for :mod:`gpuready.engine`: remembers what it was asked for, and gives what ``play`` says."""

    def __init__(self, play: Play) -> None:
        super().__init__("gpuready.engine")
        self.asked: list[Any] = []
        self._play = play

    class Options(types.SimpleNamespace):
        """As the engine's, unchecked."""

    def execute(self, entries: object, options: Any, progress: Callable[[str, str], None]) -> Run:
        """One run."""
        self.asked.append(options)
        progress("lab1", "connect")
        return self._play(options.verb)


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    path = tmp_path / "hosts.yaml"
    path.write_text("all: {hosts: {lab1: {gpuready: {}}}}\n")
    return str(path)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Callable[[Play], Engine]:
    """Install an engine."""

    def install(play: Play) -> Engine:
        engine = Engine(play)
        monkeypatch.setitem(sys.modules, "gpuready.engine", engine)
        monkeypatch.setattr("gpuready.engine", engine, raising=False)
        return engine

    return install


def differing(verb: str) -> Run:
    """What plan finds on lab1, and what apply makes of it."""
    if verb == "apply":
        return run_of("apply", host("lab1", "changed", ComponentRun(DOCKER, changed=True)))
    return run_of(verb, host("lab1", "would_change", ComponentRun(DOCKER), checks=(LDCACHE, STUB)))


Answer = Callable[[bool | type[Exception]], None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """A terminal at which somebody gives this answer."""

    def give(what: bool | type[Exception]) -> None:
        def confirm(*text: object, **options: object) -> bool:
            if isinstance(what, bool):
                return what
            raise what

        monkeypatch.setattr("gpuready.cli.apply._terminal", lambda: True)
        monkeypatch.setattr(click, "confirm", confirm)

    return give


def test_apply_shows_the_plan_and_goes_on_after_yes(
    hosts: str, played: Callable[[Play], Engine], answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = played(differing)
    answer(True)
    assert run(["apply", "-i", hosts, "--allow-disruption", "reload"]) == 0
    told = capsys.readouterr()
    assert [asked.verb for asked in engine.asked] == ["plan", "apply"]
    assert engine.asked[1].allowed.name == "reload"
    assert "docker: would change on lab1" in told.err
    assert "docker: changed on lab1" in told.out and "would change" not in told.out


def test_apply_changes_nothing_after_no(
    hosts: str, played: Callable[[Play], Engine], answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = played(differing)
    answer(False)
    assert run(["apply", "-i", hosts, "--output", "json"]) == 7
    found = json.loads(capsys.readouterr().out)
    assert [asked.verb for asked in engine.asked] == ["plan"]
    component = found["hosts"]["lab1"]["components"][0]
    assert (found["verb"], component["pending"], component["changed"]) == ("apply", True, False)
    assert component["waits"] == "you answered no"


def test_what_was_shown_before_the_question_is_not_shown_again(
    hosts: str,
    played: Callable[[Play], Engine],
    answer: Answer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless the result goes somewhere else, where it has to stand alone."""
    played(differing)
    answer(False)
    for terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)  # noqa: B023
        assert run(["apply", "-i", hosts, "--color", "never"]) == 7
        told = capsys.readouterr()
        assert told.err.count("docker.live-restore: ") == 1
        assert told.out.count("docker.live-restore: ") == (0 if terminal else 1)
        assert "PENDING: 1 host: 1 pending" in told.out


def test_ctrl_c_at_the_question(
    hosts: str, played: Callable[[Play], Engine], answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    played(differing)
    answer(click.Abort)
    assert run(["apply", "-i", hosts, "--output", "json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["error"]["kind"] == "interrupted" and "lab1" in found["hosts"]


def test_nothing_to_change_asks_nothing(hosts: str, played: Callable[[Play], Engine], answer: Answer) -> None:
    engine = played(lambda verb: run_of(verb, host("lab1", "ok", ComponentRun(SAME))))
    answer(RuntimeError)
    assert run(["apply", "-i", hosts]) == 0
    assert [asked.verb for asked in engine.asked] == ["plan"]


@pytest.mark.parametrize("way", ["--dry-run", "--yes"])
def test_remove_speaks_of_what_was_chosen(
    way: str, hosts: str, played: Callable[[Play], Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    played(lambda verb: run_of(verb, host("lab1", "ok", checks=())))
    assert run(["remove", "-i", hosts, "--only", "wheels", way]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "OK, 1 host without gpuready's wheels"


def test_yes_applies_at_once(hosts: str, played: Callable[[Play], Engine]) -> None:
    engine = played(differing)
    assert run(["apply", "-i", hosts, "--yes", "--only", "docker", "--host-keys", "accept-new", "--parallel", "3"]) == 0
    asked = engine.asked[0]
    assert (asked.verb, asked.selected, asked.host_keys, asked.parallel) == ("apply", {"docker"}, "accept-new", 3)
    assert (asked.allowed.name, asked.batch, asked.max_fail) == ("restart", "", "0")
    assert run(["apply", "-i", hosts, "--yes", "--batch", "1,25%", "--max-fail", "10%"]) == 0
    assert (engine.asked[1].batch, engine.asked[1].max_fail) == ("1,25%", "10%")


def test_options_reach_the_engine(hosts: str, played: Callable[[Play], Engine]) -> None:
    engine = played(lambda verb: run_of(verb, host("lab1")))
    assert run(["verify", "-i", hosts, "--passive"]) == 0
    assert run(["verify", "-i", hosts]) == 0
    assert [asked.passive for asked in engine.asked] == [True, False]
    assert run(["plan", "-i", hosts, "--skip", "docker"]) == 0
    assert "docker" not in engine.asked[-1].selected and "toolkit" in engine.asked[-1].selected


def test_detailed_exitcode(hosts: str, played: Callable[[Play], Engine]) -> None:
    played(differing)
    assert run(["plan", "-i", hosts]) == 0
    assert run(["plan", "-i", hosts, "--detailed-exitcode"]) == 2


def test_probe_is_json_and_judges_nothing(
    hosts: str, played: Callable[[Play], Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    played(differing)
    assert run(["probe", "-i", hosts]) == 0
    one = json.loads(capsys.readouterr().out)["hosts"]["lab1"]
    assert (one["outcome"], one["components"], one["checks"]) == ("ok", [], [])
    assert one["state"]["masked"] and one["state"]["kernel"] == STATE.kernel


def test_an_engine_that_is_interrupted_before_it_begins(
    hosts: str, played: Callable[[Play], Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(verb: str) -> Run:
        raise KeyboardInterrupt

    played(interrupt)
    assert run(["plan", "-i", hosts, "--output", "json"]) == 130
    assert json.loads(capsys.readouterr().out)["hosts"]["lab1"]["outcome"] == "not_attempted"


@pytest.mark.fault("interrupt")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_in_a_document(number: int, hosts: str, tmp_path: Path) -> None:
    """A real process, with an engine that hangs."""
    code = (
        "import sys, time, types\n"
        "engine = types.ModuleType('gpuready.engine')\n"
        "engine.Options = lambda **k: types.SimpleNamespace(**k)\n"
        "def execute(entries, options, progress):\n"
        "    progress('lab1', 'hangs')\n    time.sleep(60)\n"
        "engine.execute = execute\n"
        "import gpuready\n"
        "sys.modules['gpuready.engine'] = gpuready.engine = engine\n"
        "from gpuready.cli.main import main\nmain()\n"
    )
    argv = [
        sys.executable,
        "-c",
        code,
        "apply",
        "--yes",
        "-i",
        hosts,
        "--output",
        "json",
        "--output",
        f"junit:{tmp_path}/r.xml",
    ]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "hangs" in process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=scale.seconds(30))
    assert process.returncode == 130
    assert json.loads(out)["error"]["kind"] == "interrupted" and "Traceback" not in err
    assert "interrupted" in (tmp_path / "r.xml").read_text()
