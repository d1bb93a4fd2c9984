"""Verdicts on the gate: is it installed, and what does it say?"""

from typing import Any

from gpuready.components.gate.component import SCRIPT, wanted
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.verdicts import Row, fails, held, is_unknown, passes, root_file, skips

ON: dict[str, Any] = {"gate": True, "hardware": {"gpus": 2}}


def said(rc: int, out: str) -> NodeState:
    return NodeState(active={"gate": {"rc": rc, "out": out}})


def installed() -> NodeState:
    text = wanted(NodeSpec.model_validate(ON), NodeState())
    return NodeState(files={SCRIPT: root_file(text, 0o755)})


VERDICTS: list[Row] = [
    skips("gate.config", "gate: off"),
    fails("gate.config", "gate.script", None, ON),
    passes("gate.config", "as the spec says", installed(), ON),
    is_unknown("gate.config", "gpuready never saw a GPU here", None, {"gate": True}),
    skips("gate.ready", "gate: off"),
    is_unknown("gate.ready", "not checked", None, ON),
    is_unknown("gate.ready", "nvidia-smi gave no", NodeState(active={"gate": {"unknown": "nvidia-smi gave no"}}), ON),
    passes("gate.ready", "GPUs: 2, driver 580.1", said(0, "gpuready: ok: GPUs: 2, driver 580.1\n"), ON),
    fails("gate.ready", "gpuready: driver.nodes: there is no", said(1, "gpuready: driver.nodes: there is no /x\n"), ON),
    fails("gate.ready", "exits with 127 and prints nothing", said(127, ""), ON),
]
test_verdict = held(VERDICTS)
