"""A large file to a node: a root shell reads a script of known length from its stdin, and the script reads the rest.

SFTP would write as the login user, somewhere that user can write to; this way what arrives is root's from its first
byte. The script says from which byte on it wants the file, so a copy that was cut goes on where it ended.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

import gevent
from paramiko import Channel, SSHClient, SSHException
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector

from gpuready.components.base import Reply, Step
from gpuready.errors import ConvergeError
from gpuready.operations.transport import EXECS, ConnectionLost, harden

_CHUNK = 1 << 18
#: Seconds in which a chunk must have found its way into the connection.
_STALLED = 120
_MOST_SAID = 1 << 16
_FROM = re.compile(r"^gpuready-copy from ([0-9]{1,18})$", re.M)
_STAYS = "what has arrived stays there, and the next run goes on from it"
_AGAIN = "is the network all right? then run again"


def upload(host: Host, step: Step) -> Reply:
    """Run ``step``, which ``sends`` a file; its timeout is for all but the bytes.

    Raises :class:`ConnectionLost`, and :class:`ConvergeError` where the connection is none that carries files.
    """
    host.connector_data[EXECS] = host.connector_data.get(EXECS, 0) + 1
    harden(host)
    limit = gevent.Timeout(step.timeout)
    try:
        limit.start()
        with _root_script(host, step.script) as channel:
            said = _first_line(channel)
            if said is not None:
                limit.cancel()
                _send(channel, Path(step.sends), int(said))
                limit = gevent.Timeout(step.timeout)
                limit.start()
            channel.shutdown_write()
            return _ended(channel)
    except gevent.Timeout as e:
        if e is not limit:
            raise
        raise ConnectionLost(
            f"no answer within {step.timeout} s in step {step.name}; {_STAYS}", remedy=_AGAIN
        ) from None
    except (EOFError, SSHException) as e:
        why = str(e) or type(e).__name__
        raise ConnectionLost(f"the connection broke in step {step.name} ({why}); {_STAYS}", remedy=_AGAIN) from None
    finally:
        limit.close()


class _Here:
    """What stands for the channel on this very machine: a process."""

    def __init__(self, command: str) -> None:
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe, stderr=self._err)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._err.close()

    def sendall(self, data: bytes) -> None:
        """To its stdin; OSError when it has ended."""
        self._in.write(data)
        self._in.flush()

    def shutdown_write(self) -> None:
        """End its stdin."""
        with contextlib.suppress(OSError):
            self._in.close()

    def recv(self, _: int) -> bytes:
        """A line of its stdout; none when it has ended."""
        return self._out.readline()

    def recv_stderr(self, size: int) -> bytes:
        """What it said on stderr, once it has ended."""
        if self._process.poll() is None:
            self._process.wait()
            self._err.seek(0)
        return self._err.read(size)

    def recv_exit_status(self) -> int:
        """Its exit status."""
        return self._process.wait()


_Way = Channel | _Here


def _root_script(host: Host, script: str) -> _Way:
    body = script.encode()
    word = shlex.quote(f'eval "$(dd bs=1 count={len(body)} 2>/dev/null)"')
    command = f'if [ "$(id -u)" = 0 ]; then exec sh -c {word}; else exec sudo -n -H sh -c {word}; fi'
    client = getattr(host.connector, "client", None)
    if isinstance(host.connector, LocalConnector):
        here = _Here(command)
        here.sendall(body)
        return here
    if not isinstance(client, SSHClient):
        raise ConvergeError("files are copied over SSH only", remedy="use an inventory of SSH hosts for torch_wheels")
    transport = client.get_transport()
    if transport is None:
        raise SSHException("there is no connection any more")
    channel = transport.open_session()
    channel.exec_command(f"sh -c {shlex.quote(command)}")
    channel.sendall(body)
    return channel


def _first_line(channel: _Way) -> str | None:
    """From which byte on; None where the script ended without asking. What a login script prints is passed over."""
    text = b""
    while chunk := channel.recv(4096):
        text = (text + chunk)[-_MOST_SAID:]
        if m := _FROM.search(text.decode("utf-8", "replace")):
            return m[1]
    return None


def _send(channel: _Way, path: Path, start: int) -> None:
    try:
        with path.open("rb") as file:
            file.seek(start)
            while chunk := file.read(_CHUNK):
                with gevent.Timeout(
                    _STALLED, ConnectionLost(f"nothing went through for {_STALLED} s; {_STAYS}", remedy=_AGAIN)
                ):
                    try:
                        channel.sendall(chunk)
                    except OSError:  # the script has ended, and says why
                        return
    except OSError as e:
        raise ConvergeError(f"{path}: {e.strerror or e}") from None


def _ended(channel: _Way) -> Reply:
    out, err = (_rest(read) for read in (channel.recv, channel.recv_stderr))
    rc = channel.recv_exit_status()
    if rc < 0:
        raise SSHException("it was closed")
    return Reply(rc, out, err)


def _rest(read: object) -> str:
    text = b""
    while chunk := read(4096):  # type: ignore[operator]
        text = (text + chunk)[-_MOST_SAID:]
    return text.decode("utf-8", "surrogateescape")
