"""Verdicts of the check of installed wheels: id, status, node, spec, part of the summary."""

import json
from typing import Any

from gpuready.components.wheels.record import Record, path
from gpuready.model.state import Driver, NodeState, Unknown
from tests.model.probe_answers import recorded
from tests.verdicts import Row, fails, held, is_unknown, passes, root_files, skips, warns

FILE = "tests/data/wheels/torch-2.2.1-cp310-cp310-linux_x86_64.whl"
NAMED: dict[str, Any] = {"torch_wheels": [{"wheel": FILE, "env": "/opt/train"}]}
TWO: dict[str, Any] = {"torch_wheels": [*NAMED["torch_wheels"], {"wheel": "apex-0.1-py3-none-any.whl", "env": "/o"}]}
GOOD: dict[str, Any] = {"version": "2.2.1", "torch": "2.2.1", "cuda": "12.1", "nccl": [2, 19, 3], "missing": []}
GOOD["architectures"] = ["sm_80", "sm_90"]


def node(rc: int = 0, out: str | None = None, **told: Any) -> NodeState:
    text = json.dumps({**GOOD, **told}) if out is None else out
    driver = Driver(proc_version="580.159.04", smi=recorded("nvidia-smi-q-x.xml"))  # of an H200: 9.0
    return NodeState(driver=driver, active={"wheel0": {"rc": rc, "out": text}})


def error(text: str) -> dict[str, str]:
    return {"error": text}


VERDICTS: list[Row] = [
    skips("wheels.works", "no torch_wheels", node()),
    is_unknown("wheels.works", "torch in /opt/train: not checked", spec=NAMED),
    is_unknown("wheels.works", "did not answer: no answer within 120 s", node(124, "no answer within 120 s"), NAMED),
    is_unknown("wheels.works", "was cut", NodeState(active={"wheel0": Unknown(unknown="was cut")}), NAMED),
    is_unknown("wheels.works", "did not answer: exit 139", node(139, ""), NAMED),
    is_unknown("wheels.works", "did not answer: [1]", node(0, "[1]"), NAMED),
    is_unknown("wheels.works", "did not answer", node(0, '{"version": "1"}'), NAMED),
    is_unknown("wheels.works", "apex in /o: not checked", node(), TWO),
    fails("wheels.works", "PackageNotFoundError", node(version=error("PackageNotFoundError: torch")), NAMED),
    fails("wheels.works", "torch in /opt/train: Gone", node(version=error("Gone")), TWO),
    fails("wheels.works", "cannot be imported: OSError", node(torch=error("OSError: libcudart.so.12")), NAMED),
    fails("wheels.works", "has no kernels for NVIDIA H200 (sm_90)", node(architectures=["sm_80", "sm_86"]), NAMED),
    fails("wheels.works", "was built for sm_100, compute_100", node(architectures=["sm_100", "compute_100"]), NAMED),
    passes("wheels.works", "torch 2.2.1 in /opt/train", node(architectures=["sm_80", "compute_80"]), NAMED),
    passes("wheels.works", "torch 2.2.1 in /opt/train", node(architectures=["sm_90a"]), NAMED),
    warns("wheels.works", "lacks sympy>=1.13", node(missing=["sympy>=1.13"]), NAMED),
    warns("wheels.works", "NCCL 2.10.3 has no ncclRemoteError", node(nccl=[2, 10, 3]), NAMED),
    passes("wheels.works", "torch 2.2.1 in /opt/train, CUDA 12.1, NCCL 2.19.3", node(), NAMED),
    passes("wheels.works", "torch 2.2.1 in /opt/train", node(cuda=None, nccl=None, architectures=[]), NAMED),
    passes("wheels.works", "torch 2.11.0 in /opt/train, CUDA 13.0", node(out=recorded("wheel-smoke.json")), NAMED),
    passes("wheels.works", "torch 2.2.1", node(out="noise\n" + json.dumps(GOOD)), NAMED),
]

_SHA = "bd1c0edcaa95a8fdde583eb42f7da8d2e5e0bc9b2644ec5b4387379afa3bbbe3"
_INFO = "/opt/train/lib/python3.10/site-packages/torch-2.2.1.dist-info"
_MINE = Record(_INFO, "/opt/train", "torch", "2.2.1", _SHA, "")
_KEPT = NodeState(files=root_files({path("/opt/train", "torch"): f"{_INFO}\n{_MINE.said}\n"}), wheels={_INFO: _SHA})
VERDICTS += [
    skips("wheels.config", "no torch_wheels"),
    is_unknown("wheels.config", "/opt/train was not inspected", spec=NAMED),
    passes("wheels.config", "as the spec says", _KEPT, NAMED),
    fails("wheels.config", "wheels./opt/train.torch", _KEPT.model_copy(update={"wheels": {_INFO: ""}}), NAMED),
]
test_verdict = held(VERDICTS)
