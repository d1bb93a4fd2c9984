"""One check at level config for each component: does the node match the spec? It uses the component's comparison."""

from __future__ import annotations

from collections.abc import Iterable

from gpuready.core.check import Check, Judge, Level, Verdict, fail, passed, skip, unknown
from gpuready.core.compare import compare
from gpuready.core.component import Component
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState


def _judge(component: Component) -> Judge:
    def judge(spec: NodeSpec, state: NodeState) -> Verdict:
        found = compare(component, spec, state)
        if not found.applies:
            return skip(found.reason)
        if found.error:
            return unknown(found.error)
        if found.diff:
            return fail(f"{len(found.diff)} differences: {', '.join(c.key for c in found.diff)}")
        return passed("as the spec says")

    return judge


def config_checks(components: Iterable[Component]) -> tuple[Check, ...]:
    """Return one check for each of these components."""
    return tuple(
        Check(
            f"{component.name}.config",
            Level.config,
            (component.__doc__ or "").strip() + " The node differs from its spec.",
            f"gpuready plan -i INVENTORY --only {component.name}",
            "gpuready apply -i INVENTORY",
            _judge(component),
        )
        for component in components
    )
