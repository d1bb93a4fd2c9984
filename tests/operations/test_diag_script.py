"""The script of ``dcgm.diag`` on this machine, with stand-ins for dcgmi, nvidia-smi and the diagnostic (nvvs)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuready.core import resources
from gpuready.core.records import Records
from gpuready.core.records import unmarked as records
from gpuready.gpu.diag import LIMITS, diagnosis
from gpuready.operations.diag import _AROUND
from tests.gpu.test_diag import CARDS, UUIDS, discovery
from tests.lab import scale

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
#: dcgmi forwards SIGTERM to the diagnostic and waits for it.
STOPS = """trap 'kill "$(cat {place}/pid)"' TERM
while [ -e "/proc/$(cat {place}/pid)/exe" ]; do sleep 0.05; done; exit 3"""
#: It does not react at all.
HANGS = "trap '' TERM; while :; do sleep 0.05; done"


def rendered(place: Path, diag: str = "echo '{}'", **tools: str) -> str:
    """The script, with tools in ``place``; ``diag`` is what ``dcgmi diag -r 2 -j`` does."""
    (place / "rows").write_text(CARDS, "utf-8")
    (place / "table").write_text(discovery(*UUIDS), "utf-8")
    (place / "log").touch()
    (place / "driver").mkdir()
    (place / "driver/version").touch()
    own = {
        "nvidia-smi": f"case $* in *compute-apps*) ;; *) cat {place}/rows ;; esac",
        "dcgmi": f"case $* in 'discovery -l') cat {place}/table ;; 'diag -r 2 -j') {diag} ;; *) exit 9 ;; esac",
        "dmesg": f"cat {place}/log",
    }
    (place / "bin").mkdir()
    for name, text in (own | tools).items():
        (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        (place / "bin" / name).chmod(0o755)
    script = resources.script("dcgm/diag", level=2, limit=30, node="", ignore=())
    script = script.replace("timeout -k 30 30", "timeout -k 1 30")  # of a dcgmi that hangs
    script = script.replace("/proc/driver/nvidia/", f"{place}/driver/")
    return script.replace("PATH=/usr", f"PATH={place}/bin:/usr")


def nvvs(place: Path, then: str) -> str:
    """Start a process of that name, which nobody waits for, and go on."""
    program = "import os, time; open('/proc/self/comm', 'w').write('nvvs'); time.sleep(600)"
    (place / "nvvs.py").write_text(program, "utf-8")
    return (
        f"setsid {sys.executable} {place}/nvvs.py >/dev/null 2>&1 & echo $! >{place}/pid.new\n"
        f"until grep -qsx nvvs /proc/$!/comm; do sleep 0.05; done\nmv {place}/pid.new {place}/pid\n"
        + then.format(place=place)
    )


def run(script: str) -> dict[str, tuple[int, str]]:
    """The script's records, with a stdin that stays open."""
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        return Records(records(process.stdout.read())).runs


def test_the_records_are_what_the_tools_printed(tmp_path: Path) -> None:
    xid = "NVRM: Xid (PCI:0000:04:00): 48, pid=1"
    found = run(rendered(tmp_path, f"echo '{xid}' >>{tmp_path}/log; echo before; echo '{{}}'; exit 226"))
    assert found == {
        "before": (0, CARDS),
        "after": (0, CARDS),
        "gpus": (0, discovery(*UUIDS)),
        "xids": (0, f"{xid}\n"),
        "diag": (226, "before\n{}\n"),
    }
    assert not list(Path("/run").glob("gpuready-dcgm.*"))


def test_what_it_prints_is_limited(tmp_path: Path) -> None:
    rc, text = run(rendered(tmp_path, "exec head -c 9000000 /dev/zero"))["diag"]
    assert rc and len(text) == 1_000_000


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ({"dcgmi": "echo 'Error: unable to establish a connection'; exit 1"}, "exit 1, Error: unable to establish"),
        ({"nvidia-smi": "case $* in *compute-apps*) ;; *) exit 9 ;; esac"}, "nvidia-smi: exit 9"),
        ({"nvidia-smi": f"echo {os.getpid()}"}, f"(pid {os.getpid()})"),
    ],
    ids=["no-service", "no-answer", "busy"],
)
def test_it_does_not_begin_where_it_cannot(tmp_path: Path, tools: dict[str, str], says: str) -> None:
    found = run(rendered(tmp_path, f"touch {tmp_path}/ran", **tools))
    assert says in diagnosis(found).unknown and len(found) == 1 and not (tmp_path / "ran").exists()


def test_without_dcgmi_the_reason_says_what_installs_it(tmp_path: Path) -> None:
    script = rendered(tmp_path).replace("has dcgmi", "has dcgmi-of-no-package")
    assert "dcgm: {install: true}" in diagnosis(run(script)).fix


def test_a_gpu_in_parts_is_left_alone(tmp_path: Path) -> None:
    script = rendered(tmp_path, f"touch {tmp_path}/ran")
    (tmp_path / "rows").write_text(CARDS.replace("Disabled", "Enabled", 1), "utf-8")
    assert "MIG is on" in diagnosis(run(script)).skipped and not (tmp_path / "ran").exists()


def test_a_diagnostic_of_others_is_work(tmp_path: Path) -> None:
    script = rendered(tmp_path, f"touch {tmp_path}/ran")
    subprocess.run(["sh", "-c", nvvs(tmp_path, "")], check=True)
    pid = int((tmp_path / "pid").read_text("utf-8"))
    try:
        assert f"a diagnostic of DCGM (nvvs, pid {pid})" in diagnosis(run(script)).unknown
        assert Path(f"/proc/{pid}/exe").exists() and not (tmp_path / "ran").exists()
    finally:
        os.kill(pid, 9)


def test_a_diagnostic_of_others_that_began_meanwhile_goes_on(tmp_path: Path) -> None:
    found = run(rendered(tmp_path, nvvs(tmp_path, "echo '{{}}'")))
    pid = int((tmp_path / "pid").read_text("utf-8"))
    try:
        assert found["diag"] == (0, "{}\n") and Path(f"/proc/{pid}/exe").exists()
    finally:
        os.kill(pid, 9)


@pytest.mark.fault("stress-cut")
@pytest.mark.parametrize("then", [STOPS, HANGS])
def test_the_end_of_the_connection_ends_the_diagnostic(tmp_path: Path, then: str) -> None:
    script = rendered(tmp_path, nvvs(tmp_path, then))
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        until = time.monotonic() + scale.seconds(60)
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.05)
        process.stdin.close()
        found = Records(records(process.stdout.read())).runs
    pid = (tmp_path / "pid").read_text("utf-8").strip()
    assert found["diag"][0] != 0 and diagnosis(found).unknown
    while Path(f"/proc/{pid}/exe").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not list(Path("/run").glob("gpuready-dcgm.*"))


def test_the_node_ends_the_diagnostic_before_the_controller_gives_up() -> None:
    assert list(LIMITS) == [1, 2, 3, 4] and min(LIMITS.values()) > 60 and _AROUND > 30 + 30 + 3 * 30
