"""The scripts of ``verify --level stress`` and of ``dcgm.diag`` on this machine, with stand-ins for all that they run.

What they measured on real GPUs is recorded in tests/data/stress.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from gpuready.base import resources
from gpuready.base.records import Records, unmarked
from gpuready.components.dcgm.diag import LIMITS, diagnosis
from gpuready.gpu.stress import Node, node
from gpuready.gpu.stress_figures import uncorrected
from gpuready.verbs.verify.nodes import _AROUND, limit
from tests.components.dcgm.test_diag import CARDS, UUIDS, discovery
from tests.lab import scale
from tests.operations.gpu_node import NO_NAMESPACES, Runs, on_a_node, run, tool

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
XID = "NVRM: Xid (PCI:0000:04:00): 48, pid=1\n"
#: dcgmi forwards SIGTERM to the diagnostic and waits for it.
STOPS = """trap 'kill "$(cat {place}/pid)"' TERM
while [ -e "/proc/$(cat {place}/pid)/exe" ]; do sleep 0.05; done; exit 3"""
#: It does not react at all.
HANGS = "trap '' TERM; while :; do sleep 0.05; done"


def stress(place: Path, program: str, **values: Any) -> str:
    """The script that loads the GPUs with this program, which nobody runs, and which may write to ``place``."""
    for folder in (place, *place.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    place.chmod(0o777)
    given = {"torch": "/usr/bin/python3", "image": "", "ask": (), "seconds": 1, "limit": 30, "node": "", "ignore": ()}
    return on_a_node(place, resources.script("stress/stress", program=program, **(given | values)))


def diag(place: Path, does: str = "echo '{}'") -> str:
    """The script of the diagnostic; ``does`` is what ``dcgmi diag -r 2 -j`` does."""
    (place / "table").write_text(discovery(*UUIDS), "utf-8")
    tool(place, "dcgmi", f"case $* in 'discovery -l') cat {place}/table ;; 'diag -r 2 -j') {does} ;; *) exit 9 ;; esac")
    script = resources.script("dcgm/diag", level=2, limit=30, node="", ignore=())
    return on_a_node(place, script.replace("timeout -k 30 30", "timeout -k 1 30"))  # of a dcgmi that hangs


class Load(NamedTuple):
    """A load that leaves the file ``ran``, and what its records mean."""

    script: Callable[[Path], str]
    result: Callable[[Runs], Node]


LOADS = {
    "stress": Load(lambda place: stress(place, f"open('{place}/ran', 'w')"), node),
    "diag": Load(lambda place: diag(place, f"touch {place}/ran"), diagnosis),
}


def of_others(place: Path, does: str) -> str:
    """Start a process with the name of a diagnostic (nvvs), which nobody waits for, and go on."""
    program = "import os, time; open('/proc/self/comm', 'w').write('nvvs'); time.sleep(600)"
    (place / "nvvs.py").write_text(program, "utf-8")
    return (
        f"setsid {sys.executable} {place}/nvvs.py >/dev/null 2>&1 & echo $! >{place}/pid.new\n"
        f"until grep -qsx nvvs /proc/$!/comm; do sleep 0.05; done\nmv {place}/pid.new {place}/pid\n"
        + does.format(place=place)
    )


def wait_until_unlocked(file: Path) -> None:
    """Its pids are those of a namespace, so each process of the load holds this lock."""
    until = time.monotonic() + scale.seconds(60)
    with file.open() as held:
        while True:
            try:
                return fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < until
                time.sleep(0.05)


def wait_until_gone(pids: Path) -> None:
    until = time.monotonic() + scale.seconds(60)
    while left := [pid for pid in pids.read_text("utf-8").split() if Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize(
    ("smi", "record", "says"),
    [
        ("case $* in *compute-apps*) ;; *) exit 9 ;; esac", "refused", "nvidia-smi: exit 9"),
        ("echo PID", "busy", "(pid PID)"),
        ("case $* in *compute-apps*) ;; *) sed 1s/Disabled/Enabled/ ROWS ;; esac", "before", "MIG is on"),
    ],
    ids=["no-answer", "busy", "parts"],
)
def test_a_load_does_not_begin_where_it_must_not(tmp_path: Path, load: Load, smi: str, record: str, says: str) -> None:
    script, pid = load.script(tmp_path), str(os.getpid())
    tool(tmp_path, "nvidia-smi", smi.replace("PID", pid).replace("ROWS", f"{tmp_path}/rows"))
    found, text = run(script)
    why = load.result(found)
    assert list(found) == [record] and "\nphase " not in text and not (tmp_path / "ran").exists()
    assert says.replace("PID", pid) in why.unknown + why.skipped


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_load_waits_until_an_interrupted_one_has_ended(tmp_path: Path, load: Load) -> None:
    """The connection of the other one broke, so nobody holds the node's lock any more."""
    script = load.script(tmp_path)
    (tmp_path / "load").touch(0o600)
    with (tmp_path / "load").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            limit = time.monotonic() + scale.seconds(120)
            while subprocess.run(["pgrep", "-x", "flock", "-P", str(process.pid)], check=False).returncode:
                assert time.monotonic() < limit and process.poll() is None
                time.sleep(0.05)
            assert not (tmp_path / "ran").exists()
            fcntl.flock(other, fcntl.LOCK_UN)
            while not (tmp_path / "ran").exists():
                assert time.monotonic() < limit
                time.sleep(0.05)
            process.communicate()


