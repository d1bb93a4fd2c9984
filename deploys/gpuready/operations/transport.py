"""The only way in which gpuready talks to a node: a root shell, one script, and an answer of limited size.

The script goes by stdin: an argument would appear in sudo's journal, and is limited to 128 KiB. The node's output is
not trusted: gpuready reads it in chunks, counts its bytes, and uses only lines with the nonce of this exec. A password
goes to sudo only when sudo asks for it, once, and before the script. pyinfra's own code to run commands is not used,
because it prompts for a password if a node prints sudo's refusal.
templates/lib/PROTOCOL.md describes the protocol.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator

import gevent
from paramiko import Channel, ChannelException, SSHException
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector

from gpuready.base import resources
from gpuready.base.errors import GpureadyError, UnreachableError, brief
from gpuready.inventory.secrets import Secret
from gpuready.operations.context import context
from gpuready.operations.observer import tell
from gpuready.operations.ssh import BoundedTransport, transport_of

#: In a host's data: the Secret that sudo asks for.
BECOME = "gpuready_become"
#: Limits of an exec's output: bytes and lines on stdout, bytes on stderr, and bytes of stderr that are kept.
ANSWER, LINES, ERRORS, COMPLAINT = 16 << 20, 50_000, 1 << 20, 1 << 16
#: Seconds within which a session must start, if --probe-timeout is not longer, and end after its answer is complete.
OPENING, LINGER = 30, 5
_CHUNK = 1 << 16
_AGAIN = "check the network, then run again"
# The login shell may be any shell, even csh or fish: so one line, only single quotes, no `!` and no backslash.
_ROOT = 'LC_ALL=C; export LC_ALL; if [ "$(id -u)" = 0 ]; then exec sh -c "$0"; else exec sudo {how} -H sh -c "$0"; fi'
# dd reads exactly the script's bytes; the rest of stdin is left for the script.
_SCRIPT = 'eval "$(dd bs={size} count=1 iflag=fullblock 2>/dev/null)"'
#: With a password, sudo prompts with a token of this session, and root's shell prints another before it reads.
_ASKING = "-S -p {prompt}"
_READY = "echo {ready}; "


class ConnectionLost(UnreachableError):
    """While a script ran, the connection broke, or no usable answer came in time."""


class _Local:
    """A shell on this machine, with the same methods as paramiko's channel.

    Ctrl-C at the terminal does not reach it: it has a process group of its own, but stays in the session of the
    terminal, for which sudo remembers passwords.
    """

    eof_received = False

    def __init__(self, words: list[str]) -> None:
        (self._io, theirs), (self._err, their_err) = socket.socketpair(), socket.socketpair()
        with theirs, their_err:
            for end in (theirs, their_err):
                os.set_blocking(end.fileno(), True)  # gevent's sockets do not block, and dd would not wait
            self._process = subprocess.Popen(
                words,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=their_err.fileno(),
                preexec_fn=os.setpgrp,  # process_group=0, from Python 3.11
            )
        self.sendall, self.recv_exit_status = self._io.sendall, self._process.wait

    @property
    def closed(self) -> bool:
        return self._process.poll() is not None

    def recv(self, size: int) -> bytes:
        """Read stdout; empty at its end. A process that ends before it has read its stdin resets the socket.

        If ``shutdown_read`` ends the wait for data, gevent calls the descriptor bad.
        """
        try:
            return self._io.recv(size)
        except OSError as e:
            if e.errno not in (errno.ECONNRESET, errno.EBADF):
                raise
            return b""

    def recv_stderr(self, size: int) -> bytes:
        return self._err.recv(size)

    def shutdown_read(self) -> None:
        self._io.shutdown(socket.SHUT_RD)

    def shutdown_write(self) -> None:
        self._io.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close its streams. Kill the process if it does not end within a second."""
        self._io.close()
        self._err.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Session:
    """A root shell on ``host`` that runs ``script``. Its stdin stays open. Use it in a ``with`` statement.

    When the session is closed, an observer gets ``name`` and the bytes in both directions.
    Every method raises :class:`ConnectionLost` after its limit (seconds), if the connection breaks, or if the node
    prints more than ``ANSWER`` bytes or ``LINES`` lines, or more than ``ERRORS`` bytes on stderr.
    """

    def __init__(self, host: Host, script: str, name: str) -> None:
        self._host, self._name, self._nonce = host, name, secrets.token_hex(8)
        self._began, self._sent, self._closed = time.monotonic(), 0, False
        self._text, self._position, self._lines, self._read, self._errors = bytearray(), 0, 0, 0, 0
        self._noise, self._complaint = "", bytearray()
        self._password: Secret | None = host.data.get(BECOME)
        self._prompt, ready = secrets.token_hex(8), secrets.token_hex(8)
        # Because of the braces, a script that arrives incomplete is a syntax error, and no part of it runs.
        body = f"{{ NONCE={self._nonce}\n{script}\n}}\n".encode("utf-8", "surrogateescape")
        asking = self._password is not None
        root = _ROOT.replace("{how}", _ASKING.format(prompt=self._prompt) if asking else "-n")
        first = _READY.format(ready=ready) if asking else ""
        opening = max(OPENING, context(host).probe_timeout)  # of an overloaded node, all is slow
        with self.bounded(opening):
            self._stream = self._open(["sh", "-c", root, first + _SCRIPT.format(size=len(body))], opening)
        self._drain = gevent.spawn(self._read_stderr)
        try:
            if asking:
                self.hear("", limit=opening, nonce=ready)  # meanwhile, _read_stderr answers sudo's prompt
                self._password = None
            self.send(body, opening)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hear(self, *words: str, limit: float, nonce: str = "") -> tuple[str, str]:
        """Return the next line that begins with one of ``words``, as word and rest.

        Raises UnreachableError if the script ends without such a line.
        """
        found = self.listen(*words, limit=limit, nonce=nonce)
        if found is None:
            self._drain.join(1)
            raise self._broken() or _refusal(self._complaint.decode("utf-8", "replace") or self._noise)
        return found

    def listen(self, *words: str, limit: float, nonce: str = "") -> tuple[str, str] | None:
        """Like :meth:`hear`, but return None if the script ends first. Lines without the nonce are skipped."""
        with self.bounded(limit):
            while (line := self._line()) is not None:
                text, _, mark = line.rpartition(" ")
                word, _, rest = text.partition(" ")
                if mark == (nonce or self._nonce) and word in words:
                    return word, rest
                self._noise = f"{self._noise}\n{line}"[-2000:]
        return None

    def records(self, limit: float) -> list[str]:
        """Return the lines after ``begin``, up to and including ``end COUNT``, which loses its nonce."""
        found: list[str] = []
        with self.bounded(limit):
            while (line := self._line()) is not None:
                if line.startswith("end ") and line.endswith(f" {self._nonce}"):
                    return [*found, line.rpartition(" ")[0]]
                found.append(line)
        raise self._broken() or ConnectionLost(
            "the answer is incomplete: the script was killed on the node", remedy=_AGAIN
        )

    def send(self, data: bytes, limit: float) -> None:
        """Write to the script's stdin. If the script has already ended, do nothing: its answer says why."""
        with self.bounded(limit), contextlib.suppress(OSError):
            self._stream.sendall(data)
            self._sent += len(data)

    def end_input(self) -> None:
        """Close the script's stdin. If the connection is gone, do nothing: the next read reports it."""
        with contextlib.suppress(OSError, EOFError, SSHException):
            self._stream.shutdown_write()

    def finish(self, limit: float) -> tuple[int, str, str]:
        """Wait until the script has ended. Return its exit status and the last part of its stdout and stderr."""
        kept = bytearray()
        with self.bounded(limit):
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
        """Tell whether the script still runs, as far as the controller knows."""
        return not (self._stream.closed or self._stream.eof_received)

    def close(self) -> None:
        """End the session and its script."""
        with contextlib.suppress(OSError, EOFError, SSHException):  # the connection may already be gone
            self._stream.close()
        self._drain.kill(block=False)
        if not self._closed:
            self._closed = True
            tell(self._host, self._name, self._began, self._sent, self._read + self._errors)

    def _open(self, words: list[str], limit: float) -> Channel | _Local:
        if isinstance(self._host.connector, LocalConnector):
            return _Local(words)
        client = getattr(self._host.connector, "client", None)
        if client is None:
            raise UnreachableError("gpuready reaches hosts only over SSH, or this machine as @local")
        transport = transport_of(client)
        if transport is None or not transport.is_active():
            raise ConnectionLost("the connection is closed", remedy=_AGAIN)
        if isinstance(transport, BoundedTransport):
            transport.allow(ANSWER, context(self._host).probe_timeout)
        refused = "a session"
        try:
            channel: Channel = transport.open_session(timeout=limit)
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

    def _answer_prompt(self) -> None:
        """Send the password when sudo asks for it; when it asks again, the password was wrong: end its input."""
        prompt = self._prompt.encode()
        if prompt not in self._complaint:
            return
        self._complaint = self._complaint.replace(prompt, b"")
        password, self._password = self._password, None
        if password is not None:
            self._stream.sendall(f"{password.reveal()}\n".encode())
        else:
            self.end_input()

    def _take(self) -> bytes:
        """Read the next chunk of stdout and count its bytes; empty at the end."""
        chunk = self._stream.recv(_CHUNK)
        self._read += len(chunk)
        self._stop_flood()
        return chunk

    def _stop_flood(self) -> None:
        if too_much := self._flood():
            hang_up(self._host)
            self._stream.shutdown_read()  # @local has no connection to close: who waits for stdout must notice
            raise too_much

    def _flood(self) -> ConnectionLost | None:
        if self._errors > ERRORS:
            return _too_much(f"{ERRORS >> 20} MiB of errors")
        return _too_much(f"{ANSWER >> 20} MiB") if self._read > ANSWER else None

    def _read_stderr(self) -> None:
        """Read stderr as it arrives, because the node would block otherwise. Keep its last part for messages."""
        with contextlib.suppress(OSError, EOFError, SSHException, ConnectionLost):
            while chunk := self._stream.recv_stderr(_CHUNK):
                self._complaint = (self._complaint + chunk)[-COMPLAINT:]
                self._answer_prompt()
                self._errors += len(chunk)
                self._stop_flood()

    def _line(self) -> str | None:
        """Return the next line of stdout without its newline; None at the end."""
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
        """Return why the stream ended, or None if the script ended it."""
        transport = transport_of(getattr(self._host.connector, "client", None))
        if too_much := self._flood():
            return too_much
        if isinstance(transport, BoundedTransport) and transport.bounded.exhausted:
            return _too_much(f"{ANSWER >> 20} MiB")
        return None if is_up(self._host) else ConnectionLost("the connection broke", remedy=_AGAIN)

    @contextlib.contextmanager
    def bounded(self, seconds: float) -> Iterator[None]:
        """End the connection after ``seconds``: ConnectionLost. Within another limit, the earlier one counts."""
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
        except Exception as e:  # a hostile peer can make paramiko raise anything: KeyError, UnicodeDecodeError, ...
            raise ConnectionLost(f"the connection broke ({brief(str(e)) or type(e).__name__})", remedy=_AGAIN) from None


