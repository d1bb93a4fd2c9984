"""Run the steps of a component on a node, as pyinfra commands.

A step that must not be interrupted runs as a transient unit. If the connection breaks during the step, gpuready tries
to reconnect for half a minute, and reads the unit's result from the node.
"""

import base64
import contextlib
import signal
import uuid
from typing import Any

import gevent
from paramiko import SSHException
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.errors import BugError, ConvergeError, GpureadyError, UnreachableError, brief
from gpuready.base.step import PENDING_EXIT, Reply, Step
from gpuready.operations import lock
from gpuready.operations.context import context
from gpuready.operations.ssh import connect
from gpuready.operations.transport import ConnectionLost, hang_up, is_up, run_script
from gpuready.operations.upload import upload
from gpuready.result.mask import mask_text
from gpuready.result.text import printable

#: Seconds in which to reconnect, before the first pause between two attempts, and the longest pause.
_RECONNECT, _PAUSE, _LONGEST_PAUSE = 30, 0.5, 4.0
#: The maximum length of a message from a step, in characters.
_LONGEST = 2000
#: A shell adds this to the number of the signal that ended a program.
_SIGNALLED = 128


def show(host: Host, activity: str) -> None:
    """Show the host's current activity, if somebody watches the run."""
    context(host).progress(host.name, activity)


class Pending(Exception):
    """A step found work that it may not disturb. The message names that work."""


class Failed(PyinfraCommand):
    """A command that always fails, so that pyinfra skips the rest for that host. The outcome holds the reason."""

    def __init__(self, error: GpureadyError) -> None:
        super().__init__()
        self.error = error

    def execute(self, state: Any, host: Host, connector_arguments: Any) -> bool:
        """Called by pyinfra; prints the error for plain pyinfra."""
        host.log_styled(printable(mask_text(f"{self.error}")), fg="red")
        return False


class ResultUnknown(ConvergeError):
    """The connection broke during a step, and gpuready could not read the result from the node."""


class StepCommand(PyinfraCommand):
    """A pyinfra command that runs a :class:`Step`. It sets ``reply`` after the run, and ``error`` after a failure.

    ``begun``: the step reached the node, or may have reached it.
    """

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step
        self.begun = False
        self.reply: Reply | None = None
        self.error: GpureadyError | Pending | None = None

    def execute(self, state: Any, host: Host, connector_arguments: Any) -> bool:
        """Run the step (called by pyinfra). A failure is stored in ``error`` for the operation."""
        show(host, self.step.summary or self.step.name)
        try:
            lock.hold(host)
            self.begun = True
            self.reply = run_step(host, self.step)
        except GpureadyError as e:
            self.error = e
            return True
        except Exception as e:  # pyinfra would drop the error and the rest of the operation
            self.error = BugError(f"step {self.step.name}: {type(e).__name__}: {e}")
            return True
        if self.reply.rc == PENDING_EXIT:
            self.error = Pending(last_line(self.reply.err))
        elif self.reply.rc:
            message = _message(self.reply)
            self.error = ConvergeError(message, remedy=self.step.fix(message))
        return True


def run_step(host: Host, step: Step) -> Reply:
    """Run one step; raises :class:`UnreachableError` or :class:`ConvergeError` (result unknown)."""
    if step.sends:
        return upload(host, step)
    tx = uuid.uuid4().hex
    script = resources.script("lib/step", id=tx, step=step.name, body=step.script, survives=step.survives)
    try:
        return _reply(run_script(host, script, step.timeout, f"step {step.name}"))
    except ConnectionLost as e:
        if not step.survives:
            effect = "" if step.alters else ", which changes nothing"
            raise UnreachableError(f"{e.message} in step {step.name}{effect}", remedy=e.remedy) from e
        return _take_up(host, step, tx, e)


def _take_up(host: Host, step: Step, tx: str, why: ConnectionLost) -> Reply:
    unknown = ResultUnknown(
        f"{why.message} during step {step.name}; the node may still be working on it: result unknown",
        remedy="run again: gpuready then reads the node's current state",
    )
    lock.release(host)
    try:
        with gevent.Timeout(_RECONNECT, unknown):
            _reconnect_at_last(host)
        lines = run_script(
            host,
            resources.script("lib/collect", id=tx, step=step.name, limit=step.timeout),
            step.timeout + 30,
            f"result of step {step.name}",
        )
    except (UnreachableError, PyinfraError, OSError, SSHException, EOFError):
        raise unknown from None
    if lines[0].startswith("lost"):
        raise ConvergeError(
            f"{why.message} during step {step.name}, which {_LOST.get(lines[0], 'gave an unknown answer')}",
            remedy="run again",
        )
    with contextlib.suppress(ConvergeError, UnreachableError):  # the next step tries again and reports the error
        hold_again(host)
    return _reply(lines)


def hold_again(host: Host) -> None:
    """Take the node's lock after work on the controller: reconnect first, if the connection broke meanwhile."""
    if not is_up(host):
        lock.release(host)
        with gevent.Timeout(_RECONNECT, UnreachableError("the connection broke, and the node cannot be reached")):
            _reconnect_at_last(host)
    lock.hold(host, patience=lock.SILENCE + 15)  # our old session may hold it until its heartbeat is overdue


def _reconnect_at_last(host: Host) -> None:
    """Reconnect; try again until the caller's time limit: sshd may be about to start again."""
    pause = _PAUSE
    while True:
        try:
            return reconnect(host)
        except (PyinfraError, OSError, SSHException, EOFError):
            gevent.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def reconnect(host: Host) -> None:
    """Open a new connection. Raises the errors of pyinfra and paramiko."""
    hang_up(host)
    connect(host)


_LOST = {"lost cut": "was interrupted on the node, too", "lost never": "had not begun: nothing was changed"}


def _reply(lines: list[str]) -> Reply:
    word, rc, out, err = [*lines[0].split(" "), "", "", ""][:4]
    if word != "step" or not (rc.isascii() and rc.isdigit()):
        raise ConvergeError(f"the step's answer is not understood: {lines[0][:80]!r}")
    try:
        texts = [base64.b64decode("" if x == "-" else x, validate=True) for x in (out, err)]
    except ValueError:
        raise ConvergeError("the step's answer is damaged: its output is not base64") from None
    return Reply(int(rc[:9]), *(text.decode("utf-8", "surrogateescape") for text in texts))


def last_line(text: str) -> str:
    """Return the last line that is not empty. Scripts print there why they failed."""
    return brief(next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message"), _LONGEST)


def _message(reply: Reply) -> str:
    """Return why a step failed. If a signal ended it, its last line is not the reason."""
    lines = [line.strip() for line in reply.err.splitlines() if line.strip()]
    with contextlib.suppress(ValueError):
        ended = signal.Signals(reply.rc - _SIGNALLED)
        said = [line for line in lines if str(signal.strsignal(ended)) not in line]  # that line is the shell's own
        return brief(f"the step did not end on its own: {ended.name}; its last line: {['none', *said][-1]}", _LONGEST)
    errors = [line for line in lines[:-1] if line.startswith(("E:", "dpkg: error"))]
    return brief("; ".join([*lines[-1:], *errors[-3:]]), _LONGEST) or f"exit {reply.rc} without a message"
