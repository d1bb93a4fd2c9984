"""What a component is: it states what should be, reads what is, and says how to mend the difference.

``expected`` and ``actual`` are flat mappings; their comparison feeds plan, apply and verify alike, so the three
agree by construction (the idea is bundlewrap's). Nothing here touches the network: ``converge`` only describes
steps; :mod:`gpuready.operations` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from gpuready.core.files import NOT_REGULAR
from gpuready.core.step import Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown

Value = str | int | bool | None | tuple[str, ...] | Unknown


class Disruption(IntEnum):
    """What closing a difference may do to work that runs, in rising order.

    ``recreate``: nothing stops, but running GPU containers may lose their GPU (a daemon-reload beside containers
    whose devices were injected behind systemd's back), or running processes the libraries that they began with.
    """

    none = 0
    reload = 1
    recreate = 2
    restart = 3
    reboot = 4


class NotComparable(Exception):
    """Raised by ``expected``: this node cannot be brought to what the spec says, and why (one sentence)."""


def refuse_irregular(path: str, state: NodeState, then: str = "") -> None:
    """Raise :class:`NotComparable` where a directory, a device or a link to nowhere stands at ``path``."""
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
    """Base of all components. Subclasses are stateless and stand once each in :data:`gpuready.node.NODE`.

    ``part``: the key of ``owners`` that decides whose this is; a component of somebody else's part does not apply.
    ``unit``: the service that it configures; while systemd is still starting that, nothing is compared.
    ``renews``: what it does makes the node another one, so that those after it have it probed again.
    """

    name: ClassVar[str]
    part: ClassVar[str] = ""
    unit: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    renews: ClassVar[bool] = False

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        """Does this node need the component at all?"""
        return Applies(True)

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        """What should be; raises :class:`NotComparable`."""
        raise TypeError(f"{type(self).__name__} states no expectation")

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        """What is, at least for the keys of ``expected``; the spec only selects what to look at."""
        raise TypeError(f"{type(self).__name__} reads no state")

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        """What the keys that gpuready changed here were before its first touch; None: the key was not there.

        Empty where nothing on the node is gpuready's. ``gpuready remove`` closes the difference to this.
        """
        return {}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        """The class of closing ``diff`` on this node."""
        return Disruption.none

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        """The parts of ``diff`` that can be closed one without the next, least disruptive first."""
        return (diff,)

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        """Whom that would disturb, by name; empty when nobody."""
        return ()

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """What the user should know about the way the difference is closed."""
        return ()

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """What the user should know where nothing differs: asked for in vain here, or not asked for any more."""
        return ()

    def in_vain(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        """The remark of a component that the spec asks for and that does not apply."""
        applies = self.applies(spec, state)
        return () if applies.yes else (f"in the spec, but nothing to do on this node: {applies.reason}",)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        """The steps that bring each key of ``diff`` to its ``expected``; each ``yield`` gives the :class:`Reply`."""
        raise TypeError(f"{type(self).__name__} cannot converge")
