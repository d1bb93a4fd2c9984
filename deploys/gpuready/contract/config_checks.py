"""One check at level config for each component: does the node match the spec? It uses the component's comparison."""

from collections.abc import Iterable
from functools import partial

from gpuready.base.words import count
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown
from gpuready.contract.compare import Comparison, compare
from gpuready.contract.component import Component
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def matches(found: Comparison) -> Verdict:
    """Judge one comparison."""
    if not found.applies:
        return skip(found.reason)
    if found.error:
        return unknown(found.error)
    if found.diff:
        return fail(f"{count(len(found.diff), 'difference')}: {', '.join(c.key for c in found.diff)}")
    return passed("as the spec says")


def _judge(component: Component, spec: NodeSpec, state: NodeState) -> Verdict:
    return matches(compare(component, spec, state))


def config_checks(components: Iterable[Component]) -> tuple[Check, ...]:
    """Return one check for each of these components."""
    return tuple(
        Check(
            f"{component.name}.config",
            f"{component.name} is as the spec says",
            Level.config,
            (component.__doc__ or "").strip() + " The node differs from its spec.",
            f"gpuready plan -i INVENTORY --only {component.name}",
            "gpuready apply -i INVENTORY",
            partial(_judge, component),
            component.name,
        )
        for component in components
    )
