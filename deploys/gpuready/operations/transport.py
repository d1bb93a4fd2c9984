"""The only way in which gpuready talks to a node: a root shell, one script, and a bounded answer.

The script goes by stdin, because an argument would land in sudo's journal and ends at 128 KiB. What the node prints is
not trusted: it is read in chunks, counted, and understood only where it carries the nonce of this very exec. No code
of pyinfra's runs a command, because that asks for a password on the terminal when a node prints sudo's refusal.
templates/lib/PROTOCOL.md describes what the two sides say.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator

import gevent
from paramiko import Channel, ChannelException, SSHException
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector

from gpuready.core import resources
from gpuready.core.errors import GpureadyError, UnreachableError, brief
from gpuready.operations.ssh import BoundedTransport, transport_of

EXECS = "gpuready.execs"
#: Bytes that an exec may print on both streams together, lines among them, and bytes that are kept of stderr.
ANSWER, LINES, COMPLAINT = 16 << 20, 50_000, 1 << 16
#: Seconds in which a session must have begun, and in which it must end once its answer is complete.
OPENING, LINGER = 30, 5
_CHUNK = 1 << 16
_AGAIN = "check the network, then run again"
# The login shell may be any, csh and fish too: one line, single quotes only, and neither `!` nor a backslash.
_ROOT = 'LC_ALL=C; export LC_ALL; if [ "$(id -u)" = 0 ]; then exec sh -c "$0"; else exec sudo -n -H sh -c "$0"; fi'
# dd reads exactly so many bytes: what follows on stdin is left for the script.
_SCRIPT = 'eval "$(dd bs={size} count=1 iflag=fullblock 2>/dev/null)"'


class ConnectionLost(UnreachableError):
    """The connection broke, or no usable answer came in time, while a script ran."""


class _Local:
    """A shell on this very machine, behind the same methods as a channel."""

    eof_received = False

    def __init__(self, words: list[str]) -> None:
        (self._io, theirs), (self._err, their_err) = socket.socketpair(), socket.socketpair()
        with theirs, their_err:
            self._process = subprocess.Popen(
                words, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=their_err.fileno()
            )
        self.sendall, self.recv_exit_status = self._io.sendall, self._process.wait

    @property
    def closed(self) -> bool:
        """Has the process ended?"""
        return self._process.poll() is not None

    def recv(self, size: int) -> bytes:
        """Its stdout; nothing at its end. A process that ends before it has read its stdin resets the socket."""
        try:
            return self._io.recv(size)
        except ConnectionResetError:
            return b""

    def recv_stderr(self, size: int) -> bytes:
        """Its stderr; nothing at its end."""
        return self._err.recv(size)

    def shutdown_write(self) -> None:
        """End its stdin."""
        self._io.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End its streams; it is killed if it has not ended by itself a moment later."""
        self._io.close()
        self._err.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Session:
    """A root shell on ``host`` that runs ``script``; stdin stays open for it. Use it in a ``with`` statement.

    Every method raises :class:`ConnectionLost` when its limit (seconds) has passed, when the connection breaks, and
    when the node prints more than ``ANSWER`` bytes or ``LINES`` lines.
    """

    def __init__(self, host: Host, script: str) -> None:
        self._host, self._nonce = host, secrets.token_hex(8)
        self._text, self._position, self._read, self._lines = bytearray(), 0, 0, 0
        self._noise, self._complaint = "", bytearray()
        # In braces a script that is cut on its way is a syntax error, and nothing of it runs.
        body = f"{{ NONCE={self._nonce}\n{script}\n}}\n".encode("utf-8", "surrogateescape")
        with self._bounded(OPENING):
            self._stream = self._open(["sh", "-c", _ROOT, _SCRIPT.format(size=len(body))])
        self._drain = gevent.spawn(self._read_stderr)
        try:
            self.send(body, OPENING)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hear(self, *words: str, limit: float) -> tuple[str, str]:
        """The next line that begins with one of ``words``, as word and rest; UnreachableError where none comes."""
        found = self.listen(*words, limit=limit)
        if found is None:
            self._drain.join(1)
            raise self._broken() or _refusal(self._complaint.decode("utf-8", "replace") or self._noise)
        return found

    def listen(self, *words: str, limit: float) -> tuple[str, str] | None:
        """As :meth:`hear`; None where the script ends first. Lines without the nonce of this exec are skipped."""
        with self._bounded(limit):
            while (line := self._line()) is not None:
                text, _, nonce = line.rpartition(" ")
                word, _, rest = text.partition(" ")
                if nonce == self._nonce and word in words:
                    return word, rest
                self._noise = f"{self._noise}\n{line}"[-2000:]
        return None

    def records(self, limit: float) -> list[str]:
        """The lines after ``begin`` up to ``end COUNT``, that one included and without its nonce."""
        found: list[str] = []
        with self._bounded(limit):
            while (line := self._line()) is not None:
                if line.startswith("end ") and line.endswith(f" {self._nonce}"):
                    return [*found, line.rpartition(" ")[0]]
                found.append(line)
        raise self._broken() or ConnectionLost("the answer is cut: the script was killed on the node", remedy=_AGAIN)

    def send(self, data: bytes, limit: float) -> None:
        """Write to the script's stdin. Where the script has ended already nothing happens: its answer says why."""
        with self._bounded(limit), contextlib.suppress(OSError):
            self._stream.sendall(data)

    def end_input(self) -> None:
        """Close the script's stdin. Where the connection is gone nothing happens: what is read next says so."""
        with contextlib.suppress(OSError, EOFError, SSHException):
            self._stream.shutdown_write()

    def finish(self, limit: float) -> tuple[int, str, str]:
        """Wait until the script has ended: its exit status, and the end of what it printed on stdout and stderr."""
        kept = bytearray()
        with self._bounded(limit):
            while chunk := self._take():
                kept = (kept + chunk)[-COMPLAINT:]
            self._drain.join()
            status = self._stream.recv_exit_status()
        if status < 0:
            raise self._broken() or ConnectionLost("the script was killed on the node", remedy=_AGAIN)
        return status, kept.decode("utf-8", "surrogateescape"), self._complaint.decode("utf-8", "surrogateescape")

    def linger(self) -> None:
        """Give the script a moment to clean up after its answer."""
        with gevent.Timeout(LINGER, False), contextlib.suppress(OSError, EOFError, SSHException, ConnectionLost):
            while self._take():
                pass

    def is_open(self) -> bool:
        """Does the script still run, as far as this end knows?"""
        return not (self._stream.closed or self._stream.eof_received)

    def close(self) -> None:
        """End the session, and with it the script."""
        with contextlib.suppress(OSError, EOFError, SSHException):  # paramiko learns last that a connection has gone
            self._stream.close()
        self._drain.kill(block=False)

    def _open(self, words: list[str]) -> Channel | _Local:
        if isinstance(self._host.connector, LocalConnector):
            return _Local(words)
        client = getattr(self._host.connector, "client", None)
        if client is None:
            raise UnreachableError("gpuready reaches hosts over SSH, or this machine as @local, and nothing else")
        transport = transport_of(client)
        if transport is None or not transport.is_active():
            raise ConnectionLost("there is no connection any more", remedy=_AGAIN)
        if isinstance(transport, BoundedTransport):
            transport.allow(ANSWER)
        refused = "a session"
        try:
            channel: Channel = transport.open_session(timeout=OPENING)
            refused = "to run a command"
            channel.exec_command(shlex.join(words))
        except SSHException as e:
            if not transport.is_active():
                raise
            text = f" ({e.text})" if isinstance(e, ChannelException) else ""
            raise UnreachableError(
                f"the SSH server refused {refused}{text}", remedy="see MaxSessions and ForceCommand in its sshd_config"
            ) from None
        return channel

    def _take(self) -> bytes:
        """The next chunk of stdout, counted; nothing at its end."""
        chunk = self._stream.recv(_CHUNK)
        self._count(len(chunk))
        return chunk

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > ANSWER:
            hang_up(self._host)
            raise _too_much(f"{ANSWER >> 20} MiB")

    def _read_stderr(self) -> None:
        """Read stderr as it comes, or the node would wait for us; its end is kept for messages."""
        with contextlib.suppress(OSError, EOFError, SSHException, ConnectionLost):
            while chunk := self._stream.recv_stderr(_CHUNK):
                self._complaint = (self._complaint + chunk)[-COMPLAINT:]
                self._count(len(chunk))

    def _line(self) -> str | None:
        """The next line of stdout, without its end; None when there is none any more."""
        searched = self._position
        while (end := self._text.find(b"\n", searched)) < 0:
            del self._text[: self._position]
            self._position, searched = 0, len(self._text)
            chunk = self._take()
            if not chunk:
                if not self._text:
                    return None
                chunk = b"\n"
            self._text += chunk
        line = self._text[self._position : end].rstrip(b"\r").decode("ascii", "replace")
        self._position = end + 1
        self._lines += 1
        if self._lines > LINES:
            hang_up(self._host)
            raise _too_much(f"{LINES} lines")
        return line

    def _broken(self) -> ConnectionLost | None:
        """Why the stream ended, where it was not the script that ended it."""
        transport = transport_of(getattr(self._host.connector, "client", None))
        if self._read > ANSWER or (isinstance(transport, BoundedTransport) and transport.bounded.exhausted):
            return _too_much(f"{ANSWER >> 20} MiB")
        return None if is_up(self._host) else ConnectionLost("the connection broke", remedy=_AGAIN)

    @contextlib.contextmanager
    def _bounded(self, seconds: float) -> Iterator[None]:
        limit = gevent.Timeout(seconds)
        try:
            with limit:
                yield
        except gevent.Timeout as e:
            if e is not limit:
                raise
            hang_up(self._host)
            raise ConnectionLost(
                f"no answer within {seconds:.0f} s",
                remedy="check whether the node is overloaded or hung; --probe-timeout allows a probe more time",
            ) from None
        except GpureadyError:
            raise
        except Exception as e:  # what a peer can make paramiko raise has no end: KeyError, UnicodeDecodeError, ...
            raise ConnectionLost(f"the connection broke ({brief(str(e)) or type(e).__name__})", remedy=_AGAIN) from None


