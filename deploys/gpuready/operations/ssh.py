"""SSH connections to untrusted hosts: limited in bytes, fair to other hosts, and closed if the host falls silent.

paramiko reads whatever a server sends, as fast as it arrives. Without a limit, one host could fill the controller's
memory; without a pause, it could keep the greenlets of all other hosts from running.
"""

import contextlib
import errno
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gevent
from gevent import Timeout
from gevent.event import Event
from gevent.local import local
from paramiko import (
    Channel,
    HostKeys,
    MissingHostKeyPolicy,
    PKey,
    ProxyCommand,
    SSHClient,
    SSHException,
    Transport,
)
from paramiko.ssh_exception import ProxyCommandFailure
from pyinfra.api.host import Host
from pyinfra.connectors import ssh as ssh_connector
from pyinfra.connectors.sshuserclient import client as sshuserclient

from gpuready.base.errors import brief
from gpuready.operations.knownhosts import Judgement, KnownHosts, Status, stored

#: Seconds between two keepalive requests to sshd, and seconds that a host may always be silent.
BEAT, SILENCE = 10, 30
#: Bytes that a server may send before the login is complete, and bytes in addition to an exec's output (rekeying etc.).
HANDSHAKE, OVERHEAD = 1 << 18, 1 << 20
_AHEAD = 1 << 12


class BoundedSocket:
    """A socket, or a jump host's channel, that delivers ``allowance`` bytes and then raises OSError."""

    def __init__(self, sock: Any, between: Callable[[], None] = lambda: None) -> None:
        self.sock, self._between = sock, between
        self.allowance = HANDSHAKE
        self.exhausted = False
        self._ahead = b""

    def recv(self, size: int) -> bytes:
        """Return at most ``size`` bytes. Before more are read from the socket, call ``between``.

        paramiko asks twice for each packet: so what has arrived is read at once.
        """
        if not self._ahead:
            self._between()
            if self.allowance <= 0:
                self.exhausted = True
                raise OSError(errno.EMSGSIZE, "the host sent more data than allowed")  # paramiko needs both arguments
            self._ahead = self.sock.recv(min(max(size, _AHEAD), self.allowance))
            self.allowance -= len(self._ahead)
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)


class BoundedTransport(Transport):
    """paramiko's transport over a :class:`BoundedSocket`; for the ``transport_factory`` of ``SSHClient.connect``."""

    def __init__(self, sock: Any, **options: Any) -> None:
        self.bounded = BoundedSocket(sock, gevent.sleep)  # reading a socket that always has data never yields
        super().__init__(self.bounded, **options)  # type: ignore[arg-type]
        _keep_alive(sock, SILENCE)
        self._watched, self.closing, self.silence = False, Event(), SILENCE

    def close(self) -> None:
        """Close the transport and the connections to its jump hosts."""
        super().close()
        self.closing.set()
        sock = self.bounded.sock
        while isinstance(sock, Channel):
            hop = sock.get_transport()
            hop.close()
            sock = hop.sock

    def allow(self, size: int, patience: int) -> None:
        """Let the host send ``size`` more bytes and what SSH itself needs. Start the keepalive requests.

        ``patience``: seconds that the user lets the host take to answer. So long it may be silent, too.
        """
        self.bounded.allowance = size + OVERHEAD
        if patience > self.silence:
            self.silence = patience
            _keep_alive(self.bounded.sock, patience)
        if not self._watched:
            self._watched = True
            gevent.spawn(_watch, self)


#: Arguments of paramiko's connect, for a host and for each jump host. The limits are in seconds.
BOUNDS = {"transport_factory": BoundedTransport, "banner_timeout": 15, "auth_timeout": 15, "channel_timeout": 15}


#: Time in seconds for a ProxyCommand's program to end after it has closed its output.
_LAST_WORDS = 2


class ProxyFailure(SSHException):
    """The program of a ProxyCommand cannot be started or has ended. The message shows its output."""


