"""The probe over pyinfra's connection, once a host: both phases and all operations read the same state."""

from __future__ import annotations

from pyinfra.api.host import Host

from gpuready.operations.transport import run_script
from gpuready.state import probe
from gpuready.state.model import NodeState

_KEY = "gpuready.state"


def node_state(host: Host) -> NodeState:
    """The host's NodeState; one exec at the first call, none after it."""
    cached = host.connector_data.get(_KEY)
    if isinstance(cached, NodeState):
        return cached
    state = probe.read(run_script(host, probe.script(), probe.TIMEOUT))
    host.connector_data[_KEY] = state
    return state


def forget(host: Host) -> None:
    """After a change: the next reader probes again."""
    host.connector_data.pop(_KEY, None)