def _too_much(what: str) -> ConnectionLost:
    return ConnectionLost(
        f"the node sent more than {what} where an answer was expected", remedy="check what root's shell prints at login"
    )


def count_exec(host: Host) -> None:
    """Note that a script ran on the host; the result document shows how many."""
    host.connector_data[EXECS] = host.connector_data.get(EXECS, 0) + 1


def run_script(host: Host, script: str, timeout: float) -> list[str]:
    """Run ``script`` as root and return its records, the last line being ``end COUNT``.

    ``timeout`` is in seconds. Raises :class:`UnreachableError` (no root shell) or :class:`ConnectionLost`.
    """
    count_exec(host)
    with Session(host, script) as session:
        session.end_input()
        end = time.monotonic() + timeout
        session.hear("begin", limit=timeout)
        found = session.records(max(1.0, end - time.monotonic()))
        session.linger()
        return found


def ask(host: Host, command: str, timeout: float) -> str:
    """The first line that a shell command prints on the host, run as root."""
    script = f"{resources.script('lib/answer')}\nbegin; {command} 2>/dev/null; end 1"
    return "".join(run_script(host, script, timeout)[:-1][:1]).strip()


def is_up(host: Host) -> bool:
    """Whether the host's connection stands, as far as this end knows."""
    transport = transport_of(getattr(host.connector, "client", None))
    return isinstance(host.connector, LocalConnector) or (transport is not None and transport.is_active())


def hang_up(host: Host) -> None:
    """Close the connection, so that nothing more comes from it."""
    client = getattr(host.connector, "client", None)
    if client is not None:
        with contextlib.suppress(OSError):  # a ProxyCommand that has ended already
            client.close()
        gevent.sleep(0)


def _refusal(text: str) -> UnreachableError:
    text = brief(text)
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
