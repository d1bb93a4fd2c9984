"""Probe a host over pyinfra's connection. Phases and operations share the state and the plan.

They do so until something may have changed the node.
"""

from pyinfra.api.host import Host
from pyinfra.api.state import StateStage

from gpuready.contract.compare import Plan
from gpuready.contract.component import Component
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.readiness import unsettled
from gpuready.model.state import NodeState
from gpuready.operations.context import context
from gpuready.operations.step import show
from gpuready.operations.transport import run_script
from gpuready.operations.watchdog import LONG, holding, stand_aside


def node_state(host: Host) -> NodeState:
    """Return the host's NodeState. The first call runs one exec, two if a wheel must be installed; later calls none."""
    return context(host).state or _keep(host, _parsed(_run(host, "probe", probe.script())))


def settled_state(host: Host) -> NodeState:
    """Return the state for a run that acts on the node, not only reads it.

    If something is still starting or did not answer, wait and probe once more.
    """
    state = node_state(host)
    waits = unsettled(state)
    if not waits or context(host).settled:
        return state
    context(host).settled = True
    show(host, f"wait up to {probe.PATIENCE + probe.LONGER} s: {', '.join(waits)}")
    return _keep(host, _parsed(_run(host, "probe again", probe.patient_script(), probe.PATIENCE + probe.LONGER)))


def _run(host: Host, name: str, script: str, patience: int = 0) -> list[str]:
    return run_script(host, script, patience + context(host).probe_timeout, name)


def _parsed(lines: list[str]) -> NodeState:
    if sum(map(len, lines)) > LONG:
        stand_aside()
    with holding("reading") as pause:
        return parse(lines, pause)


def _keep(host: Host, state: NodeState) -> NodeState:
    from gpuready.operations.environments import look  # it needs a component, and that the tables of CUDA

    node = context(host)
    node.state = look(host, state, node.spec, node.selected)
    if host.state.current_stage == StateStage.Prepare:  # pyinfra detects changes; the user may take time to confirm
        node.current = -1
    return node.state


def host_plan(host: Host, state: NodeState, order: tuple[Component, ...] = ()) -> Plan:
    """Return the host's plan for ``state``; the same one until the state or the components change.

    ``order``: the components; by default, those of its last plan.
    """
    node = context(host)
    plan = node.plan
    order = order or (plan.order if plan else ())
    if plan is None or plan.state is not state or plan.order != order:
        plan = node.plan = Plan(order, node.spec, state, node.selected)
    return plan


def forget_outdated(host: Host) -> None:
    """Drop the state if pyinfra read it before the execution, or if an operation of somebody else ran since.

    Each of gpuready's operations calls this first, and so counts itself.
    """
    if host.state.is_executing:
        completed = host.state.get_results_for_host(host).ops
        if context(host).current != completed:
            forget(host)
        context(host).current = completed + 1


def forget(host: Host) -> None:
    """Drop the state after a change, so that the next call probes again."""
    context(host).state, context(host).settled = None, False
