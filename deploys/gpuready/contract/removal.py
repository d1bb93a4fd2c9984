"""Removal: a component on its way back, whose expected state is the one from before gpuready's first change.

``gpuready remove`` compares, permits and converges removals as apply does components. Their order is the reverse, and
everything before must be back first: a package goes after the configuration that names it.
"""

from collections.abc import Collection, Sequence

from gpuready.base.step import Steps
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, Component, Disruption, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


class WholeFiles(Component):
    """A component that changes whole files, which ``remove`` restores as they were."""

    def touched(self, state: NodeState) -> Collection[str]:
        """Return the files that this component may have changed."""
        raise TypeError(f"{type(self).__name__} names no files")

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        return ledger.whole(self.name, state, self.touched(state))

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        return ledger.restore(self.name, diff, state)


class Removal(Component):
    """What ``remove`` does with a component. ``of``: the component; ``requires``: the names of those removed before.

    ``users``: the names of those that need it. It waits for them even if the user did not select them.
    """

    def __init__(self, of: Component, requires: tuple[str, ...] = (), users: tuple[str, ...] = ()) -> None:
        self.of, self.requires, self.users = of, requires, users
        self.name, self.unit, self.renews = of.name, of.unit, of.renews

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        changed = bool(self.expected(spec, state))
        return Applies(changed, "gpuready changed it" if changed else "gpuready changed nothing here")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        return self.of.original(spec, state)

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        return self.of.actual(spec, state)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return self.of.disruption(diff, state)

    def stage(self, change: Change) -> int:
        return self.of.stage(change)

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return self.of.affected(diff, state)

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return self.of.notes_on_removal(diff, spec, state)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        return self.of.restore(diff, spec, state)


def removals(components: Sequence[Component]) -> tuple[Component, ...]:
    """Return the removals of these components, in the order in which they run: the reverse."""
    back = components[::-1]
    return tuple(
        Removal(
            item,
            requires=tuple(earlier.name for earlier in back[:number]),
            users=tuple(other.name for other in back if item.name in other.requires),
        )
        for number, item in enumerate(back)
    )
