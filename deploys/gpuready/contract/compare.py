"""Compare the expected state of a node with the actual one, for plan, apply and verify alike. Pure."""

from dataclasses import dataclass, field
from functools import cached_property

from gpuready.contract import owners
from gpuready.contract.check import undecided
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable
from gpuready.contract.ignored_containers import counted
from gpuready.contract.removal import Removal
from gpuready.model.readiness import not_yet
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

#: Why a component is left out of an image.
FIRST_BOOT = "pending until the first boot: it needs hardware, the driver or running services"


@dataclass(frozen=True)
class Comparison:
    """The comparison of one component on one node. ``error``: why it cannot be compared, or must not be changed."""

    name: str
    applies: bool
    reason: str = ""
    diff: tuple[Change, ...] = ()
    disruption: Disruption = Disruption.none
    affected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""


def compare(component: Component, spec: NodeSpec, state: NodeState) -> Comparison:
    """Compare one component."""
    name = component.name
    if state.image and component.needs_boot:
        return Comparison(name, False, FIRST_BOOT)
    remarks: tuple[str, ...] = ()
    try:
        applies = component.applies(spec, state)
        if applies.yes and component.owned_as and (other := owners.observed(component.owned_as, spec, state, name)):
            applies = Applies(False, other)
        else:
            remarks = component.remarks(spec, state)
        expected = component.expected(spec, state) if applies.yes else {}
    except NotComparable as e:
        return Comparison(name, True, error=str(e))
    if not applies.yes:
        return Comparison(name, False, applies.reason, notes=remarks)
    if early := not_yet(state.units, component.unit):
        return Comparison(name, True, applies.reason, error=early.unknown)
    actual = component.actual(spec, state)
    diff = tuple(Change(key, actual.get(key), want) for key, want in expected.items() if actual.get(key) != want)
    blind = [f"{c.key}: {c.actual.unknown}" for c in diff if isinstance(c.actual, Unknown)]
    return Comparison(
        name,
        True,
        applies.reason,
        diff,
        component.disruption(diff, state) if diff and not blind else Disruption.none,
        component.affected(diff, counted(spec, state)) if diff and not blind else (),
        (component.notes(diff, spec, state) if diff and not blind else ()) + remarks,
        "; ".join(dict.fromkeys(blind)),
    )


@dataclass(frozen=True)
class Plan:
    """The plan of one host. ``plan[component]`` is a comparison; it is made once, when it is first needed.

    ``order``: all components, in the order in which they run. ``selected``: the names of those to run (None: all).
    """

    order: tuple[Component, ...]
    spec: NodeSpec
    state: NodeState
    selected: frozenset[str] | None = None
    _found: dict[Component, Comparison] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, item: Component) -> Comparison:
        if item not in self._found:
            self._found[item] = compare(item, self.spec, self.state)
        return self._found[item]

    @cached_property
    def removes(self) -> bool:
        """Whether this is the plan of ``remove``: of removals instead of components."""
        return any(isinstance(item, Removal) for item in self.order)

    @property
    def judges(self) -> bool:
        """Whether checks judge the node: not what ``remove`` takes away, and not an image, in which nothing runs."""
        return not (self.removes or self.state.image)

    @property
    def undecided(self) -> str:
        """Why this node must be left alone: it may not be a GPU node. Empty if it may change, and for ``remove``."""
        return "" if self.removes else undecided(self.spec, self.state)

    @cached_property
    def chosen(self) -> tuple[Component, ...]:
        return tuple(item for item in self.order if self.selected is None or item.name in self.selected)

    @cached_property
    def left_out(self) -> tuple[Component, ...]:
        chosen = self.chosen
        return tuple(item for item in self.order if item not in chosen)
