"""One controller at a time changes a node: flock on a second channel of the same connection.

The lock lives as long as the channel, so it frees itself when the controller, its network or its session goes.
"""

from __future__ import annotations

import getpass
import shlex
import socket

import gevent
from pyinfra.api.host import Host

from gpuready.errors import ConvergeError, UnreachableError

_CHANNEL = "gpuready.lock"
_SCRIPT = (
    "exec 2>/dev/null; umask 077; command -v flock >/dev/null || { echo free; exec cat; }; "
    "exec 9<>/run/gpuready.lock; "
    'if flock -n 9; then echo %s >/run/gpuready.lock; echo free; exec cat; fi; read -r who <&9; echo "held $who"'
)


def hold(host: Host) -> None:
    """Take the node's lock, or raise :class:`ConvergeError` that names who holds it. Free when taken already."""
    if host.connector_data.get(_CHANNEL) is not None:
        return
    client = getattr(host.connector, "client", None)
    if client is None:  # a connector without channels (pyinfra's @local, @docker): one run at a time is the user's part
        return
    me = shlex.quote(f"{getpass.getuser()}@{socket.gethostname()}")
    script = shlex.quote(_SCRIPT % me)
    command = f'if [ "$(id -u)" = 0 ]; then exec sh -c {script}; else exec sudo -n sh -c {script}; fi'
    with gevent.Timeout(20, UnreachableError("no answer within 20 s while taking the node's lock")):
        channel = client.get_transport().open_session()
        channel.exec_command(f"sh -c {shlex.quote(command)}")
        answer = channel.makefile("r").readline().strip()
    if answer != "free":
        channel.close()
        who = answer.removeprefix("held").strip()
        raise ConvergeError(
            f"another gpuready changes this node now ({who or 'it does not say who'})", remedy="wait for it to end"
        )
    host.connector_data[_CHANNEL] = channel


def release(host: Host) -> None:
    """Give the lock back; harmless when it is not held or the connection is gone."""
    channel = host.connector_data.pop(_CHANNEL, None)
    if channel is not None:
        channel.close()
