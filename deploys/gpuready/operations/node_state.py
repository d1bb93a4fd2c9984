"""The probe over pyinfra's connection, once a host: both phases and all operations read the same state."""

from __future__ import annotations

from pyinfra.api.host import Host

from gpuready.components.wheels import Wheels
from gpuready.operations.environments import look
from gpuready.operations.transport import run_script
from gpuready.spec.model import NodeSpec
from gpuready.state import probe
from gpuready.state.model import NodeState

#: Where a host's spec and the selected components (None: all) lie among its data.
SPEC = "gpuready_spec"
SELECTED = "gpuready_selected"
_KEY = "gpuready.state"


def node_state(host: Host) -> NodeState:
    """The host's NodeState; one exec at the first call (two where a wheel is to be installed), none after it."""
    cached = host.connector_data.get(_KEY)
    if isinstance(cached, NodeState):
        return cached
    state = probe.read(run_script(host, probe.script(), probe.TIMEOUT))
    spec, selected = host.data.get(SPEC), host.data.get(SELECTED)
    if isinstance(spec, NodeSpec) and (selected is None or Wheels.name in selected):
        state = look(host, state, spec)
    host.connector_data[_KEY] = state
    return state


def forget(host: Host) -> None:
    """After a change: the next reader probes again."""
    host.connector_data.pop(_KEY, None)
