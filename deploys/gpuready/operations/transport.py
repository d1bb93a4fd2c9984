"""One script to a node and its records back: the only way in which gpuready talks to a host.

The script goes by stdin, because an argument would land in sudo's journal and ends at 128 KiB. The outer command always
exits 0, because pyinfra asks for a password on the terminal when it sees sudo's refusal together with a failure.
Output is ASCII between ``begin`` and ``end N``; what a login script prints before is ignored.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import gevent
from paramiko import Channel, ChannelFile, SSHClient, SSHException, Transport
from pyinfra.api.command import StringCommand
from pyinfra.api.host import Host

from gpuready.errors import UnreachableError

EXECS = "gpuready.execs"
#: Seconds between two questions to sshd whether it is there, and for which it may keep silent.
BEAT, SILENCE = 10, 30
_HARDENED = "gpuready_hardened"
_AGAIN = "is the network all right? then run again"
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
    if not is_up(host):
        raise ConnectionLost("there is no connection any more", remedy=_AGAIN)
    limit = gevent.Timeout(timeout)
    try:
        with limit:
            harden(host)
            _, output = host.run_shell_command(StringCommand(_ROOT_SHELL), _stdin=script)
    except gevent.Timeout as e:
        if e is not limit:
            raise
        _hang_up(host)
        raise ConnectionLost(f"no answer within {timeout:.0f} s", remedy="is the node overloaded or hung?") from None
    except (OSError, EOFError, SSHException) as e:
        raise ConnectionLost(f"the connection broke ({e or type(e).__name__})", remedy=_AGAIN) from None
    lines = [line.rstrip("\r") for line in output.stdout_lines]
    answer = lines[lines.index("begin") + 1 :] if "begin" in lines else []
    if answer and answer[-1].startswith("end "):
        return answer
    if not is_up(host):
        raise ConnectionLost("the connection broke", remedy=_AGAIN)
    if "begin" not in lines:
        raise _refusal(output.stderr_lines or lines)
    raise ConnectionLost("the answer is cut: the script was killed on the node", remedy=_AGAIN)


def is_up(host: Host) -> bool:
    """Whether the host's connection stands, as far as this end knows."""
    client = getattr(host.connector, "client", None)
    if not isinstance(client, SSHClient):  # a connector without connections
        return True
    transport = client.get_transport()
    return transport is not None and transport.is_active()


def _hang_up(host: Host) -> None:
    """Close the connection, so that what still reads from it ends now and not with the program."""
    client = getattr(host.connector, "client", None)
    if client is not None:
        client.close()
        gevent.sleep(0)


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
        return ConnectionLost("the node closed the session without a word", remedy=_AGAIN)
    return UnreachableError(f"no root shell: {text}")


class _Lines:
    """A channel's stream as text. Login scripts print in any encoding; paramiko ends a stream at the first odd byte."""

    def __init__(self, raw: ChannelFile) -> None:
        self.channel, self._raw = raw.channel, raw

    def __iter__(self) -> Iterator[str]:
        for line in self._raw:
            yield line.decode("utf-8", "replace")


def harden(host: Host) -> None:
    """Make a fresh connection one that survives odd bytes, and that notices a peer which is gone or hangs."""
    client = getattr(host.connector, "client", None)
    if not isinstance(client, SSHClient) or hasattr(client, _HARDENED):
        return
    setattr(client, _HARDENED, True)
    plain = client.exec_command

    def exec_command(*words: Any, **options: Any) -> tuple[Any, _Lines, _Lines]:
        stdin, out, _ = plain(*words, **options)
        return stdin, _Lines(out.channel.makefile("rb")), _Lines(out.channel.makefile_stderr("rb"))

    client.exec_command = exec_command  # type: ignore[method-assign, assignment]
    transport = client.get_transport()
    if transport is not None:
        _keep_alive(transport)
        gevent.spawn(_watch, transport)


def _keep_alive(transport: Transport) -> None:
    """Let the kernel notice a peer that is gone: a bound on idle and on unacknowledged data (tcp(7))."""
    sock = transport.sock
    while isinstance(sock, Channel):  # through a jump host: the connection to the first hop is the one that is a socket
        sock = sock.get_transport().sock
    if not hasattr(sock, "setsockopt"):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 30000)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)


def _watch(transport: Transport) -> None:
    """A kernel acknowledges for an sshd that hangs, and a jump host for a node that is gone: so ask sshd itself."""
    while transport.is_active():
        gevent.sleep(BEAT)
        limit = gevent.Timeout(SILENCE)
        try:
            with limit:
                transport.global_request("keepalive@openssh.com", wait=True)
        except gevent.Timeout as e:
            if e is not limit:
                raise
            transport.close()
        except (OSError, EOFError, SSHException):
            return
