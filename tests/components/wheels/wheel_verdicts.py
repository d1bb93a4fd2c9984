"""Verdicts of the check of installed wheels, for test_checks.py: id, status, node, spec, part of the summary."""

from __future__ import annotations

import json
from typing import Any

from gpuready.components.wheels.record import Record, path
from gpuready.state.model import Driver, File, NodeState
from tests.state.probe_answers import recorded

FILE = "tests/data/wheels/torch-2.2.1-cp310-cp310-linux_x86_64.whl"
NAMED: dict[str, Any] = {"torch_wheels": [{"wheel": FILE, "env": "/opt/train"}]}
TWO: dict[str, Any] = {"torch_wheels": [*NAMED["torch_wheels"], {"wheel": "apex-0.1-py3-none-any.whl", "env": "/o"}]}
GOOD: dict[str, Any] = {
    "version": "2.2.1",
    "missing": [],
    "torch": "2.2.1",
    "cuda": "12.1",
    "architectures": ["sm_80", "sm_90"],
    "nccl": [2, 19, 3],
}


def node(rc: int = 0, out: str | None = None, **told: Any) -> NodeState:
    text = json.dumps({**GOOD, **told}) if out is None else out
    driver = Driver(proc_version="580.159.04", smi=recorded("nvidia-smi-q-x.xml"))  # of an H200: 9.0
    return NodeState(driver=driver, active={"wheel0": {"rc": rc, "out": text}})


def error(text: str) -> dict[str, str]:
    return {"error": text}


VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("wheels.works", "skip", node(), {}, "no torch_wheels"),
    ("wheels.works", "unknown", NodeState(), NAMED, "torch in /opt/train: it was not asked"),
    ("wheels.works", "unknown", node(124, "no answer within 120 s"), NAMED, "did not answer: no answer within 120 s"),
    ("wheels.works", "unknown", node(139, ""), NAMED, "did not answer: exit 139"),
    ("wheels.works", "unknown", node(0, "[1]"), NAMED, "did not answer: [1]"),
    ("wheels.works", "unknown", node(0, '{"version": "1"}'), NAMED, "did not answer"),
    ("wheels.works", "unknown", node(), TWO, "apex in /o: it was not asked"),
    ("wheels.works", "fail", node(version=error("PackageNotFoundError: torch")), NAMED, "PackageNotFoundError"),
    ("wheels.works", "fail", node(version=error("Gone")), TWO, "torch in /opt/train: Gone"),
    ("wheels.works", "fail", node(torch=error("OSError: libcudart.so.12")), NAMED, "cannot be imported: OSError"),
    ("wheels.works", "fail", node(architectures=["sm_80", "sm_86"]), NAMED, "has no kernels for NVIDIA H200 (sm_90)"),
    ("wheels.works", "fail", node(architectures=["sm_100", "compute_100"]), NAMED, "was built for sm_100, compute_100"),
    ("wheels.works", "pass", node(architectures=["sm_80", "compute_80"]), NAMED, "torch 2.2.1 in /opt/train"),
    ("wheels.works", "pass", node(architectures=["sm_90a"]), NAMED, "torch 2.2.1 in /opt/train"),
    ("wheels.works", "warn", node(missing=["sympy>=1.13"]), NAMED, "lacks sympy>=1.13"),
    ("wheels.works", "warn", node(nccl=[2, 10, 3]), NAMED, "NCCL 2.10.3 has no ncclRemoteError"),
    ("wheels.works", "pass", node(), NAMED, "torch 2.2.1 in /opt/train, CUDA 12.1, NCCL 2.19.3"),
    ("wheels.works", "pass", node(cuda=None, nccl=None, architectures=[]), NAMED, "torch 2.2.1 in /opt/train"),
    (
        "wheels.works",
        "pass",
        node(out=recorded("wheel-smoke.json")),
        NAMED,
        "torch 2.11.0 in /opt/train, CUDA 13.0, NCCL",
    ),
    ("wheels.works", "pass", node(out="noise\n" + json.dumps(GOOD)), NAMED, "torch 2.2.1"),
]

_SHA = "bd1c0edcaa95a8fdde583eb42f7da8d2e5e0bc9b2644ec5b4387379afa3bbbe3"
_INFO = "/opt/train/lib/python3.10/site-packages/torch-2.2.1.dist-info"
_MINE = Record(_INFO, "/opt/train", "torch", "2.2.1", _SHA, "")
_FILE = File(text=_MINE.text, mode=0o644, uid=0, gid=0, mtime=1)
_KEPT = NodeState(files={path("/opt/train", "torch"): _FILE}, wheels={_INFO: _SHA})
VERDICTS += [
    ("wheels.config", "skip", NodeState(), {}, "no torch_wheels"),
    ("wheels.config", "unknown", NodeState(), NAMED, "/opt/train was not looked at"),
    ("wheels.config", "pass", _KEPT, NAMED, "as the spec says"),
    ("wheels.config", "fail", _KEPT.model_copy(update={"wheels": {_INFO: ""}}), NAMED, "wheels./opt/train.torch"),
]
