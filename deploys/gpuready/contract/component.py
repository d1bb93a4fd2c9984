"""Base class for components: each declares the expected state, reads the actual state, and lists the steps between.

``expected`` and ``actual`` are flat mappings. plan, apply and verify all use their comparison, so the three agree (the
idea is bundlewrap's). Nothing here touches the network: ``converge`` only describes steps, and
:mod:`gpuready.operations` runs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from gpuready.base.files import NOT_REGULAR
from gpuready.base.step import Steps
from gpuready.components.docker.state import gpu_containers
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

Value = str | int | bool | None | tuple[str, ...] | Unknown
Values = Mapping[str, Value]


class Disruption(IntEnum):
    """What closing a difference may do to running work, in rising order.

    ``recreate``: nothing stops, but running GPU containers may lose their GPU, or running processes their libraries.
    For example, a daemon-reload takes devices away that were injected without systemd's knowledge.
    """

    none = 0
    reload = 1
    recreate = 2
    restart = 3
    reboot = 4


class NotComparable(Exception):
    """This node cannot reach the state that the spec describes. The message is one sentence that says why.

    A component is then blocked, and a check unknown.
    """


def unusable(path: str, why: object, more: str = "") -> NotComparable:
    """Return the refusal of a file that its owner must repair first. ``more``: what else to write there."""
    return NotComparable(f"{path}: {why}; fix it by hand; it was not changed{more}")


def refuse_irregular(path: str, state: NodeState, then: str = "") -> None:
    """Raise :class:`NotComparable` if ``path`` is a directory, a device or a dangling link."""
    if path in state.not_files:
        raise NotComparable(f"{path} is {NOT_REGULAR}{then}")


@dataclass(frozen=True)
class Change:
    """One key that differs."""

    key: str
    actual: Value
    expected: Value


@dataclass(frozen=True)
class Applies:
    """Whether a component concerns this node; ``reason`` is shown to the user."""

    yes: bool
    reason: str = ""


class Component:
    """Base of all components. Subclasses are stateless; :data:`gpuready.node.NODE` lists each one once.

    ``owned_as``: the key of ``owners`` that applies. If the host does not own that part, the component does not apply.
    ``unit``: the service that it configures. While systemd starts that service, the component is not compared.
    ``needs_boot``: it depends on hardware, the driver or running services, so an image leaves it to its first boot.
    ``requires``: the components that must converge before this one.
    ``users``: those that it waits for even if the user did not select them; only a removal has some.
    ``renews``: its steps change so much that the node is probed again before the next component.
    """

    name: str
    owned_as: str = ""
    unit: str = ""
    needs_boot: bool = False
    requires: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    renews: bool = False

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        """Tell whether the component concerns this node, and why."""
        return Applies(True)

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        """Return the expected value of each key. Raises :class:`NotComparable`."""
        raise TypeError(f"{type(self).__name__} states no expectation")

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        """Return the actual values, at least for the keys of ``expected``. The spec only selects what to look at."""
        raise TypeError(f"{type(self).__name__} reads no state")

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        """Return what the keys were before gpuready first changed them; None: the key did not exist.

        Empty if gpuready changed nothing on this node. ``gpuready remove`` expects these values (contract/removal.py).
        """
        return {}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        """Return the class of disruption that closing ``diff`` causes on this node."""
        return Disruption.none

    def stage(self, change: Change) -> int:
        """Return when a change can be closed: without the changes of later stages. The least disruptive is 0."""
        return 0

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        stages = sorted({self.stage(change) for change in diff})
        return tuple(tuple(change for change in diff if self.stage(change) == stage) for stage in stages)

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        """Name the running work that closing ``diff`` would disturb; empty if there is none.

        By default, these are the containers with GPUs if the disruption is *recreate* or worse.
        """
        return gpu_containers(state.docker) if self.disruption(diff, state) >= Disruption.recreate else ()

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """Return what the user should know about how the difference is closed."""
        return ()

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """Return what the user should know even without a difference, such as a setting that has no effect here."""
        return ()

    def installs(self, spec: NodeSpec) -> str:
        """Name what it installs from the node's own package sources, for ``bundle``, which leaves it out; or empty."""
        return ""

    def remark_if_unused(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """Return a remark if the component does not apply, although the spec asks for it."""
        applies = self.applies(spec, state)
        return () if applies.yes else (f"in the spec, but nothing to do on this node: {applies.reason}",)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        """Yield the steps that bring each key of ``diff`` to its expected value; ``yield`` returns a :class:`Reply`."""
        raise TypeError(f"{type(self).__name__} cannot converge")

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        """Yield the steps back to the values of ``original``; by default, those of ``converge`` can do it."""
        return self.converge(diff, spec, state)

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """Return what the user should know about the way back; by default, the notes of the way there."""
        return self.notes(diff, spec, state)
