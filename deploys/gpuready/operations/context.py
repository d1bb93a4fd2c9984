"""What a run knows of one host. It is the only home of the host's state, plan and outcomes.

Operations and the fleet reach it by :func:`context`; pyinfra keeps it with the host.
"""

from dataclasses import dataclass, field
from typing import Protocol

from pyinfra.api.host import Host

from gpuready.base.errors import BugError
from gpuready.contract.attempt import Attempt
from gpuready.contract.compare import Plan
from gpuready.contract.component import Disruption
from gpuready.model import probe
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations.events import Observer, Progress
from gpuready.operations.interrupts import Stop
from gpuready.result.model import Reboot

_KEY = "gpuready"


class Lock(Protocol):
    """The node's lock, while a session holds it."""

    def is_open(self) -> bool:
        """Tell whether the session is still there."""

    def close(self) -> None:
        """Release the lock."""


def _no_progress(name: str, activity: str) -> None:
    """Show nothing."""


@dataclass
class Context:
    """One host of a run: what is asked of it, what was read of it, and what was done to it.

    ``selected``: the names of the components of this run (None: all). ``again``: an earlier run began to change the
    host and did not end well, so it may have left the node drained. ``probe_timeout``: seconds. ``patience``: seconds
    to wait for another run's lock. ``stop``: whether the run was interrupted. ``settled``: the probe has waited for
    what was starting. ``current``: the number of pyinfra's operations after which ``state`` is current; -1: after none.
    ``drained``: this run drained the node. ``cordoned``: it did in Kubernetes, or tried, and did not undo that.
    ``outcomes``: by component name, in the order in which they ran. ``notes``: remarks for the user.
    """

    spec: NodeSpec
    selected: frozenset[str] | None = None
    allowed: Disruption = Disruption.none
    again: bool = False
    probe_timeout: int = probe.TIMEOUT
    progress: Progress = _no_progress
    observer: Observer | None = None
    patience: float = 0
    stop: Stop = field(default_factory=Stop)

    state: NodeState | None = None
    settled: bool = False
    current: int = 0
    plan: Plan | None = None

    outcomes: dict[str, Attempt] = field(default_factory=dict)
    reboots: list[Reboot] = field(default_factory=list)
    drained: bool = False
    cordoned: bool = False
    notes: list[str] = field(default_factory=list)
    lock: Lock | None = None
    execs: int = 0


def context(host: Host) -> Context:
    """Return the host's context, which :func:`begin` gave it."""
    found: Context | None = host.connector_data.get(_KEY)
    if found is None:
        raise BugError(f"{host.name} has no context: nothing began a run on it")
    return found


def begin(host: Host, given: Context) -> None:
    """Set the host's context, at the beginning of a run."""
    host.connector_data[_KEY] = given


def has_begun(host: Host) -> bool:
    """Tell whether the host has a context."""
    return _KEY in host.connector_data
