"""One controller at a time changes a node: flock on a second channel of the same connection.

The lock lives as long as the channel, so it frees itself when the controller or its session goes. A network that goes
tells the node nothing, therefore the channel also carries a heartbeat, and a lock without one is given up.
"""

from __future__ import annotations

import contextlib
import getpass
import shlex
import socket
import subprocess
import time

import gevent
from paramiko import Channel, SSHException
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector

from gpuready.errors import ConvergeError, UnreachableError

_CHANNEL = "gpuready.lock"
_BEAT = 10
#: Seconds without a heartbeat after which the node gives the lock up.
SILENCE = 45
#: By this the service of components/reconverge.py signs the lock; it is waited for, for so many seconds.
ON_NODE, ON_NODE_LIMIT = "on the node itself", 180
# What a login script prints comes before the answer, hence its own first word.
_SCRIPT = (
    "exec 2>/dev/null; umask 077; command -v flock >/dev/null || { echo gpuready-lock free; exec cat; }; "
    "exec 9<>/run/gpuready.lock || exit; "
    "if flock -n 9; then echo %s >/run/gpuready.lock; echo gpuready-lock free; "
    'while [ -n "$(timeout %d dd bs=1 count=1)" ]; do :; done; exit; fi; '
    'read -r who <&9; echo "gpuready-lock held $who"'
)


def hold(host: Host, patience: float = 0) -> None:
    """Take the node's lock, unless it is held already; :class:`ConvergeError` names who has it after ``patience`` s."""
    channel, _ = host.connector_data.get(_CHANNEL, (None, None))
    client = getattr(host.connector, "client", None)
    here = isinstance(host.connector, LocalConnector)
    if client is None and not here:  # a connector without channels (pyinfra's @docker): the user's part
        return
    if channel is not None and not channel.closed and not channel.eof_received:
        return
    release(host)
    end = time.monotonic() + patience
    while True:
        channel, answer = _ask_here() if here else _ask(client)
        if answer == "free":
            host.connector_data[_CHANNEL] = channel, gevent.spawn(_beat, channel)
            return
        channel.close()
        if not answer:
            raise UnreachableError("the node's lock cannot be taken", remedy="is /run read-only or full?")
        if time.monotonic() > end + (ON_NODE_LIMIT if ON_NODE in answer else 0):
            who = answer.removeprefix("held").strip() or "it does not say who"
            raise ConvergeError(f"another gpuready changes this node now ({who})", remedy="wait for it to end")
        gevent.sleep(1)


def _command() -> str:
    script = shlex.quote(_SCRIPT % (shlex.quote(f"{getpass.getuser()}@{socket.gethostname()}"), SILENCE))
    return f'if [ "$(id -u)" = 0 ]; then exec sh -c {script}; else exec sudo -n sh -c {script}; fi'


class _Pipe:
    """What stands for the channel on this very machine: a process that ends with its stdin."""

    eof_received = False

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(["sh", "-c", _command()], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    @property
    def closed(self) -> bool:
        """Has the process ended?"""
        return self._process.poll() is not None

    def read(self) -> str:
        """The answer, as :func:`_ask` gives it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, answer = line.decode("ascii", "replace").strip().partition(" ")
            if word == "gpuready-lock":
                return answer
        return ""

    def sendall(self, data: bytes) -> None:
        """A heartbeat."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def close(self) -> None:
        """Let go of the lock."""
        self._process.communicate()


def _ask_here() -> tuple[_Pipe, str]:
    pipe = _Pipe()
    with gevent.Timeout(20, UnreachableError("no answer within 20 s while taking the node's lock")):
        return pipe, pipe.read()


def _ask(client: object) -> tuple[Channel, str]:
    """A channel on which the lock was asked for, and the answer: ``free``, ``held WHO``, or nothing."""
    command = _command()
    try:
        with gevent.Timeout(20, UnreachableError("no answer within 20 s while taking the node's lock")):
            channel: Channel = client.get_transport().open_session()  # type: ignore[attr-defined]
            channel.exec_command(f"sh -c {shlex.quote(command)}")
            for line in channel.makefile("rb"):
                word, _, answer = line.decode("ascii", "replace").strip().partition(" ")
                if word == "gpuready-lock":
                    return channel, answer
    except (OSError, EOFError, SSHException, AttributeError) as e:
        raise UnreachableError(f"the connection broke while taking the node's lock ({e or type(e).__name__})") from None
    return channel, ""


def _beat(channel: Channel | _Pipe) -> None:
    while True:
        gevent.sleep(_BEAT)
        try:
            channel.sendall(b".")
        except (OSError, EOFError, SSHException):
            return


def release(host: Host) -> None:
    """Give the lock back; harmless when it is not held or the connection is gone."""
    channel, beat = host.connector_data.pop(_CHANNEL, (None, None))
    if channel is not None:
        beat.kill(block=False)
        with contextlib.suppress(OSError, EOFError, SSHException):  # paramiko learns last that a connection has gone
            channel.close()
