"""The script of one end of a test, on this machine: in whose name a Python of the spec runs, and what it prints."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.base.records import Records, unmarked
from tests.lab import scale

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may enter. Those of pytest become root's alone whenever another pytest begins."""
    with tempfile.TemporaryDirectory() as found:
        Path(found).chmod(0o755)
        yield Path(found)


def environment(place: Path, torch: str) -> Path:
    """A virtual environment with a module torch of ours."""
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    subprocess.run([python, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    (site,) = (place / "env/lib").glob("python3*/site-packages")
    (site / "torch.py").write_text(torch, "utf-8")
    return place / "env"


WHO = "import os, sys\nprint(os.getuid(), sys.flags.isolated, sys.argv[1:])\n"
#: As NCCL logs: by printf of C, which nothing flushes before the process ends, or never.
LOGS = """import ctypes, os
for number in range(200):
    ctypes.CDLL(None).printf(b"host:1:2 [0] NCCL INFO comm %d\\n", number)
print("{}", flush=True)
os._exit(0)
"""


def answer(python: Path, torch: str = WHO) -> dict[str, tuple[int, str]]:
    """The records of the program ``torch``, with this Python."""
    script = resources.script(
        "fabric/fabric", tool=str(python), limit=20, port=18515, device="", number=0, netdev="lo", listens="",
        torch=torch, before=("A=1",), shell="",
        arguments=("7",), launcher=(), gloo=False, known=False,
    )  # fmt: skip
    return records(script)


def records(script: str) -> dict[str, tuple[int, str]]:
    """The records of a script whose stdin stays open."""
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        return Records(unmarked(process.stdout.read())).runs


@pytest.mark.parametrize(("told", "listens"), [(False, ""), (True, ""), (False, "tcp")])
@pytest.mark.fault("rank-in-state-d")
def test_a_tool_that_survives_its_limit_does_not_hold_the_script(told: bool, listens: str, tmp_path: Path) -> None:
    """As timeout does while its child is in state D: it goes on waiting. ``told``: gpuready asks for the end, too.

    ``listens``: the tool hangs before it listens.
    """
    real = shutil.which("timeout")
    stub = tmp_path / "timeout"
    stub.write_text(
        f"#!/bin/sh\ncase $* in *tail*) exec {real} \"$@\" ;; esac\ntrap '' TERM\n>{tmp_path}/up\nsleep 600\n", "utf-8"
    )
    stub.chmod(0o755)
    script = resources.script(
        "fabric/fabric", tool="sleep", limit=600 if told else 1, port=18515, device="", number=0, netdev="lo",
        listens=listens, torch="", before=(), shell="", arguments=("600",), launcher=(), gloo=False, known=False,
    )  # fmt: skip
    for old, new in (("STUCK=15", "STUCK=1"), ("\nPATH=", f"\nPATH={tmp_path}:")):
        assert old in script
        script = script.replace(old, new)
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            if told:
                while not (tmp_path / "up").exists():
                    time.sleep(0.05)
                process.stdin.write("\n")
                process.stdin.flush()
            process.wait(timeout=scale.seconds(60))
        finally:
            process.kill()
        assert Records(unmarked(process.stdout.read())).runs["tool"] == (137, "")


@pytest.mark.parametrize("cpus", ["0", "", "4095"])
def test_a_tool_runs_on_the_cpus_beside_its_device(cpus: str, tmp_path: Path) -> None:
    """Without a usable list, as for soft RoCE, it runs anywhere."""
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\ngrep Cpus_allowed_list /proc/self/status\n", "utf-8")
    tool.chmod(0o755)
    (tmp_path / "device").mkdir()
    (tmp_path / "device/local_cpulist").write_text(f"{cpus}\n", "utf-8")
    script = resources.script(
        "fabric/fabric", tool=str(tool), limit=20, port=18515, device="", number=0, netdev="lo", listens="", torch="",
        before=(), shell="", arguments=(), launcher=(), gloo=False, known=False,
    )  # fmt: skip
    assert "DEVICE=/sys/class/net/$NETDEV" in script
    script = script.replace("DEVICE=/sys/class/net/$NETDEV", f"DEVICE={tmp_path}")
    anywhere = Path("/proc/self/status").read_text("utf-8").split("Cpus_allowed_list:")[1].split()[0]
    assert records(script)["tool"] == (0, f"Cpus_allowed_list:\t{cpus if cpus == '0' else anywhere}\n")


def test_a_script_may_say_as_much_as_the_ranks_of_many_hosts() -> None:
    script = resources.script(
        "fabric/fabric", tool="bash", limit=20, port=18515, device="", number=0, netdev="lo", listens="", torch="",
        before=(), shell="echo first; head -c 900000 /dev/zero | tr '\\0' '\\n'", arguments=(), launcher=(), gloo=False,
        known=False,
    )  # fmt: skip
    rc, text = records(script)["tool"]
    assert rc == 0 and text.startswith("first\n")


CUDA = """class cuda:
    is_available = staticmethod(lambda: True)
class distributed:
    is_nccl_available = staticmethod(lambda: True)
"""


@pytest.mark.fault("foreign-environment")
def test_nobody_runs_a_python_of_roots(place: Path) -> None:
    env = environment(place, CUDA)
    assert answer(env / "bin/python").get("tool") == (0, "65534 1 ['7']\n")


def test_the_owner_of_an_environment_runs_it(place: Path) -> None:
    env = environment(place, CUDA)
    for each in (env, *env.rglob("*")):
        os.chown(each, 12345, 12345, follow_symlinks=False)
    found = answer(env / "bin/python")
    assert found.get("tool") == (0, "12345 1 ['7']\n"), found


def test_a_result_has_a_line_of_its_own_beside_the_log_of_nccl(place: Path) -> None:
    rc, text = answer(environment(place, CUDA) / "bin/python", LOGS)["tool"]
    assert rc == 0
    assert text.splitlines()[-1] == "{}"
    assert text.count(" NCCL INFO comm ") == 200