def _too_much(what: str) -> ConnectionLost:
    return ConnectionLost(
        f"the node sent more than {what} where an answer was expected", remedy="check what root's shell prints at login"
    )


def count_exec(host: Host) -> None:
    """Count a script that runs on the host. The result document shows the number."""
    context(host).execs += 1


def run_script(host: Host, script: str, timeout: float, name: str) -> list[str]:
    """Run ``script`` as root and return its records. The last line is ``end COUNT``.

    ``name`` is for an observer, ``timeout`` is in seconds. Raises :class:`UnreachableError` (no root shell) or
    :class:`ConnectionLost`.
    """
    count_exec(host)
    with Session(host, script, name) as session:
        session.end_input()
        with session.bounded(timeout):
            session.hear("begin", limit=timeout)
            found = session.records(timeout)
        session.linger()
        return found


def ask(host: Host, command: str, timeout: float, name: str) -> str:
    """Run a shell command on the host as root; return the first line that it prints."""
    script = f"{resources.script('lib/answer')}\nbegin; {command} 2>/dev/null; end 1"
    return "".join(run_script(host, script, timeout, name)[:-1][:1]).strip()


def is_up(host: Host) -> bool:
    """Tell whether the host's connection is open, as far as the controller knows."""
    transport = transport_of(getattr(host.connector, "client", None))
    return isinstance(host.connector, LocalConnector) or (transport is not None and transport.is_active())


