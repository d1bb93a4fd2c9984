"""Reboot an idle host once, after all its components, and wait until it is back.

First, a script on the node checks what would boot next. A new boot_id proves the reboot; a connection does not, because
a system that shuts down still accepts it. The step only orders the reboot, so its answer is not lost.
Sources: random(4) for boot_id, systemctl(1) is-system-running, systemd-run(1).
"""

import time
from collections.abc import Generator
from typing import Any

import gevent
from paramiko import SSHException
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.connectors.local import LocalConnector
from pyinfra.context import host

from gpuready.base import window
from gpuready.base.errors import BugError, ConvergeError, GpureadyError, UnreachableError
from gpuready.base.step import PENDING_EXIT, Script, Step
from gpuready.contract import ignored_containers
from gpuready.contract.permission import outside
from gpuready.inventory.connection import LOCAL
from gpuready.model.spec import NodeSpec
from gpuready.operations import drain, lock
from gpuready.operations.connection import obstacle
from gpuready.operations.context import context
from gpuready.operations.interrupts import LATER
from gpuready.operations.node_state import forget, forget_outdated, node_state
from gpuready.operations.step import Failed, Pending, ResultUnknown, last_line, reconnect, run_step, show
from gpuready.operations.transport import ask, hang_up
from gpuready.result.model import Reboot

#: Seconds between two attempts to connect, for one attempt, and for services to start once the node answers.
_PAUSE, _LOOK, _SERVICES = 2, 45, 180


@operation()
def reboot() -> Generator[PyinfraCommand, None, None]:
    """Reboot the host if a component needs a reboot and has permission for it."""
    forget_outdated(host)
    node = context(host)
    due = [outcome for outcome in node.outcomes.values() if outcome.reboot]
    if not due:
        host.noop("no reboot is needed")
        return
    drained = drain.may_be_drained(host, node.spec.maintenance)
    error: GpureadyError | Pending | None
    if later := LATER if node.stop.asked else outside(node.spec, window.now()):
        error = Pending(later)
    else:
        command = RebootCommand(node.spec)
        yield command
        error = command.error
    if isinstance(error, Pending):
        for outcome in due:
            outcome.pending = str(error)
    elif error is None:
        forget(host)
        for outcome in due:
            outcome.pending, outcome.changed, outcome.touched = "", True, True
    if drained:
        error = yield from _let_back(node.spec, error)
    if isinstance(error, GpureadyError):
        for outcome in due:
            outcome.pending, outcome.error = "", error
        yield Failed(error)


def _let_back(spec: NodeSpec, error: GpureadyError | Pending | None) -> drain.Result:
    """Resume a drained node, if it came back."""
    if isinstance(error, UnreachableError):
        return UnreachableError(f"{error}; the node is still drained", remedy=error.remedy)
    stays = yield from drain.end(host, spec.maintenance)
    if not stays:
        return error
    told = f"{error}; {stays}" if isinstance(error, GpureadyError) else stays
    return ConvergeError(told, remedy="bring the node back into service, then run again")


class OrderReboot(Script, template="lib/reboot"):
    """Order a reboot, unless the next kernel is incomplete or somebody uses the node."""

    work: tuple[str, ...]


class RebootCommand(PyinfraCommand):
    """A pyinfra command that reboots the node. ``error``: the reboot was refused, or the node did not come back."""

    def __init__(self, spec: NodeSpec) -> None:
        super().__init__()
        self.spec = spec
        self.error: GpureadyError | Pending | None = None

    def execute(self, state: Any, host: Host, connector_arguments: Any) -> bool:
        """Called by pyinfra. Stores failures for the operation."""
        try:
            lock.hold(host)
            self._reboot(host)
        except (GpureadyError, Pending) as e:
            self.error = e
        except Exception as e:  # pyinfra would drop it, and the operation with it
            self.error = BugError(f"reboot: {type(e).__name__}: {e}")
        return True

    def _reboot(self, host: Host) -> None:
        if isinstance(host.connector, LocalConnector):
            raise Pending(f"until you reboot this machine: gpuready runs on it ({LOCAL}) and would end itself")
        before, began = node_state(host).boot_id, time.monotonic()
        script = OrderReboot(ignored_containers.words(self.spec))
        show(host, "check whether the node may reboot")
        try:
            reply = run_step(host, Step("reboot", script, timeout=300))
        except ResultUnknown:  # the reboot may have begun: boot_id tells
            pass
        else:
            if reply.rc == PENDING_EXIT:
                raise Pending(last_line(reply.err))
            if reply.rc:
                raise ConvergeError(f"not rebooted: {last_line(reply.err)}")
        lock.release(host)
        after = _await(host, before, self.spec.maintenance.reboot_timeout)
        context(host).reboots.append(Reboot(before, after, time.monotonic() - began))


def _await(host: Host, before: str, limit: int) -> str:
    """Return the boot_id of the new system. Wait at most ``limit`` seconds."""
    end = time.monotonic() + limit
    seen = "nothing"
    while True:
        hang_up(host)
        show(host, f"reboot: waits for the node ({seen})" if seen != "nothing" else "reboot")
        try:
            with gevent.Timeout(_LOOK, UnreachableError(f"no SSH session within {_LOOK} s")):
                reconnect(host)
                now = ask(host, "cat /proc/sys/kernel/random/boot_id", _LOOK, "read boot_id")
                if now and now != before:
                    show(host, "reboot: waits for services")
        except (GpureadyError, PyinfraError, SSHException, OSError, EOFError) as e:
            seen, now = str(e) if isinstance(e, GpureadyError) else obstacle(e), ""
        if now and now != before and _services(host):
            return now
        if now == before:
            seen = "the old system still answers"
        if time.monotonic() > end:
            break
        gevent.sleep(_PAUSE)
    if now == before:
        told = f"the node has not rebooted within {limit} s: {seen}"
        raise ConvergeError(told, remedy="systemctl list-jobs on the node shows what blocks the reboot")
    told = f"the node did not come back within {limit} s of its reboot; last seen: {seen}"
    raise UnreachableError(told, remedy="look at its console; maintenance.reboot_timeout says how long it may take")


def _services(host: Host) -> bool:
    """Wait until systemd has started the node's services. Return False if the connection broke meanwhile."""
    try:
        ask(host, f"timeout {_SERVICES} systemctl is-system-running --wait", _SERVICES + 15, "wait for services")
    except (GpureadyError, PyinfraError, SSHException, OSError, EOFError):
        return False
    return True
