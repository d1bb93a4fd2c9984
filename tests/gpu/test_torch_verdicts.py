"""Verdicts of the check of a named PyTorch: id, status, node, spec, part of the summary."""

import json
from typing import Any

from gpuready.model.state import Driver, NodeState
from tests.model.probe_answers import recorded
from tests.verdicts import Row, fails, held, is_unknown, passes, skips, warns

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
VERDICTS: list[Row] = [
    skips("gpu.python", "names no PyTorch environment"),
    is_unknown("gpu.python", "not checked", spec=NAMED),
    is_unknown("gpu.python", "no answer within 10 s", looked("no answer within 10 s\n", 124), NAMED),
    fails("gpu.python", f"torch: there is no {PYTHON}", looked(f"there is no {PYTHON} on this node\n"), NAMED),
    passes("gpu.python", f"{PYTHON} exists", looked(""), NAMED),
    skips("gpu.torch", "names no PyTorch environment", node()),
    skips("gpu.torch", "no nvidia module", spec=NAMED),
    is_unknown("gpu.torch", "not checked", NodeState(driver=Driver(proc_version="1.1")), NAMED),
    is_unknown("gpu.torch", "did not answer: no answer within 120 s", node(124, "no answer within 120 s"), NAMED),
    is_unknown("gpu.torch", f"{PYTHON} did not answer: x: not found", node(127, "x: not found"), NAMED),
    is_unknown("gpu.torch", "did not answer: exit 139", node(139, ""), NAMED),
    is_unknown("gpu.torch", "did not answer: [1]", node(0, "[1]"), NAMED),
    fails("gpu.torch", "cannot import torch: ModuleNotFoundError", node(torch=error("ModuleNotFoundError: x")), NAMED),
    fails("gpu.torch", "built without CUDA", node(cuda=None), NAMED),
    fails("gpu.torch", "sees no GPU: CUDA initialization", node(available=False, warnings=[WARNING]), NAMED),
    fails("gpu.torch", "Error 803: system has unsupported display driver", node(out=MISMATCH), NAMED),
    fails("gpu.torch", "sees no GPU: no reason given", node(available=False), NAMED),
    fails("gpu.torch", "sees 1 of 8 GPUs", node(), {**NAMED, "hardware": {"gpus": 8}}),
    fails("gpu.torch", "no kernel image is available", node(product=error("no kernel image\nis available")), NAMED),
    fails("gpu.torch", "a matrix product on the GPU returned 1.0, expected 1048576.0", node(product=1.0), NAMED),
    fails("gpu.torch", "an NCCL all-reduce on the GPU failed", node(reduced=error("ncclSystemError")), NAMED),
    fails("gpu.torch", "Triton finds no libcuda", node(triton=error("libcuda.so cannot found!")), NAMED),
    warns("gpu.torch", "NCCL 2.10.3, GPUs: 1: this NCCL does not report a lost peer", node(nccl=[2, 10, 3]), NAMED),
    passes("gpu.torch", "torch 2.11.0+cu130 for CUDA 13.0, NCCL 2.28.9, GPUs: 1", node(), NAMED),
    passes("gpu.torch", "torch 2.11.0", node(out="a line of a library\n" + json.dumps(GOOD)), NAMED),
    passes("gpu.torch", "torch 2.11.0", node(triton=None), NAMED),
]
test_verdict = held(VERDICTS)