def hang_up(host: Host) -> None:
    """Close the connection, so that no more data arrives."""
    client = getattr(host.connector, "client", None)
    if client is not None:
        with contextlib.suppress(OSError):  # the program of a ProxyCommand may already have ended
            client.close()
        gevent.sleep(0)


#: What sudo says -> what it means, and what helps.
_REFUSALS: tuple[tuple[tuple[str, ...], Callable[[], UnreachableError]], ...] = (
    (("incorrect password", "Sorry, try again", "no password was provided"),
     lambda: UnreachableError("sudo refused the password",
                              remedy="correct ansible_become_password, or the password for --ask-become-pass")),
    (("password is required", "authentication is required", "askpass"),
     lambda: UnreachableError("sudo asks for a password",
                              remedy="use --ask-become-pass, set ansible_become_password to env:GPUREADY_NAME, "
                              "or give the login user NOPASSWD in sudoers")),
    (("sudo: not found", "sudo: command not found"),
     lambda: UnreachableError("the login user is not root, and there is no sudo", remedy="log in as root")),
    (("not in the sudoers", "may not run sudo", "not allowed to"),
     lambda: UnreachableError("the login user may not use sudo", remedy="give it NOPASSWD in sudoers")),
)  # fmt: skip


def _refusal(text: str) -> UnreachableError:
    text = brief(text)
    for words, refusal in _REFUSALS:
        if any(word in text for word in words):
            return refusal()
    if not text:
        return ConnectionLost("the node closed the session without a message", remedy=_AGAIN)
    return UnreachableError(f"no root shell: {text}")
