"""What the operations begin and what they leave: outside of a maintenance window. Scripts are only counted."""

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from pyinfra.api.config import Config
from pyinfra.api.inventory import Inventory
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.state import State, StateStage

from gpuready.base import window
from gpuready.base.step import Reply, Step, Steps
from gpuready.contract.component import Change, Component, Disruption
from gpuready.contract.ledger import WriteFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations import node_state as module
from gpuready.operations.component import component
from gpuready.operations.context import Context, begin, context
from gpuready.operations.reboot import RebootCommand, reboot
from gpuready.operations.step import StepCommand

OPEN, CLOSED = (datetime(2026, 11, 28, hour, tzinfo=timezone.utc) for hour in (23, 12))
WAITS = "for the maintenance window, which opens Sat 2026-11-28 22:00 CET (maintenance.window)"
MAINTENANCE = {
    "window": "Sat 22:00-06:00 Europe/Berlin",
    "restart": "drained",
    "reboot": "drained",
    "drain": {"before": "a", "after": "b"},
}


class Restarting(Component):
    """A component that restarts something, until its step ran."""

    name = "restarting"
    kind = Disruption.restart
    done = False

    def expected(self, spec: NodeSpec, state: NodeState) -> dict[str, Any]:
        return {"x": 2}

    def actual(self, spec: NodeSpec, state: NodeState) -> dict[str, Any]:
        return {"x": 2 if self.done else 1}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return self.kind

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        yield Step(self.name, WriteFiles(()))
        self.done = True


class Rebooting(Restarting):
    name = "rebooting"
    kind = Disruption.reboot


class Node:
    """This machine as a host of pyinfra. ``at``: what happens at a step, by its name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps, self.at, self.clock, self.drained = list[str](), dict[str, Callable[[], object]](), OPEN, False
        monkeypatch.setattr(window, "now", lambda: self.clock)
        monkeypatch.setattr(module, "_run", lambda host, name, script, patience=0: [])
        monkeypatch.setattr(module, "parse", lambda lines, pause=None: NodeState())

        def execute(command: StepCommand, *_: Any) -> bool:
            self._step(command.step.name)
            command.reply = Reply(0, "")
            return True

        def rebooted(*_: Any) -> bool:
            self._step("reboot")
            return True

        monkeypatch.setattr(StepCommand, "execute", execute)
        monkeypatch.setattr(RebootCommand, "execute", rebooted)

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self.at.get(name, lambda: None)()

    def run(self, *items: Component, **given: Any) -> dict[str, str]:
        """Run these components and the reboot. Return what each is pending for."""
        spec = NodeSpec.model_validate({"hardware": {"gpus": "none"}, "maintenance": MAINTENANCE})
        state = State(Inventory((["@local"], {})), Config())
        state.set_stage(StateStage.Connect)
        (host,) = state.inventory
        begin(host, Context(spec, **given))
        host.connected = True
        state.activate_host(host)
        state.set_stage(StateStage.Prepare)
        for item in items:
            add_op(state, component, item=item, order=items)
        add_op(state, reboot)
        state.set_stage(StateStage.Execute)
        run_ops(state, no_wait=True)
        assert not context(host).drained
        return {name: outcome.pending for name, outcome in context(host).outcomes.items()}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(monkeypatch)


BEFORE, AFTER = "drain-before", "drain-after"


def test_inside_of_the_window_all_is_done(node: Node) -> None:
    assert node.run(Restarting(), Rebooting()) == {"restarting": "", "rebooting": ""}
    assert node.steps == [BEFORE, "restarting", "rebooting", "reboot", AFTER]


def test_outside_of_the_window_the_node_is_not_even_drained(node: Node) -> None:
    node.clock = CLOSED
    assert node.run(Restarting(), Rebooting()) == {"restarting": WAITS, "rebooting": WAITS}
    assert node.steps == []


def test_a_window_that_closes_during_the_drain(node: Node) -> None:
    """The work was moved away for nothing, so the node is brought back at once."""
    node.at[BEFORE] = lambda: setattr(node, "clock", CLOSED)
    assert node.run(Restarting()) == {"restarting": WAITS}
    assert node.steps == [BEFORE, AFTER]


def test_a_window_that_closes_between_two_components(node: Node) -> None:
    node.at["restarting"] = lambda: setattr(node, "clock", CLOSED)
    assert node.run(Restarting(), Rebooting()) == {"restarting": "", "rebooting": WAITS}
    assert node.steps == [BEFORE, "restarting", AFTER]


def test_a_window_that_closes_before_the_reboot(node: Node) -> None:
    node.at["rebooting"] = lambda: setattr(node, "clock", CLOSED)
    assert node.run(Rebooting()) == {"rebooting": WAITS}
    assert node.steps == [BEFORE, "rebooting", AFTER]