class Proxy(ProxyCommand):
    """A ProxyCommand. paramiko's own mistakes an ended program for a silent one, and may kill a reused pid.

    The program has a session of its own. So Ctrl-C at the terminal does not reach it, and it cannot wait for an answer
    there: it fails at once, and says why.
    """

    def __init__(self, command: str) -> None:
        self.cmd = shlex.split(command) or [""]
        self._program, self.timeout = self.cmd[0], None
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(
                self.cmd, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as e:
            raise ProxyFailure(f"{self._program} cannot be started ({e.strerror})") from None

    def send(self, content: bytes) -> int:  # type: ignore[override]
        """Like a socket's. If the program has ended, :meth:`recv` reports it."""
        with contextlib.suppress(ProxyCommandFailure):
            super().send(content)
        return len(content)

    def recv(self, size: int) -> bytes:
        """Like a socket's. Raises :class:`ProxyFailure` if the program has ended.

        It reads from gevent's own object. Another greenlet may close that while this one waits; with ``select`` on its
        descriptor, libev then aborts the whole process.
        """
        output: Any = self.process.stdout
        with Timeout(self.timeout, TimeoutError):
            received = output.read(size)
        if received:
            return bytes(received)
        words = b""
        with Timeout(_LAST_WORDS, False):  # a child of the program may hold its stderr open
            self.process.wait()
            errors: Any = self.process.stderr
            words = errors.read(4096)
        printed = brief(words.decode("utf-8", "replace"))
        ended = "closed its output" if self.process.poll() is None else f"ended with {self.process.returncode}"
        raise ProxyFailure(f"{self._program} {ended}{printed and f' ({printed})'}")

    def close(self) -> None:
        """Terminate the program if it still runs, and close its pipes."""
        if self.process.poll() is None:
            self.process.terminate()
        pipes: tuple[Any, ...] = (self.process.stdin, self.process.stdout, self.process.stderr)
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.close()


class HostKeyRefused(SSHException):
    """The key of ``name`` (in known_hosts) does not prove that it is this host."""

    def __init__(self, name: str, judgement: Judgement) -> None:
        super().__init__(f"the host key of {name} is not accepted: {judgement.status.value} {judgement.why}".rstrip())
        self.name, self.judgement = name, judgement


class _Judge(MissingHostKeyPolicy):
    """Judges every host key by our reader of known_hosts. Only for a new key does pyinfra's policy count."""

    def __init__(self, known: KnownHosts, policy: MissingHostKeyPolicy) -> None:
        self._known, self._policy = known, policy

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Return if the key is accepted. ``hostname`` is the name in known_hosts."""
        judgement = self._known.judge(hostname, key)
        if judgement.status is Status.known:
            return
        if judgement.status is not Status.new or isinstance(self._policy, sshuserclient.StrictPolicy):
            raise HostKeyRefused(hostname, judgement)
        if isinstance(self._policy, sshuserclient.AcceptNewPolicy):
            self._known.add(hostname, key)
        else:
            self._policy.missing_host_key(client, hostname, key)


class _JudgingClient(SSHClient):
    """paramiko's client without its own known host keys, so that it asks :class:`_Judge` about each key."""

    _host_keys: Any
    _policy: MissingHostKeyPolicy

    def connect(self, hostname: str, port: int = 22, **options: Any) -> None:  # type: ignore[override]
        """Like paramiko's. pyinfra's client has just stored here what :func:`stored` returned."""
        known: KnownHosts = self._host_keys
        self._host_keys, self._policy = HostKeys(), _Judge(known, self._policy)
        name = hostname if int(port) == 22 else f"[{hostname}]:{port}"
        factory = options.get("transport_factory") or Transport

        def prepared(*args: Any, **kwargs: Any) -> Transport:
            transport: Transport = factory(*args, **kwargs)
            known.prepare(transport, name)
            return transport

        super().connect(hostname, int(port), **{**options, "transport_factory": prepared})


class Client(sshuserclient.SSHClient, _JudgingClient):  # type: ignore[misc]
    """pyinfra's client with our host keys: its call of paramiko's ``connect`` reaches :class:`_JudgingClient`."""


class HopClient(Client):
    """The client for jump hosts: limited in bytes until the login, and closed if a later connection fails."""

    def connect(self, hostname: str, **options: Any) -> None:  # type: ignore[override]
        """Like pyinfra's. The limit ends with the login: a jump host carries the traffic of the node behind it."""
        options.setdefault("_pyinfra_ssh_paramiko_connect_kwargs", BOUNDS)
        getattr(_opened, "clients", []).append(self)
        super().connect(hostname, **options)  # type: ignore[no-untyped-call]
        transport = self.get_transport()
        if isinstance(transport, BoundedTransport):
            transport.bounded.allowance = sys.maxsize


ssh_connector.SSHClient = Client  # type: ignore[attr-defined]
sshuserclient.SSHClient = HopClient  # type: ignore[misc]
sshuserclient.get_host_keys = stored
sshuserclient.ProxyCommand = Proxy  # type: ignore[assignment,attr-defined]
#: The clients of the connection that this greenlet is opening.
_opened = local()


def connect(host: Host) -> None:
    """Connect, through any jump hosts. If that fails, close all of these connections."""
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
    """Return the client's transport, even if it is down. None before the first connection and for other connectors."""
    return client.get_transport() if isinstance(client, SSHClient) else None


def _keep_alive(sock: Any, silence: int) -> None:
    """Let the kernel detect a peer that is gone, by limits for idle time and for unacknowledged data (tcp(7))."""
    while isinstance(sock, Channel):  # with jump hosts, only the connection to the first hop is a socket
        sock = sock.get_transport().sock
    if not hasattr(sock, "setsockopt"):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limits = {
        "TCP_KEEPIDLE": BEAT, "TCP_KEEPINTVL": (silence - BEAT) // 4, "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": silence * 1000,
    }  # fmt: skip
    for name, limit in limits.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), limit)


def _watch(transport: BoundedTransport) -> None:
    """Send keepalive requests to sshd; close the transport if it does not answer.

    TCP is not enough: the kernel acknowledges data for an sshd that hangs, and a jump host for a node that is gone.
    """
    while transport.is_active() and not transport.closing.wait(BEAT):
        limit = gevent.Timeout(transport.silence)
        try:
            with limit:
                transport.global_request("keepalive@openssh.com", wait=True)
        except gevent.Timeout as e:
            if e is not limit:
                raise
            transport.close()
        except (OSError, EOFError, SSHException):
            return
