"""templates/lib/step.sh.j2 and what its scripts share, tried here: one step at a time; who is a conmon."""

import base64
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.base.records import unmarked as records
from gpuready.operations.step import _message, _reply
from gpuready.operations.transport import ANSWER
from tests.lab import scale
from tests.templates.test_durable import as_root

#: Name and body of a step, and whether it survives its controller.
Start = Callable[..., subprocess.Popen[str]]
WORDS = "a step of gpuready (first) still runs on this node, and its controller is gone; wait for it to end"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begins a step here, without systemd, in scratch directories."""
    begun: list[subprocess.Popen[str]] = []

    def _start(name: str, body: str, survives: bool = True) -> subprocess.Popen[str]:
        script = resources.script("lib/step", id=f"{len(begun)}", step=name, body=body, survives=survives)
        for old, new in (
            ("/var/lib/gpuready/tx", f"{tmp_path}/tx"),
            ("/run/gpuready.step.lock", f"{tmp_path}/lock"),
            ("/run/systemd/system", f"{tmp_path}/none"),
        ):
            assert not survives or old in script
            script = script.replace(old, new)
        begun.append(subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True))
        return begun[-1]

    yield _start
    for process in begun:
        process.kill()
        process.wait()


def answer(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Exit status and the last line on stderr (or the reason) of a step."""
    out, _ = process.communicate(timeout=60)
    word, rc, *_, err = records(out)[0].split(" ")
    assert word == "step"
    return rc, base64.b64decode(err).decode().strip()


def wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.fault("D13", "overlap-of-steps")
@pytest.mark.parametrize("survives", [True, False])
def test_another_step_is_refused_while_one_runs_after_its_controller_has_gone(
    start: Start, tmp_path: Path, survives: bool
) -> None:
    first = start("first", f"echo $$ >{tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done")
    wait_for(tmp_path / "began")
    first.kill()  # the session that waits for it: what it began goes on in a session of its own
    first.communicate()
    rc, why = answer(start("second", f": >{tmp_path}/second", survives))
    assert rc == "1" and why.startswith(WORDS) and not (tmp_path / "second").exists()
    (tmp_path / "go").touch()
    wait_for(tmp_path / "tx/0/rc")
    end, done = time.monotonic() + 30, ("1", "")
    while done[0] != "0" and time.monotonic() < end:  # the shell that held the lock needs a moment to be gone
        done = answer(start("second", f": >{tmp_path}/second", survives))
    assert done == ("0", "") and (tmp_path / "second").exists()


@pytest.mark.fault("long-step-log")
@pytest.mark.parametrize("survives", [True, False])
def test_of_a_long_log_the_head_and_the_tail_are_sent(start: Start, tmp_path: Path, survives: bool) -> None:
    """The transport takes 16 MiB from an exec; a step that prints more has a result all the same."""
    noise = "head -c 20000000 /dev/zero | tr '\\0' x"
    body = f"echo first; {noise}; echo last\n{{ {noise}; echo; echo why; }} >&2; exit 3"
    said, _ = start("loud", body, survives).communicate(timeout=60)
    assert len(said) < ANSWER
    reply = _reply(records(said))
    assert reply.rc == 3 and reply.err.endswith("\nwhy\n")
    assert reply.out.startswith("first\nxxx") and reply.out.endswith("xxxlast\n")
    assert f"x\n[gpuready left out {20_000_011 - (4 << 20)} bytes here]\nx" in reply.out
    if survives:  # after a lost connection the result is read from the node
        script = resources.script("lib/collect", id="0", step="loud", limit=1)
        script = script.replace("/var/lib/gpuready/tx", f"{tmp_path}/tx")
        again = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
        assert _reply(records(again)) == reply


@pytest.mark.fault("step-killed")
@pytest.mark.parametrize(("survives", "whom"), [(True, "$$"), (True, "$PPID"), (False, "$$")])
def test_a_killed_step_does_not_give_its_last_line_as_the_reason(start: Start, survives: bool, whom: str) -> None:
    """``$$`` is the step's script, ``$PPID`` the shell that would write its result."""
    body = f"echo 'Unpacking libnvidia-container1 ...' >&2; kill -KILL {whom}; sleep 60"
    reply = _reply(records(start("toolkit", body, survives).communicate(timeout=60)[0]))
    how = ": SIGKILL" if whom == "$$" else ""
    assert _message(reply) == f"the step did not end on its own{how}; its last line: Unpacking libnvidia-container1 ..."


@pytest.mark.fault("D13", "overlap-of-steps")
def test_what_a_step_leaves_running_holds_no_lock(start: Start, tmp_path: Path) -> None:
    assert answer(start("first", f"sleep 60 >/dev/null 2>&1 & echo $! >{tmp_path}/pid"))[0] == "0"
    assert answer(start("second", "true")) == ("0", "")
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600, "only root may hold the lock"


