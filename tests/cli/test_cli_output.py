"""Progress on stderr, and results in files."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path

import pytest

from gpuready.cli.output import Target, deliver, use_color
from gpuready.cli.progress import HEARTBEAT, Plain, Terminal
from tests.report.test_report_runs import sample


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_plain_progress_is_a_line_a_change_and_a_heartbeat() -> None:
    clock, out = Clock(), io.StringIO()
    plain = Plain(lambda text: print(text, end="", file=out), clock)
    for name in ("gpu01", "gpu02"):
        plain.report(name, "connect")
        plain.report(name, "connect")
    clock.now += 1.5
    plain.report("gpu01", "apply")
    plain.report("gpu02", "ok")
    for _ in range(100):
        clock.now += 0.25
        plain.tick()
    assert "still" not in out.getvalue()
    for _ in range(150):
        clock.now += 0.25
        plain.tick()
    assert out.getvalue().splitlines() == [
        "[   0.0 s] gpu01  connect",
        "[   0.0 s] gpu02  connect",
        "[   1.5 s] gpu01  apply",
        "[   1.5 s] gpu02  ok",
        "[  31.5 s] gpu01  still apply, for 30 s",
        "[  61.5 s] gpu01  still apply, for 60 s",
    ]
    assert HEARTBEAT == 30


def test_the_terminal_shows_few_lines() -> None:
    clock = Clock()
    terminal = Terminal(None, [f"gpu{n:02}" for n in range(64)], clock)  # type: ignore[arg-type]
    for n in range(40):
        terminal.report(f"gpu{n:02}", "probe")
    for n in range(10):
        terminal.report(f"gpu{n:02}", "ok")
    clock.now += 3
    lines = terminal.lines()
    assert len(lines) == 21
    assert lines[0] == "gpu10  probe  3 s"
    assert lines[-1] == "10 more probe, 24 more waiting, 10 ok"


def test_a_file_keeps_its_mode_and_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert deliver(sample("converged"), [Target("json", link)]) == 0
    assert json.loads(path.read_text())["exit_code"] == 0
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    assert {p.name for p in tmp_path.iterdir()} == {"r.json", "link.json"}


def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    path, got = tmp_path / "pipe", list[str]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_text()))
    reader.start()
    deliver(sample("converged"), [Target("jsonl", path)])
    reader.join(10)
    assert len(got[0].splitlines()) == 3 and path.is_fifo()


def test_a_directory_that_goes_away_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deliver(sample("converged"), [Target("json", tmp_path / "gone" / "r.json")]) == 64
    assert "was not written" in capsys.readouterr().err


def test_no_color_wins_over_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert use_color("auto", Screen()) and not use_color("never", Screen()) and not use_color("auto", io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not use_color("auto", Screen()) and use_color("always", io.StringIO())