@pytest.mark.parametrize(
    ("torch", "says"),
    [
        ("/opt/none", "there is no /opt/none on this node"),
        ("/usr", "/usr is a directory: name the environment's python, such as /usr/bin/python"),
        ("/etc/passwd", "/etc/passwd is no program: it lacks the x bit"),
    ],
)
def test_a_python_that_cannot_be_run_is_the_reason(tmp_path: Path, torch: str, says: str) -> None:
    found, _ = run(stress(tmp_path, "", torch=torch))
    assert list(found) == ["refused"] and f"{says} (see gpu.python)" in node(found).unknown


def test_the_program_gets_the_gpus_and_its_phases_errors_and_xids_come_back(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\nos.write(3, b'memory\\n\\033[2J\\n' + 50 * b'x' + b'\\n')\nprint('noise 1')\n"
        f"open('{tmp_path}/log', 'w').write({XID!r} + '[ 9.1] NVRM: Xid (PCI:[77]: segfault at 0\\n')\n"
        f"rows = open('{tmp_path}/rows').read()\nopen('{tmp_path}/rows', 'w').write(rows[:-2] + '2\\n')\n"
        "kept = os.environ['NCCL_NVLS_ENABLE']\n"
        "print(json.dumps({'seconds': float(sys.argv[1]), 'uuids': sys.argv[2:], 'nccl': kept}))"
    )
    found, text = run("export NCCL_NVLS_ENABLE=0\n" + stress(tmp_path, program, seconds=7))
    assert json.loads(found["stress"][1]) == {"seconds": 7.0, "uuids": UUIDS, "nccl": "0"}
    assert [line.strip() for line in text.splitlines() if line.startswith("phase ")] == ["phase memory"]
    assert found["stress"][0] == 0 and found["xids"][1] == XID  # not what a program named itself
    assert uncorrected(found["before"][1])[UUIDS[1]] == 0 and uncorrected(found["after"][1])[UUIDS[1]] == 2


def test_without_namespaces_it_runs_as_nobody_or_says_why_not(tmp_path: Path) -> None:
    script = stress(tmp_path, "import json, os\nprint(json.dumps({'seconds': os.geteuid()}))")
    assert json.loads(run(script, NO_NAMESPACES)[0]["stress"][1]) == {"seconds": 65534}
    (python := tmp_path / "env" / "bin" / "python").parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/python3")
    python.parent.chmod(0o700)
    (again := tmp_path / "again").mkdir()
    refused, _ = run(stress(again, f"open('{again}/ran', 'w')", torch=str(python)), NO_NAMESPACES)
    assert list(refused) == ["refused"] and not (again / "ran").exists()
    assert f"its Python runs as nobody, who cannot read {tmp_path}/env" in node(refused).unknown


def wait_for_phase(stdout: IO[str], name: str) -> None:
    lines = []
    while not (lines and lines[-1].startswith(f"phase {name}")):
        lines.append(stdout.readline())
        assert lines[-1], f"it ended before: {lines}"