@pytest.mark.fault("D13", "overlap-of-steps")
@pytest.mark.parametrize("older", [None, 0o666])
@pytest.mark.parametrize("lock", ["lib/lock", "lib/step-lock"])
def test_only_root_may_open_a_lock(lock: str, older: int | None, tmp_path: Path) -> None:
    """Who may open it may hold it: neither a new file nor an older one stays open to others, nor is it for a moment."""
    file = tmp_path / "lock"
    if older:
        file.touch()
        file.chmod(older)
    script, found = re.subn(r"/run/gpuready(\.step)?\.lock", str(file), resources.script(lock, owner="me", silence=1))
    assert found
    call = "step_lock me" if lock == "lib/step-lock" else ""
    sh(tmp_path, f"umask 0\n{script}\n{call}", chmod=f'stat -c %a "$2" >>{tmp_path}/modes; exec /bin/chmod "$@"')
    assert (tmp_path / "modes").read_text() == f"{older or 0o600:o}\n"
    assert (file.stat().st_mode & 0o777, file.read_text()) == (0o600, "me\n")


def test_a_controller_that_is_silent_loses_the_lock(tmp_path: Path) -> None:
    """Its stdin stays open, as that of a session whose controller has no network any more."""
    script = resources.script("lib/lock", owner="me", silence=1).replace("/run/gpuready.lock", f"{tmp_path}/lock")
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and [holder.stdout.readline() for _ in range(2)] == ["\n", "free \n"]
            assert holder.wait(scale.seconds(20)) == 0
        finally:
            holder.kill()
    assert sh(tmp_path, script) == "\nfree \n"


def sh(folder: Path, script: str, **stubs: str) -> str:
    """What a script prints that finds the stubs before other programs."""
    for name, text in stubs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    path = f"PATH={folder}:"
    script = f"cd {folder}; {path}$PATH\n{script.replace('PATH=/usr/local/sbin', f'{path}/usr/local/sbin')}"
    limit = scale.seconds(20)
    command = ["sh", "-c", script]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.fault("clock-jump")
def test_seconds_are_those_since_the_boot() -> None:
    """Not those of a clock that can be set."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    told = int(subprocess.check_output(["sh", "-c", f"{resources.script('lib/prelude')}seconds"]))
    assert int(before) <= told <= time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.fault("clock-jump")
@pytest.mark.parametrize("step", [100_000, -100_000, 0])
@pytest.mark.parametrize(("end", "limit", "record"), [("echo 7 >tx/0/rc", 600, "step 7  "), (":", 1, "lost cut")])
def test_a_clock_that_jumps_changes_no_wait_for_a_step(
    step: int, end: str, limit: int, record: str, tmp_path: Path
) -> None:
    """A step that ends at the third look is within its limit; one that does not end is lost after its limit."""
    folder = tmp_path / "tx/0"
    folder.mkdir(parents=True)
    (folder / "out").touch()
    (folder / "err").touch()
    script = resources.script("lib/collect", id="0", step="slow", limit=limit)
    assert "/var/lib/gpuready/tx" in script
    stubs = {
        "date": f"echo x >>n; echo $(( 9000000 + {step} * $(wc -l <n) ))",
        "systemctl": f"echo x >>looks; [ $(wc -l <looks) -lt 3 ] || {end}",
    }
    said = sh(tmp_path, script.replace("/var/lib/gpuready", str(tmp_path)), **stubs)
    assert records(said)[0] == record


@pytest.mark.fault("D13", "false-conmon")
def test_only_a_program_of_roots_is_a_conmon(tmp_path: Path) -> None:
    """A process of any name may be called conmon: by its comm, by a copy of another program, in a container."""
    as_root()
    sleep = shutil.which("sleep") or ""
    genuine, copy = tmp_path / "conmon", tmp_path / "user/conmon"
    copy.parent.mkdir()
    for path in (genuine, copy):
        shutil.copy(sleep, path)
    os.chown(copy, 12345, 12345)
    renamed = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b'conmon', 0, 0, 0); print(1, flush=True); time.sleep(60)"
    )
    arguments = ["60", "-n", "name", "nvidia-container-runtime"]
    began = []
    try:
        for path in (genuine, copy):
            began.append(subprocess.Popen([str(path), "infinity"]))
        began.append(subprocess.Popen(["python3", "-c", renamed, *arguments], stdout=subprocess.PIPE))
        assert began[-1].stdout and began[-1].stdout.readline()
        inside = ["unshare", "--fork", "--pid", "--kill-child", str(genuine), "infinity"]
        began.append(subprocess.Popen(inside))
        end, comm = time.monotonic() + 10, ""
        while comm != "conmon\n" and time.monotonic() < end:
            children = Path(f"/proc/{began[-1].pid}/task/{began[-1].pid}/children").read_text().split()
            comm = Path(f"/proc/{children[0]}/comm").read_text() if children else ""
        script = f"{resources.script('lib/lib')}\nconmons"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        assert [line.split() for line in done.stdout.splitlines() if str(tmp_path) in line] == [
            [str(genuine), "infinity"]
        ]
        assert "nvidia-container-runtime" not in done.stdout and done.stderr == ""
    finally:
        for process in began:
            process.kill()
            process.wait()
