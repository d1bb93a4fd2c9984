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
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations.step import show
from gpuready.operations.transport import run_script
from gpuready.operations.watchdog import LONG, holding, stand_aside

#: The keys of a host's data for its spec, the selected components (None: all) and the permitted disruption.
SPEC = "gpuready_spec"
SELECTED = "gpuready_selected"
ALLOWED = "gpuready_allowed"
#: The key for the time limit of the probe, in seconds. Default: :data:`gpuready.model.probe.TIMEOUT`.
PROBE_TIMEOUT = "gpuready_probe_timeout"
_KEY, _SETTLED, _PLAN = "gpuready.state", "gpuready.settled", "gpuready.plan"
#: The key for the number of pyinfra's operations on the host after which its state is current; -1: after none.
_CURRENT = "gpuready.current"


def node_state(host: Host) -> NodeState:
    """Return the host's NodeState. The first call runs one exec, two if a wheel must be installed; later calls none."""
    cached = host.connector_data.get(_KEY)
    if isinstance(cached, NodeState):
        return cached
    return _keep(host, probed(host))


def probed(host: Host) -> NodeState:
    """Probe the host now, in one exec."""
    return _parsed(_run(host, "probe", probe.script()))


def settled_state(host: Host) -> NodeState:
    """Return the state for a run that acts on the node, not only reads it.

    If something is still starting or did not answer, wait and probe once more.
    """
    state = node_state(host)
    waits = unsettled(state)
    if not waits or host.connector_data.get(_SETTLED):
        return state
    host.connector_data[_SETTLED] = True
    show(host, f"wait up to {probe.PATIENCE + probe.LONGER} s: {', '.join(waits)}")
    return _keep(host, _parsed(_run(host, "probe again", probe.patient_script(), probe.PATIENCE + probe.LONGER)))


def _run(host: Host, name: str, script: str, patience: int = 0) -> list[str]:
    return run_script(host, script, patience + (host.data.get(PROBE_TIMEOUT) or probe.TIMEOUT), name)


def _parsed(lines: list[str]) -> NodeState:
    if sum(map(len, lines)) > LONG:
        stand_aside()
    with holding("reading") as pause:
        return parse(lines, pause)


def _keep(host: Host, state: NodeState) -> NodeState:
    spec = host.data.get(SPEC)
    if isinstance(spec, NodeSpec):
        from gpuready.operations.environments import look  # it needs a component, and that the tables of CUDA

        state = look(host, state, spec, host.data.get(SELECTED))
    host.connector_data[_KEY] = state
    if host.state.current_stage == StateStage.Prepare:  # pyinfra detects changes; the user may take time to confirm
        host.connector_data[_CURRENT] = -1
    return state


def host_plan(host: Host, state: NodeState, order: tuple[Component, ...], *, original: bool) -> Plan:
    """Return the host's plan for ``state``; the same one until the state or the components change."""
    plan = host.connector_data.get(_PLAN)
    if not isinstance(plan, Plan) or plan.state is not state or (plan.order, plan.original) != (order, original):
        plan = Plan(order, host.data.get(SPEC), state, host.data.get(SELECTED), original)
        host.connector_data[_PLAN] = plan
    return plan


def forget_outdated(host: Host) -> None:
    """Drop the state if pyinfra read it before the execution, or if an operation of somebody else ran since.

    Each of gpuready's operations calls this first, and so counts itself.
    """
    if host.state.is_executing:
        completed = host.state.get_results_for_host(host).ops
        if host.connector_data.get(_CURRENT, 0) != completed:
            forget(host)
        host.connector_data[_CURRENT] = completed + 1


def forget(host: Host) -> None:
    """Drop the state after a change, so that the next call probes again."""
    for key in (_KEY, _SETTLED):
        host.connector_data.pop(key, None)
