"""What the operations begin and leave, and when a node is brought back into service. Scripts are only counted."""

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
from gpuready.gpu.node import DRAINED
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState
from gpuready.operations import node_state as module
from gpuready.operations.component import component
from gpuready.operations.context import Context, begin, context
from gpuready.operations.drain import Kubectl
from gpuready.operations.interrupts import LATER, Stop
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


class Settled(Restarting):
    """One that is as it should be."""

    name = "settled"
    done = True


class Rebooting(Restarting):
    name = "rebooting"
    kind = Disruption.reboot


class Node:
    """This machine as a host of pyinfra. ``at``: what happens at a step, by its name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps, self.at, self.clock = list[str](), dict[str, Callable[[], object]](), OPEN
        self.marked, self.maintenance, self.down = False, dict[str, Any](MAINTENANCE), ""
        monkeypatch.setattr(window, "now", lambda: self.clock)
        monkeypatch.setattr(module, "_run", lambda host, name, script, patience=0: [])
        monkeypatch.setattr(module, "parse", lambda lines, pause=None: self._state())

        def execute(command: StepCommand, *_: Any) -> bool:
            self._step(command.step.name)
            command.reply = Reply(0, "")
            return True

        def rebooted(*_: Any) -> bool:
            self._step("reboot")
            return True

        monkeypatch.setattr(StepCommand, "execute", execute)

        def kubectl(command: Kubectl, *_: Any) -> bool:
            self._step("kubectl drain" if command.away else "kubectl uncordon")
            command.trouble = self.down
            command.drained = command.drained if self.down else command.away
            return True

        monkeypatch.setattr(RebootCommand, "execute", rebooted)
        monkeypatch.setattr(Kubectl, "execute", kubectl)

    def _state(self) -> NodeState:
        mark = File(text="in Slurm, as n1\n", mode=0o600, uid=0, gid=0, mtime=0)
        return NodeState(files={DRAINED: mark} if self.marked else {})

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self.at.get(name, lambda: None)()

    def run(self, *items: Component, **given: Any) -> dict[str, str]:
        """Run these components and the reboot. Return what each is pending for."""
        spec = NodeSpec.model_validate({"hardware": {"gpus": "none"}, "maintenance": self.maintenance})
        state = State(Inventory((["@local"], {})), Config())
        state.set_stage(StateStage.Connect)
        (host,) = state.inventory
        begin(host, Context(spec, **{"allowed": Disruption.reboot, **given}))
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


@pytest.mark.fault("interrupt")
@pytest.mark.parametrize(
    ("at", "steps", "pending"),
    [
        (BEFORE, [BEFORE, AFTER], {"restarting": LATER}),
        ("restarting", [BEFORE, "restarting", AFTER], {"restarting": ""}),
        ("rebooting", [BEFORE, "restarting", "rebooting", AFTER], {"restarting": "", "rebooting": LATER}),
        (
            "reboot",
            [BEFORE, "restarting", "rebooting", "reboot", AFTER],
            {"restarting": "", "rebooting": ""},
        ),
    ],
)
def test_an_interrupt_ends_what_has_begun_and_brings_the_node_back(
    node: Node, at: str, steps: list[str], pending: dict[str, str]
) -> None:
    stop = Stop()
    node.at[at] = lambda: setattr(stop, "asked", True)
    assert node.run(Restarting(), Rebooting(), stop=stop) == pending
    assert node.steps == steps and stop.busy == {"@local"}


@pytest.mark.fault("interrupt")
def test_an_interrupt_while_the_node_is_probed_begins_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, probes = Stop(), list[str]()

    def probed() -> NodeState:
        probes.append("")
        stop.asked = len(probes) == 2  # the first one is pyinfra's, before it executes anything
        return NodeState()

    monkeypatch.setattr(node, "_state", probed)
    assert node.run(Restarting(), stop=stop) == {"restarting": LATER}
    assert not node.steps and not stop.busy


KUBECTL = {**MAINTENANCE, "drain": "kubectl"}
MARK, UNMARK = "drain-mark", "drain-unmark"


@pytest.mark.fault("controller-killed")
def test_a_node_is_marked_as_long_as_it_is_cordoned(node: Node) -> None:
    """Whenever gpuready is killed, the check node.drained says who cordoned the node."""
    node.maintenance = KUBECTL
    assert node.run(Restarting()) == {"restarting": ""}
    assert node.steps == [MARK, "kubectl drain", "restarting", "kubectl uncordon", UNMARK]


@pytest.mark.fault("kubernetes-api-down")
def test_a_node_that_could_not_be_uncordoned_keeps_its_mark(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the run drains it again for another component."""
    node.maintenance = KUBECTL
    kubectl = Kubectl.execute

    def execute(command: Kubectl, *given: Any) -> bool:
        kubectl(command, *given)
        if not node.down:  # the first drain cordons the node, and then nothing answers
            node.down = command.trouble = "no answer"
        return True

    monkeypatch.setattr(Kubectl, "execute", execute)
    pending = "until drained: no answer"
    assert node.run(Restarting(), Rebooting()) == {"restarting": pending, "rebooting": pending}
    assert node.steps == [MARK, "kubectl drain"] * 2


@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize(
    ("items", "maintenance", "marked", "steps"),
    [
        ((Settled,), MAINTENANCE, True, [AFTER]),
        ((Settled,), MAINTENANCE, False, []),
        ((Settled,), {**MAINTENANCE, "drain": "slurm"}, True, [AFTER]),
        ((Settled,), KUBECTL, False, ["kubectl uncordon", UNMARK]),  # it asks Kubernetes whose the cordon is
        ((Settled,), {}, True, []),  # now nothing is drained: check node.drained tells what to do
        ((Settled, Restarting), MAINTENANCE, True, [BEFORE, "restarting", AFTER]),
        ((Restarting, Settled), MAINTENANCE, True, [BEFORE, "restarting", AFTER]),
        ((Settled, Rebooting), MAINTENANCE, True, [BEFORE, "rebooting", "reboot", AFTER]),
    ],
    ids=lambda value: "+".join(each.name for each in value) if isinstance(value, tuple) else None,
)
def test_a_node_that_an_earlier_run_left_drained_is_brought_back_once(
    node: Node, items: tuple[type[Component], ...], maintenance: dict[str, Any], marked: bool, steps: list[str]
) -> None:
    node.marked, node.maintenance, stop = marked, maintenance, Stop()
    node.run(*(item() for item in items), again=True, stop=stop)
    assert node.steps == steps
    assert bool(stop.busy) == bool(steps), "an interrupt waits for it"


def test_a_node_that_another_run_drained_is_left_to_it(node: Node) -> None:
    node.marked = True
    node.run(Settled())
    assert node.steps == []
