"""The plan of a host is made once for each state that was read, and shared by all that need it.

A state is read once, too, until something may have changed the node.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from pyinfra.api.config import Config
from pyinfra.api.inventory import Inventory
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.state import State, StateStage
from pyinfra.operations import python

from gpuready import pyinfra as deploys
from gpuready.base.facts import Answer
from gpuready.base.step import Reply
from gpuready.components.memlock.component import Memlock
from gpuready.components.nccl.component import Nccl
from gpuready.contract.compare import Plan
from gpuready.contract.component import Disruption, Value
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.node import NODE
from gpuready.operations import node_state as module
from gpuready.operations.component import component
from gpuready.operations.context import Context, begin, context
from gpuready.operations.node_state import forget, host_plan, settled_state
from gpuready.operations.reboot import reboot
from gpuready.operations.step import StepCommand
from gpuready.result.model import HostResult
from gpuready.run.evaluate import fill_checks, fill_components

WANTED = NodeSpec.model_validate({"hardware": {"gpus": "none"}, "memlock": "unlimited"})
STATE = NodeState(systemd=True, capabilities="ffffffffff")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NodeState]:
    """The states with which memlock was compared."""
    states: list[NodeState] = []
    original = Memlock.expected

    def expected(self: Memlock, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        states.append(state)
        return original(self, spec, state)

    monkeypatch.setattr(Memlock, "expected", expected)
    return states


def test_plan_and_checks_share_the_comparisons(asked: list[NodeState]) -> None:
    run, plan = HostResult("n1", state=STATE), Plan(NODE, WANTED, STATE)
    fill_components(run, plan, Disruption.restart)
    fill_checks(run, plan)
    run.state = STATE.model_copy(update={"active": {"done": Answer()}})  # as after the active checks of verify
    fill_checks(run, plan)
    verdicts = {each.id: each.status for each in run.checks}
    assert verdicts["memlock.config"] == "fail" and "docker.smoke" in verdicts
    assert len(asked) == 1


def test_a_run_and_both_phases_of_pyinfra_share_the_plan(
    asked: list[NodeState], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(self: StepCommand, *_: Any) -> bool:
        self.reply = Reply(0, "")
        return True

    monkeypatch.setattr(StepCommand, "execute", execute)
    monkeypatch.setattr(module, "_run", lambda host, script, patience=0: [])
    monkeypatch.setattr(module, "parse", lambda lines, pause=None: STATE.model_copy())
    order = (Memlock(),)
    state = State(Inventory((["@local"], {})), Config())
    state.set_stage(StateStage.Connect)
    (host,) = state.inventory
    begin(host, Context(WANTED))
    host.connected = True
    state.activate_host(host)
    plan = host_plan(host, settled_state(host), order)
    assert plan[order[0]].diff
    state.set_stage(StateStage.Prepare)
    add_op(state, component, item=order[0], order=order)
    state.set_stage(StateStage.Execute)
    run_ops(state, no_wait=True)
    assert context(host).outcomes["memlock"].changed and context(host).outcomes["memlock"].comparison is plan[order[0]]
    assert len(asked) == 1
    assert host_plan(host, plan.state, NODE).order == NODE
    forget(host)
    assert host_plan(host, settled_state(host), order)[order[0]].diff and len(asked) == 2


OURS, OTHER = "ours", "other"


@pytest.mark.parametrize(
    "before, operations, probes",
    [
        ("", [OURS, OURS], 1),
        ("", [OTHER, OURS, OURS], 1),
        ("", [OURS, OTHER, OURS, OURS], 2),
        ("", [OURS, "verify", OURS], 3),
        ("detect", ["verify", "verify"], 2),  # never while pyinfra detects changes
        ("detect", [OURS, OURS], 2),  # once for the detection
        ("detect", [OTHER, OURS], 2),
        ("look", [OURS, "left out", "reboot", OURS], 1),  # a run of gpuready
    ],
)
def test_operations_probe_again_when_the_node_may_have_changed(
    before: str, operations: list[str], probes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``before``: pyinfra detects changes before it executes, or a run looks at the node even before that."""
    sent: list[str] = []
    monkeypatch.setattr(module, "_run", lambda host, name, script, patience=0: sent.append(name) or [])
    monkeypatch.setattr(module, "parse", lambda lines, pause=None: STATE.model_copy())
    monkeypatch.setattr(deploys, "run_active", lambda host, state, spec, questions: state)
    monkeypatch.setattr(deploys, "run_checks", lambda *_, **__: [])
    state = State(Inventory((["@local"], {})), Config(), check_for_changes=bool(before))
    state.set_stage(StateStage.Connect)
    (host,) = state.inventory
    begin(host, Context(WANTED.model_copy(update={"memlock": None}), frozenset({"memlock"})))
    host.connected = True
    state.activate_host(host)
    if before == "look":
        settled_state(host)
    state.set_stage(StateStage.Prepare)
    item = Memlock()
    calls: dict[str, tuple[Any, dict[str, Any]]] = {
        OURS: (component, {"item": item, "order": (item,)}),
        "left out": (component, {"item": Nccl(), "order": (item,)}),
        OTHER: (python.call, {"function": lambda: None}),
        "reboot": (reboot, {}),
        "verify": (deploys.judge, {}),
    }
    for name in operations:
        operation, arguments = calls[name]
        add_op(state, operation, **arguments)
    state.set_stage(StateStage.Execute)
    run_ops(state)
    assert (state.results[host].ops, sent) == (len(operations), ["probe"] * probes)


def test_where_a_wheel_is_to_be_installed_its_environment_is_a_second_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def look(*_: object) -> NodeState:
        sent.append("look")
        return STATE

    monkeypatch.setattr(module, "_run", lambda host, name, script, patience=0: sent.append(name) or [])
    monkeypatch.setattr(module, "parse", lambda lines, pause=None: STATE.model_copy())
    monkeypatch.setattr("gpuready.operations.environments.look", look)
    state = State(Inventory((["@local"], {})), Config())
    (host,) = state.inventory
    begin(host, Context(WANTED))
    assert module.node_state(host).systemd and sent == ["probe", "look"]
