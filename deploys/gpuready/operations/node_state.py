"""The probe over pyinfra's connection, once a host: both phases and all operations read the same state."""

from __future__ import annotations

from pyinfra.api.host import Host

from gpuready.components.wheels import Wheels
from gpuready.operations.environments import look
from gpuready.operations.step import PROGRESS
from gpuready.operations.transport import run_script
from gpuready.spec.model import NodeSpec
from gpuready.state import probe
from gpuready.state.model import NodeState
from gpuready.state.readiness import unsettled

#: Where a host's spec and the selected components (None: all) lie among its data.
SPEC = "gpuready_spec"
SELECTED = "gpuready_selected"
#: How long the probe may take there, in seconds; without it :data:`gpuready.state.probe.TIMEOUT`.
PROBE_TIMEOUT = "gpuready_probe_timeout"
_KEY, _SETTLED = "gpuready.state", "gpuready.settled"


def node_state(host: Host) -> NodeState:
    """The host's NodeState; one exec at the first call (two where a wheel is to be installed), none after it."""
    cached = host.connector_data.get(_KEY)
    if isinstance(cached, NodeState):
        return cached
    return _keep(host, probe.read(_run(host, probe.script())))


def settled_state(host: Host) -> NodeState:
    """The same for who is about to change the node: one more exec, once, if something is starting or did not answer."""
    state = node_state(host)
    waits = unsettled(state)
    if not waits or host.connector_data.get(_SETTLED):
        return state
    host.connector_data[_SETTLED] = True
    what = f"wait up to {probe.PATIENCE + probe.LONGER} s: {', '.join(waits)}"
    host.connector_data.get(PROGRESS, lambda name, text: None)(host.name, what)
    return _keep(host, probe.read(_run(host, probe.patient_script(), probe.PATIENCE + probe.LONGER)))


def _run(host: Host, script: str, patience: int = 0) -> list[str]:
    return run_script(host, script, patience + (host.data.get(PROBE_TIMEOUT) or probe.TIMEOUT))


def _keep(host: Host, state: NodeState) -> NodeState:
    spec, selected = host.data.get(SPEC), host.data.get(SELECTED)
    if isinstance(spec, NodeSpec) and (selected is None or Wheels.name in selected):
        state = look(host, state, spec)
    host.connector_data[_KEY] = state
    return state


def forget(host: Host) -> None:
    """After a change: the next reader probes again."""
    for key in (_KEY, _SETTLED):
        host.connector_data.pop(key, None)
