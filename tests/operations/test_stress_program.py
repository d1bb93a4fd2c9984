"""The program of ``verify --level stress`` without GPUs: the process that directs the others, and workers that fail."""

import json
import subprocess
import sys
from typing import Any

import pytest

from gpuready.base import resources
from tests.components.dcgm.test_diag import UUIDS
from tests.lab import scale

SOURCE = resources.document("stress/stress.py").replace('if __name__ == "__main__":', "def unused():")


def directed(methods: str = "", gpus: int = 2) -> dict[str, Any]:
    """The document of the program, whose GPU processes do ``methods`` instead of using torch."""
    names = ("begin", "products", "memory", "host", "peers", "reduce")
    quiet = "".join(f"    def {name}(self, *given): return {{'given': given}}\n" for name in names)
    quiet += "    def store(self, world): return {'port': 7}\n"
    program = f"{SOURCE}\nclass Gpu(Gpu):\n{quiet}{methods}\nmain(1.0, {UUIDS[:gpus]!r})\n"
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
    both = directed()["gpus"]
    assert both[0]["peers"] == {"given": [[1], 0.05]} and both[1]["peers"] == {"given": [[0], 0.05]}
    assert [gpu["reduce"]["given"][:3] for gpu in both] == [[0, 2, 7], [1, 2, 7]]
    (alone,) = directed(gpus=1)["gpus"]
    assert alone["host"] and "peers" not in alone and "reduce" not in alone


@pytest.mark.fault("stress-worker")
def test_a_gpu_whose_process_dies_costs_only_its_own_answers() -> None:
    methods = "    def memory(self, seconds):\n        if self.index: os._exit(3)\n        return {'fine': 1}\n"
    good, bad = directed(methods)["gpus"]
    assert good["memory"] == {"fine": 1} and good["host"]["given"]
    assert bad["memory"] == bad["host"] == {"error": "its process has ended"}
    assert "reduce" not in good  # nobody is left to sum with


def test_an_error_of_a_phase_is_its_answer() -> None:
    methods = "    def products(self, seconds): raise RuntimeError('CUDA error:\\nan illegal memory access')\n"
    first, _ = directed(methods)["gpus"]
    assert first["products"] == {"error": "RuntimeError: CUDA error: an illegal memory access"}


@pytest.mark.fault("stress-worker")
def test_a_worker_that_hangs_is_given_up_at_its_limit() -> None:
    program = (
        f"{SOURCE}\nclass Gpu(Gpu):\n    def begin(self): time.sleep(600)\n"
        "worker = Worker(0)\nworker.order('begin')\nprint(worker.answer(time.monotonic() + 0.2))\n"
        "worker.order('begin')\nprint(worker.answer(time.monotonic() + 600))\n"
    )
    assert ran(program) == "{'error': 'no answer in time'}\n" * 2


def test_figures_of_passes_and_formats_by_capability() -> None:
    names: dict[str, Any] = {"__name__": "stress"}
    exec(compile(SOURCE, "stress", "exec"), names)
    assert names["summary"]([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0, "passes": 3}
    assert names["formats"]((7, 5), True) == ["fp32", "fp16"]
    assert names["formats"]((8, 0), True) == ["fp32", "tf32", "bf16"]
    assert names["formats"]((9, 0), True)[-1] == "fp8" and names["formats"]((9, 0), False)[-1] == "bf16"
    calls: list[int] = []
    rates = names["timed"](lambda: calls.append(1), 0, 2.0, lambda: None, 2)
    assert len(rates) == 2 and min(rates) > 0 and len(calls) > 4
