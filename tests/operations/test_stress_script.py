"""The script and the program of ``verify --level stress`` on this machine, as far as they run without a GPU.

What they measured on real GPUs is recorded in tests/data/stress.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpuready.core import resources
from gpuready.core.records import Records
from gpuready.core.records import unmarked as records
from gpuready.gpu.stress import node
from gpuready.gpu.stress_figures import uncorrected
from gpuready.operations.stress import limit
from tests.lab import scale

UUIDS = tuple(f"GPU-00000000-0000-4000-8000-00000000000{number}" for number in (1, 2))
ROWS = "".join(
    f"{number}, {uuid}, 00000000:0{number + 4}:00.0, NVIDIA H200, Disabled, 700.00, 700.00, 0\n"
    for number, uuid in enumerate(UUIDS)
)


def rendered(place: Path, smi: str, **values: Any) -> str:
    """The script, with a driver and an nvidia-smi in ``place``."""
    tools = place / "bin"
    tools.mkdir()
    (tools / "nvidia-smi").write_text(f"#!/bin/sh\n{smi}\n", "utf-8")
    (tools / "dmesg").write_text(f"#!/bin/sh\ncat {place}/log\n", "utf-8")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (place / "log").touch()
    (place / "driver").mkdir()
    (place / "driver" / "version").touch()
    given = {"torch": "/usr/bin/python3", "image": "", "ask": (), "program": "", "seconds": 1, "limit": 30, "node": "",
             "ignore": (), **values}  # fmt: skip
    script = resources.script("stress/stress", **given)
    return script.replace("/proc/driver/nvidia/", f"{place}/driver/").replace("PATH=/usr", f"PATH={tools}:/usr")


def idle(place: Path) -> str:
    """An nvidia-smi without compute processes."""
    (place / "rows").write_text(ROWS, "utf-8")
    return f"case $* in *compute-apps*) ;; *) cat {place}/rows ;; esac"


def run(script: str) -> tuple[dict[str, tuple[int, str]], list[str]]:
    """The script's records and phases, with a stdin that stays open."""
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = process.stdout.read()
    lines = text.splitlines()
    return Records(records(text)).runs, [line.strip() for line in lines if line.startswith("phase ")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
def test_a_node_in_use_is_left_alone_and_the_process_is_named(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = rendered(tmp_path, f"echo {os.getpid()}", program=f"open({str(started)!r}, 'w')")
    found, phases = run(script)
    assert list(found) == ["busy"] and not phases and not started.exists()
    assert f"(pid {os.getpid()})" in node(found).unknown and "in use by process" in node(found).unknown


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
def test_a_gpu_in_parts_is_left_alone(tmp_path: Path) -> None:
    started, smi = tmp_path / "started", idle(tmp_path)
    (tmp_path / "rows").write_text(ROWS.replace("Disabled", "Enabled", 1), "utf-8")
    found, _ = run(rendered(tmp_path, smi, program=f"open({str(started)!r}, 'w')"))
    assert "MIG is on" in node(found).skipped and not started.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
def test_the_program_gets_the_gpus_and_its_phases_errors_and_xids_come_back(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\nos.write(3, b'memory\\n\\033[2J\\n' + 50 * b'x' + b'\\n')\nprint('noise')\n"
        f"open({str(tmp_path / 'log')!r}, 'w').write("
        "'NVRM: Xid (PCI:0000:04:00): 48, pid=1\\n[ 9.1] NVRM: Xid (PCI:[77]: segfault at 0\\n')\n"
        f"rows = open({str(tmp_path / 'rows')!r}).read()\n"
        f"open({str(tmp_path / 'rows')!r}, 'w').write(rows[:-2] + '2\\n')\n"
        "kept = os.environ['NCCL_NVLS_ENABLE']\n"
        "print(json.dumps({'seconds': float(sys.argv[1]), 'uuids': sys.argv[2:], 'nccl': kept}))"
    )
    script = "export NCCL_NVLS_ENABLE=0\n" + rendered(tmp_path, idle(tmp_path), program=program, seconds=7)
    found, phases = run(script)
    assert json.loads(found["stress"][1]) == {"seconds": 7.0, "uuids": list(UUIDS), "nccl": "0"}
    assert phases == ["phase memory"] and found["stress"][0] == 0
    assert found["xids"][1] == "NVRM: Xid (PCI:0000:04:00): 48, pid=1\n"  # not what a program named itself
    assert uncorrected(found["before"][1])[UUIDS[1]] == 0 and uncorrected(found["after"][1])[UUIDS[1]] == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
@pytest.mark.parametrize(("values", "says"), [({"torch": "/opt/none"}, "there is no /opt/none"), ({}, "exit 9")])
def test_what_cannot_run_is_refused_with_the_reason(tmp_path: Path, values: dict[str, Any], says: str) -> None:
    found, _ = run(rendered(tmp_path, "case $* in *compute-apps*) ;; *) exit 9 ;; esac", **values))
    assert list(found) == ["refused"] and says in node(found).unknown


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as on a node")
@pytest.mark.fault("stress-cut")
@pytest.mark.parametrize("signals", [0, 2])
def test_the_end_of_the_connection_and_signals_end_all_that_was_started(tmp_path: Path, signals: int) -> None:
    pids = tmp_path / "pids"
    program = (
        "import ctypes, os, signal, time\nchild = os.fork()\n"
        "if child == 0:\n ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n os.close(3)\n"
        f"else:\n open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child}}\\n'); os.write(3, b'memory\\n')\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)\n"
    )
    script = rendered(tmp_path, idle(tmp_path), program=program, limit=600)
    pipe = subprocess.PIPE
    process = subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert process.stdin is not None and process.stdout is not None
    while not process.stdout.readline().startswith("phase memory"):
        pass
    if signals:
        for _ in range(signals):
            os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(scale.seconds(30)) == 1
    else:
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(scale.seconds(30)) == 0
        found = Records(records(rest)).runs
        assert found["stress"][0] != 0 and "did not finish" in node(found).unknown
    until = time.monotonic() + scale.seconds(20)
    while left := [pid for pid in pids.read_text("utf-8").split() if Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
    assert not list(Path("/run").glob("gpuready-stress.*"))


def test_the_node_ends_the_load_before_the_controller_gives_up() -> None:
    assert limit(10) < limit(3600) < 9 * 3600


# --- the program: the process that directs the others, with workers that fail


def directed(methods: str, gpus: int = 2) -> dict[str, Any]:
    """The document of the program, whose GPU processes do ``methods`` instead of using torch."""
    source = resources.document("stress/stress.py").replace('if __name__ == "__main__":', "def unused():")
    names = ("begin", "products", "memory", "host", "peers", "store", "reduce")
    quiet = "".join(f"    def {name}(self, *given): return {{'given': given}}\n" for name in names)
    program = f"{source}\nclass Gpu(Gpu):\n{quiet}{methods}\nmain(1.0, {list(UUIDS[:gpus])!r})\n"
    found: dict[str, Any] = json.loads(ran(program))
    return found


def ran(program: str) -> str:
    """What the program prints."""
    words = [sys.executable, "-IB", "-c", "import sys; exec(sys.stdin.read())"]
    words = ["sh", "-c", 'exec "$@" 3>/dev/null', "sh", *words]
    done = subprocess.run(words, input=program, capture_output=True, text=True, timeout=scale.seconds(60), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_gpu_has_its_phases_and_one_gpu_has_no_peers() -> None:
    methods = "    def store(self, world): return {'port': 7}\n"
    both = directed(methods)["gpus"]
    assert both[0]["peers"] == {"given": [[1], 0.05]} and both[1]["peers"] == {"given": [[0], 0.05]}
    assert [gpu["reduce"]["given"][:3] for gpu in both] == [[0, 2, 7], [1, 2, 7]]
    (alone,) = directed(methods, gpus=1)["gpus"]
    assert alone["host"] and "peers" not in alone and "reduce" not in alone


@pytest.mark.fault("stress-worker")
def test_a_gpu_whose_process_dies_costs_only_its_own_answers() -> None:
    methods = (
        "    def store(self, world): return {'port': 7}\n"
        "    def memory(self, seconds):\n        if self.index: os._exit(3)\n        return {'fine': 1}\n"
    )
    good, bad = directed(methods)["gpus"]
    assert good["memory"] == {"fine": 1} and good["host"]["given"]
    assert bad["memory"] == bad["host"] == {"error": "its process has ended"}
    assert "reduce" not in good  # nobody is left to sum with


def test_an_error_of_a_phase_is_its_answer() -> None:
    methods = (
        "    def store(self, world): return {'port': 7}\n"
        "    def products(self, seconds): raise RuntimeError('CUDA error:\\nan illegal memory access')\n"
    )
    first, _ = directed(methods)["gpus"]
    assert first["products"] == {"error": "RuntimeError: CUDA error: an illegal memory access"}


@pytest.mark.fault("stress-worker")
def test_a_worker_that_hangs_is_given_up_at_its_limit() -> None:
    source = resources.document("stress/stress.py").replace('if __name__ == "__main__":', "def unused():")
    program = (
        f"{source}\nclass Gpu(Gpu):\n    def begin(self): time.sleep(600)\n"
        "worker = Worker(0)\nworker.order('begin')\nprint(worker.answer(time.monotonic() + 0.2))\n"
        "worker.order('begin')\nprint(worker.answer(time.monotonic() + 600))\n"
    )
    assert ran(program) == "{'error': 'no answer in time'}\n" * 2


def test_figures_of_passes_and_formats_by_capability() -> None:
    source = resources.document("stress/stress.py")
    names: dict[str, Any] = {"__name__": "stress"}
    exec(compile(source, "stress", "exec"), names)
    assert names["summary"]([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0, "passes": 3}
    assert names["formats"]((7, 5), True) == ["fp32", "fp16"]
    assert names["formats"]((8, 0), True) == ["fp32", "tf32", "bf16"]
    assert names["formats"]((9, 0), True)[-1] == "fp8" and names["formats"]((9, 0), False)[-1] == "bf16"
    calls: list[int] = []
    rates = names["timed"](lambda: calls.append(1), 0, 2.0, lambda: None, 2)
    assert len(rates) == 2 and min(rates) > 0 and len(calls) > 4