@pytest.mark.fault("stress-cut")
@pytest.mark.parametrize("signals", [0, 2])
def test_the_end_of_the_connection_and_signals_end_all_that_was_started(tmp_path: Path, signals: int) -> None:
    lock = tmp_path / "lock"
    program = (
        f"import fcntl, os, signal, time\nheld = open({str(lock)!r}, 'w')\nfcntl.flock(held, fcntl.LOCK_EX)\n"
        "if os.fork() == 0:\n os.setsid()\n"
        "else:\n os.write(3, b'memory\\n')\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)\n"
    )
    script, pipe = stress(tmp_path, program, limit=600), subprocess.PIPE
    process = subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert process.stdin is not None and process.stdout is not None
    wait_for_phase(process.stdout, "memory")
    if signals:
        for _ in range(signals):
            os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(scale.seconds(120)) == 1
    else:
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(scale.seconds(120)) == 0
        found = Records(unmarked(rest)).runs
        assert found["stress"][0] != 0 and "did not finish" in node(found).unknown
    wait_until_unlocked(lock)
    assert not list(Path("/run").glob("gpuready-stress.*"))


def test_the_records_of_the_diagnostic_are_what_the_tools_printed(tmp_path: Path) -> None:
    found, _ = run(diag(tmp_path, f"echo '{XID.strip()}' >>{tmp_path}/log; echo before; echo '{{}}'; exit 226"))
    assert found == {
        "before": (0, CARDS),
        "after": (0, CARDS),
        "gpus": (0, discovery(*UUIDS)),
        "xids": (0, XID),
        "diag": (226, "before\n{}\n"),
    }
    assert not list(Path("/run").glob("gpuready-dcgm.*"))


def test_what_dcgmi_prints_is_limited(tmp_path: Path) -> None:
    rc, text = run(diag(tmp_path, "exec head -c 9000000 /dev/zero"))[0]["diag"]
    assert rc and len(text) == 1_000_000


def test_a_service_that_does_not_answer_is_the_reason(tmp_path: Path) -> None:
    script = diag(tmp_path)
    tool(tmp_path, "dcgmi", "echo 'Error: unable to establish a connection'; exit 1")
    found, _ = run(script)
    assert list(found) == ["refused"] and "exit 1, Error: unable to establish" in diagnosis(found).unknown


def test_without_dcgmi_the_reason_says_what_installs_it(tmp_path: Path) -> None:
    script = diag(tmp_path).replace("has dcgmi", "has dcgmi-of-no-package")
    assert "dcgm: {install: true}" in diagnosis(run(script)[0]).fix


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """The pid of a diagnostic of others, which still runs."""

    def pid() -> int:
        found = int((tmp_path / "pid").read_text("utf-8"))
        assert Path(f"/proc/{found}/exe").exists()
        return found

    yield pid
    os.kill(pid(), 9)
    wait_until_gone(tmp_path / "pid")  # else the next script may still see it


def test_a_diagnostic_of_others_is_work(tmp_path: Path, others: Callable[[], int]) -> None:
    script = LOADS["diag"].script(tmp_path)
    subprocess.run(["sh", "-c", of_others(tmp_path, "")], check=True)
    found, _ = run(script)
    assert f"a diagnostic of DCGM (nvvs, pid {others()})" in diagnosis(found).unknown
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("others")
def test_a_diagnostic_of_others_that_began_meanwhile_goes_on(tmp_path: Path) -> None:
    found, _ = run(diag(tmp_path, of_others(tmp_path, "echo '{{}}'")))
    assert found["diag"] == (0, "{}\n")


@pytest.mark.fault("stress-cut")
@pytest.mark.parametrize("then", [STOPS, HANGS])
def test_the_end_of_the_connection_ends_the_diagnostic(tmp_path: Path, then: str) -> None:
    script = diag(tmp_path, of_others(tmp_path, then))
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        until = time.monotonic() + scale.seconds(60)
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.05)
        process.stdin.close()
        found = Records(unmarked(process.stdout.read())).runs
    assert found["diag"][0] != 0 and diagnosis(found).unknown
    wait_until_gone(tmp_path / "pid")
    assert not list(Path("/run").glob("gpuready-dcgm.*"))


def test_the_node_ends_a_load_before_the_controller_gives_up() -> None:
    assert limit(10) < limit(3600) < 9 * 3600
    assert list(LIMITS) == [1, 2, 3, 4] and min(LIMITS.values()) > 60 and _AROUND > 30 + 30 + 3 * 30
