"""Verdicts of the check of a named PyTorch, for test_checks.py: id, status, node, spec, part of the summary."""

from __future__ import annotations

import json
from typing import Any

from gpuready.state.model import Driver, NodeState
from tests.state.probe_answers import recorded

PYTHON = "/opt/train/bin/python"
NAMED: dict[str, Any] = {"verify": {"torch": PYTHON}}
#: Of an H200; the second with the libcuda of the compat package, which that driver does not take.
GOOD: dict[str, Any] = json.loads(recorded("torch-smoke.json"))
MISMATCH = recorded("torch-smoke-803.json")


def node(rc: int = 0, out: str | None = None, **told: Any) -> NodeState:
    text = json.dumps({**GOOD, **told}) if out is None else out
    return NodeState(driver=Driver(proc_version="580.159.04"), active={"torch": {"rc": rc, "out": text}})


def looked(out: str, rc: int = 0) -> NodeState:
    return NodeState(active={"python": {"rc": rc, "out": out}})


def error(text: str) -> dict[str, str]:
    return {"error": text}


WARNING = "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility"
VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("gpu.python", "skip", NodeState(), {}, "names no PyTorch environment"),
    ("gpu.python", "unknown", NodeState(), NAMED, "not checked"),
    ("gpu.python", "unknown", looked("no answer within 10 s\n", 124), NAMED, "no answer within 10 s"),
    ("gpu.python", "fail", looked(f"there is no {PYTHON} on this node\n"), NAMED, f"torch: there is no {PYTHON}"),
    ("gpu.python", "pass", looked(""), NAMED, f"{PYTHON} exists"),
    ("gpu.torch", "skip", node(), {}, "names no PyTorch environment"),
    ("gpu.torch", "skip", NodeState(), NAMED, "no nvidia module"),
    ("gpu.torch", "unknown", NodeState(driver=Driver(proc_version="1.1")), NAMED, "not checked"),
    ("gpu.torch", "unknown", node(124, "no answer within 120 s"), NAMED, "did not answer: no answer within 120 s"),
    ("gpu.torch", "unknown", node(127, "x: not found"), NAMED, f"{PYTHON} did not answer: x: not found"),
    ("gpu.torch", "unknown", node(139, ""), NAMED, "did not answer: exit 139"),
    ("gpu.torch", "unknown", node(0, "[1]"), NAMED, "did not answer: [1]"),
    (
        "gpu.torch",
        "fail",
        node(torch=error("ModuleNotFoundError: x")),
        NAMED,
        "cannot import torch: ModuleNotFoundError",
    ),
    ("gpu.torch", "fail", node(cuda=None), NAMED, "built without CUDA"),
    ("gpu.torch", "fail", node(available=False, warnings=[WARNING]), NAMED, "sees no GPU: CUDA initialization"),
    ("gpu.torch", "fail", node(out=MISMATCH), NAMED, "Error 803: system has unsupported display driver"),
    ("gpu.torch", "fail", node(available=False), NAMED, "sees no GPU: no reason given"),
    ("gpu.torch", "fail", node(), {**NAMED, "hardware": {"gpus": 8}}, "sees 1 of 8 GPUs"),
    ("gpu.torch", "fail", node(product=error("no kernel image\nis available")), NAMED, "no kernel image is available"),
    ("gpu.torch", "fail", node(product=1.0), NAMED, "a matrix product on the GPU returned 1.0, expected 1048576.0"),
    ("gpu.torch", "fail", node(reduced=error("ncclSystemError")), NAMED, "an NCCL all-reduce on the GPU failed"),
    ("gpu.torch", "fail", node(triton=error("libcuda.so cannot found!")), NAMED, "Triton finds no libcuda"),
    ("gpu.torch", "warn", node(nccl=[2, 10, 3]), NAMED, "NCCL 2.10.3, GPUs: 1: this NCCL does not report a lost peer"),
    ("gpu.torch", "pass", node(), NAMED, "torch 2.11.0+cu130 for CUDA 13.0, NCCL 2.28.9, GPUs: 1"),
    ("gpu.torch", "pass", node(out="a line of a library\n" + json.dumps(GOOD)), NAMED, "torch 2.11.0"),
    ("gpu.torch", "pass", node(triton=None), NAMED, "torch 2.11.0"),
]
