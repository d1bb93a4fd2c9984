"""One script to a node and its records back: the only way in which gpuready talks to a host.

The script goes by stdin, because an argument would land in sudo's journal and ends at 128 KiB. The outer command always
exits 0, because pyinfra asks for a password on the terminal when it sees sudo's refusal together with a failure.
Output is ASCII between ``begin`` and ``end N``; what a login script prints before is ignored.
"""

from __future__ import annotations

import socket

import gevent
from paramiko import SSHException
from pyinfra.api.command import StringCommand
from pyinfra.api.host import Host

from gpuready.errors import UnreachableError

EXECS = "gpuready.execs"
_ROOT_SHELL = (
    "LC_ALL=C; export LC_ALL; "
    'if [ "$(id -u)" = 0 ]; then sh -c \'eval "$(cat)"\'; else sudo -n -H sh -c \'eval "$(cat)"\'; fi; true'
)


class ConnectionLost(UnreachableError):
    """The connection went, or nothing came in time, while a script ran."""


def run_script(host: Host, script: str, timeout: float) -> list[str]:
    """Run ``script`` as root and return the lines between ``begin`` and ``end N`` (that line included).

    ``timeout`` is in seconds. Raises :class:`UnreachableError` (no root shell) or :class:`ConnectionLost`.
    """
    host.connector_data[EXECS] = host.connector_data.get(EXECS, 0) + 1
    limit = gevent.Timeout(timeout)
    try:
        with limit:
            _, output = host.run_shell_command(StringCommand(_ROOT_SHELL), _stdin=script)
    except gevent.Timeout as e:
        if e is not limit:
            raise
        raise ConnectionLost(f"no answer within {timeout:.0f} s", remedy="is the node overloaded or hung?") from None
    except (OSError, EOFError, SSHException) as e:
        raise ConnectionLost(f"the connection broke ({e or type(e).__name__})") from None
    lines = [line.rstrip("\r") for line in output.stdout_lines]
    if "begin" not in lines:
        raise _refusal(output.stderr_lines or lines)
    lines = lines[lines.index("begin") + 1 :]
    if not lines or not lines[-1].startswith("end "):
        raise ConnectionLost("the answer is cut: the connection broke, or the script was killed")
    return lines


def _refusal(lines: list[str]) -> UnreachableError:
    text = " ".join(line.strip() for line in lines if line.strip())[:300]
    if "password is required" in text or "authentication is required" in text or "askpass" in text:
        return UnreachableError(
            "sudo asks for a password", remedy="give the login user NOPASSWD in sudoers, or log in as root"
        )
    if "sudo: not found" in text or "sudo: command not found" in text:
        return UnreachableError("the login user is not root, and there is no sudo", remedy="log in as root")
    if "not in the sudoers" in text or "may not run sudo" in text or "not allowed to" in text:
        return UnreachableError("the login user may not use sudo", remedy="give it NOPASSWD in sudoers")
    if not text:
        return ConnectionLost("the connection closed before the script began")
    return UnreachableError(f"no root shell: {text}")


def harden(host: Host) -> None:
    """Let the kernel notice a peer that is gone: keepalive and a bound on unacknowledged data (tcp(7))."""
    transport = getattr(getattr(host.connector, "client", None), "get_transport", lambda: None)()
    sock = getattr(transport, "sock", None)
    if sock is None or not hasattr(sock, "setsockopt"):  # a channel through a jump host is no socket
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 30000)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
