"""Progress on stderr, and results in files."""

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console
from rich.live import Live

from gpuready.cli.output import Target, deliver, use_color
from gpuready.cli.progress import HEARTBEAT, Plain, Terminal
from gpuready.result.model import CheckResult
from tests.report.test_report_runs import LDCACHE, NO_ROUTE, NO_RUNTIME, UNSEEN, host, sample


def test_plain_progress_is_a_line_a_change_and_a_heartbeat() -> None:
    clock, out = Mock(return_value=100.0), io.StringIO()
    plain = Plain(lambda text: print(text, end="", file=out), clock)
    for name in ("gpu01", "gpu02"):
        plain.report(name, "connect")
        plain.report(name, "connect")
    clock.return_value += 1.5
    plain.report("gpu01", "apply")
    plain.report("gpu02", "ok")
    for _ in range(100):
        clock.return_value += 0.25
        plain.tick()
    assert "still" not in out.getvalue()
    for _ in range(150):
        clock.return_value += 0.25
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


@pytest.mark.parametrize(
    ("outcome", "checks", "word", "state"),
    [
        ("ok", (LDCACHE,), "ok", "ok"),
        ("ok", (NO_RUNTIME, UNSEEN), "ok, but 1 check failed", "not ok"),
        ("changed", (NO_RUNTIME, NO_RUNTIME), "changed, but 2 checks failed", "not ok"),
        ("ok", (UNSEEN,), "ok, but 1 check unknown", "not ok"),
        ("ok", (replace(UNSEEN, advisory=True),), "ok", "ok"),
        ("pending", (NO_RUNTIME,), "pending", "pending"),
    ],
)
def test_progress_does_not_call_a_host_ok_whose_checks_fail(
    outcome: str, checks: tuple[CheckResult, ...], word: str, state: str
) -> None:
    ended = host("gpu01", outcome, checks=checks)
    terminal = Terminal(None, ["gpu01", "gpu02"])  # type: ignore[arg-type]
    terminal.report("gpu01", ended.word("verify"))
    assert ended.word("verify") == word and terminal.lines() == [f"1 {state}, 1 waiting; 2 hosts"]


@pytest.mark.parametrize("verb", ["record", "compat", "fabric"])
def test_progress_gives_no_verdict_for_a_verb_that_judges_later(verb: str) -> None:
    """``launch hosts`` and nccl read as record does: a host that was read may still get no settings."""
    terminal = Terminal(None, ["gpu01", "gpu02"])  # type: ignore[arg-type]
    for outcome in ("ok", "would_change", "failed"):
        terminal.report("gpu01", host("gpu01", outcome, checks=(NO_RUNTIME,)).word(verb))
        assert terminal.lines() == ["1 done, 1 waiting; 2 hosts"]
    gone = host("gpu01", "unreachable", error=NO_ROUTE)
    assert gone.word(verb) == "unreachable"


def test_a_log_line_stays_above_the_live_ones() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60)
    with Live(console=console, auto_refresh=False) as live:
        terminal = Terminal(live, ["gpu01"])
        terminal.report("gpu01", "probe")
        terminal.tick()
        terminal.log("gpu01  step \x1b[31mdocker\nproxy=http://me:hunter2@proxy/: 1.00 s")
        terminal.tick()
    told = out.getvalue()
    assert "step \\x1b[31mdocker\\nproxy=" in told and "hunter2" not in told
    assert told.index("docker") < told.rindex("gpu01  probe")


def test_a_line_for_a_terminal_that_is_gone_ends_nothing() -> None:
    gone = Mock(io.StringIO, write=Mock(side_effect=OSError(5, "Input/output error")))
    live = Live(console=Console(file=gone, force_terminal=True), auto_refresh=False)
    Terminal(live, ["gpu01"]).log("interrupted")
    assert gone.write.called


def test_the_terminal_shows_few_lines() -> None:
    clock = Mock(return_value=100.0)
    terminal = Terminal(None, [f"gpu{n:02}" for n in range(64)], clock)  # type: ignore[arg-type]
    for n in range(40):
        terminal.report(f"gpu{n:02}", "probe")
    for n in range(10):
        terminal.report(f"gpu{n:02}", "ok")
    clock.return_value += 3
    lines = terminal.lines()
    assert len(lines) == 22
    assert lines[0] == "gpu10  probe  3 s"
    assert lines[-2:] == ["10 more at work: 10 probe", "30 at work, 10 ok, 24 waiting; 64 hosts"]


def test_hosts_that_wait_take_no_line_from_those_at_work() -> None:
    """They have waited longest, but nothing happens there."""
    clock = Mock(return_value=100.0)
    terminal = Terminal(None, [f"gpu{n:03}" for n in range(500)], clock)  # type: ignore[arg-type]
    clock.return_value += 60
    for n in range(400, 403):
        terminal.report(f"gpu{n}", "apply")
    assert terminal.lines() == [
        "gpu400  apply  0 s", "gpu401  apply  0 s", "gpu402  apply  0 s", "3 at work, 497 waiting; 500 hosts",
    ]  # fmt: skip


def test_a_secret_is_masked_before_its_line_is_cut() -> None:
    terminal = Terminal(None, ["gpu01"])  # type: ignore[arg-type]
    terminal.report("gpu01", f"fetch {'x' * 30} https://joe:s3cret-{'y' * 50}@repo/")
    assert "s3cret" not in "".join(terminal.lines()) and "https://***" in "".join(terminal.lines())


DRAWN = """
import contextlib, sys
from gpuready.cli.progress import _terminal
names = [f"gpu{n:03}.rack{n % 7}.a-very-long-name.example.org" for n in range(500)]
with contextlib.ExitStack() as stack:
    terminal = _terminal(names, "auto", stack)
    for number in range(0, 500, 20):
        for name in names[number : number + 20]:
            terminal.report(name, f"install nvidia-container-toolkit 1.20.0-1 and {number % 60} more packages " * 2)
        for name in names[max(0, number - 60) : number - 40]:
            terminal.report(name, "changed" if number % 40 else "failed")
        terminal.tick()
"""


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (40, 10)])
def test_500_hosts_fit_the_terminal_that_there_is(width: int, height: int) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen([sys.executable, "-c", DRAWN], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**environment, "TERM": "xterm"}) as program:  # fmt: skip
        os.close(theirs)
        drawn = b""
        with contextlib.suppress(OSError):  # the last one has closed it
            while part := os.read(ours, 65536):
                drawn += part
        assert program.wait(60) == 0, drawn[-2000:]
    os.close(ours)
    # rich goes up line by line to draw anew: what lies between is one frame
    frames = re.split(r"\r?(?:\x1b\[1A\x1b\[2K|\x1b\[2K)+", drawn.decode())
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame).strip("\r\n").split("\r\n") for frame in frames]
    full = [frame for frame in lines if len(frame) > 3]
    assert len(full) > 20
    for frame in full:
        assert len(frame) < height and max(map(len, frame)) <= width, frame
        assert re.match("[0-9]+ at work, ", frame[-1]) and (width < 80 or frame[-1].endswith("; 500 hosts"))
    assert "failed" in full[-1][-1] and (width < 80 or "changed" in full[-1][-1]) and "more at work: " in full[-1][-2]


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
    assert deliver(sample("converged"), [Target("json", tmp_path / "gone" / "r.json")]) == 74
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
