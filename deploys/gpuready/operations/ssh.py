"""An SSH connection to a peer that is not trusted: bounded in bytes, fair to other hosts, and never silent for long.

paramiko reads whatever a server sends, as fast as it comes: without a bound one host can fill the controller's memory,
and without a pause it keeps the greenlets of all other hosts from running.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import socket
import sys
from collections.abc import Callable
from select import select
from typing import Any

import gevent
from gevent.local import local
from paramiko import Channel, ProxyCommand, SSHClient, SSHException, Transport
from paramiko.ssh_exception import ProxyCommandFailure
from pyinfra.api.host import Host
from pyinfra.connectors.sshuserclient import client as sshuserclient

from gpuready.core.errors import brief

#: Seconds between two questions to sshd whether it is alive, and seconds that it may take to answer.
BEAT, SILENCE = 10, 30
#: Bytes that a server may send until the login is done, and beyond what an exec may print (keepalives, rekeying).
HANDSHAKE, OVERHEAD = 1 << 18, 1 << 20
_TCP = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 30000))


class BoundedSocket:
    """A socket, or a jump host's channel, that delivers ``allowance`` bytes and then raises OSError."""

    def __init__(self, sock: Any, between: Callable[[], None] = lambda: None) -> None:
        self.sock, self._between = sock, between
        self.allowance = HANDSHAKE
        self.exhausted = False

    def recv(self, size: int) -> bytes:
        """At most ``size`` bytes; ``between`` is called before."""
        self._between()
        if self.allowance <= 0:
            self.exhausted = True
            raise OSError(errno.EMSGSIZE, "the host sent more than it may")  # paramiko wants both
        data: bytes = self.sock.recv(min(size, self.allowance))
        self.allowance -= len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)


class BoundedTransport(Transport):
    """paramiko's transport over a :class:`BoundedSocket`; for the ``transport_factory`` of ``SSHClient.connect``."""

    def __init__(self, sock: Any, **options: Any) -> None:
        self.bounded = BoundedSocket(sock, gevent.sleep)  # a socket that always has data never waits by itself
        super().__init__(self.bounded, **options)  # type: ignore[arg-type]
        _keep_alive(sock)
        self._watched = False

    def close(self) -> None:
        """As paramiko's; the connections to jump hosts end, too."""
        super().close()
        sock = self.bounded.sock
        while isinstance(sock, Channel):
            hop = sock.get_transport()
            hop.close()
            sock = hop.sock

    def allow(self, size: int) -> None:
        """Let the host send ``size`` bytes from now on, and what SSH itself needs; ask sshd whether it is alive."""
        self.bounded.allowance = size + OVERHEAD
        if not self._watched:
            self._watched = True
            gevent.spawn(_watch, self)


#: For paramiko's connect, to a host and to each jump host; the limits are seconds.
BOUNDS = {"transport_factory": BoundedTransport, "banner_timeout": 15, "auth_timeout": 15, "channel_timeout": 15}


class ProxyFailure(SSHException):
    """The program of a ProxyCommand does not start, or has ended; the message says which, and what it printed."""


class Proxy(ProxyCommand):
    """paramiko's ProxyCommand, which takes a program that has ended for a silent one, and kills whatever has its id."""

    def __init__(self, command: str) -> None:
        self._program = (shlex.split(command) or [""])[0]
        try:
            super().__init__(command)
        except OSError as e:
            raise ProxyFailure(f"{self._program} cannot be started ({e.strerror})") from None

    def send(self, content: bytes) -> int:  # type: ignore[override]
        """As a socket's; where the program has ended, :meth:`recv` says so."""
        with contextlib.suppress(ProxyCommandFailure):
            super().send(content)
        return len(content)

    def recv(self, size: int) -> bytes:
        """As a socket's; :class:`ProxyFailure` where nothing more comes."""
        ended = self.process.poll()
        try:
            return super().recv(size)
        except TimeoutError:
            if ended is None:
                raise
            errors: Any = self.process.stderr
            words = os.read(errors.fileno(), 4096) if select([errors], [], [], 0)[0] else b""
            printed = brief(words.decode("utf-8", "replace"))
            raise ProxyFailure(f"{self._program} ended with {ended}{printed and f' ({printed})'}") from None

    def close(self) -> None:
        """End the program, if it has not ended by itself, and close its pipes."""
        if self.process.poll() is None:
            self.process.terminate()
        pipes: tuple[Any, ...] = (self.process.stdin, self.process.stdout, self.process.stderr)
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.close()


class HopClient(sshuserclient.SSHClient):
    """pyinfra's client for each jump host: bounded until the login, and closed when what follows fails."""

    def connect(self, hostname: str, **options: Any) -> None:  # type: ignore[override]
        """As pyinfra's; a jump host carries the answers of the node behind it, so its own bound ends with the login."""
        options.setdefault("_pyinfra_ssh_paramiko_connect_kwargs", BOUNDS)
        getattr(_opened, "clients", []).append(self)
        super().connect(hostname, **options)  # type: ignore[no-untyped-call]
        transport = self.get_transport()
        if isinstance(transport, BoundedTransport):
            transport.bounded.allowance = sys.maxsize


sshuserclient.SSHClient = HopClient  # type: ignore[misc]
sshuserclient.ProxyCommand = Proxy  # type: ignore[assignment,attr-defined]
#: The clients of the connection that this greenlet makes now.
_opened = local()


def connect(host: Host) -> None:
    """Connect, through jump hosts where there are any; if that fails, none of the connections stays open."""
    _opened.clients = []
    try:
        host.connector.connect()
    except BaseException:
        for client in (*_opened.clients, getattr(host.connector, "client", None)):
            if client is not None:
                with contextlib.suppress(OSError):
                    client.close()
        raise


def transport_of(client: object) -> Transport | None:
    """The client's transport, whether it is up or not; None before the first connection and for other connectors."""
    return client.get_transport() if isinstance(client, SSHClient) else None


def _keep_alive(sock: Any) -> None:
    """Let the kernel notice a peer that is gone: a bound on idle and on unacknowledged data (tcp(7))."""
    while isinstance(sock, Channel):  # through a jump host: only the connection to the first hop is a socket
        sock = sock.get_transport().sock
    if not hasattr(sock, "setsockopt"):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in _TCP:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)


def _watch(transport: Transport) -> None:
    """The kernel acknowledges for an sshd that hangs, and a jump host for a node that is gone: so ask sshd itself."""
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
