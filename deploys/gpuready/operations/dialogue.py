"""A script on a node that talks while it runs: the controller hears its lines one by one, and can end it.

The script comes as the first line of standard input, in base64, because an argument would land in sudo's journal.
Standard input stays open for as long as the script may run: it ends with the channel, so the node notices when we are
gone.
"""

from __future__ import annotations

import base64
import contextlib
import shlex
from collections.abc import Iterator

import gevent
from paramiko import Channel, SSHException
from pyinfra.api.host import Host

from gpuready.errors import UnreachableError
from gpuready.operations.transport import EXECS, ConnectionLost

# `read` takes byte by byte from a pipe, so nothing of what follows is lost.
_SHELL = 'IFS= read -r s; eval "$(printf %s "$s" | base64 -d)"'
_SH = f"sh -c {shlex.quote(_SHELL)}"
_COMMAND = f'if [ "$(id -u)" = 0 ]; then exec {_SH}; else exec sudo -n -H {_SH}; fi'
_BEGIN_LIMIT = 30


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    limit = gevent.Timeout(seconds)
    try:
        with limit:
            yield
    except gevent.Timeout as e:
        if e is not limit:
            raise
        raise ConnectionLost(f"no answer within {seconds:.0f} s", remedy="is the node overloaded or hung?") from None
    except (OSError, EOFError, SSHException, AttributeError) as e:
        raise ConnectionLost(f"the connection broke ({e or type(e).__name__})") from None


class Dialogue:
    """One script that runs; close it in every case. :class:`ConnectionLost` when the connection goes."""

    def __init__(self, host: Host, script: str) -> None:
        host.connector_data[EXECS] = host.connector_data.get(EXECS, 0) + 1
        client = getattr(host.connector, "client", None)
        if client is None:
            raise UnreachableError("tests between hosts need connections over SSH", remedy="name it by its address")
        line = base64.b64encode(script.encode("utf-8")) + b"\n"
        with _bounded(_BEGIN_LIMIT):
            self._channel: Channel = client.get_transport().open_session()
            self._channel.set_combine_stderr(True)
            self._channel.exec_command(f"sh -c {shlex.quote(_COMMAND)}")
            self._channel.sendall(line)
        self._lines = iter(self._channel.makefile("rb"))

    def hear(self, *words: str, limit: float) -> tuple[str, str]:
        """The next line that begins with one of ``words``, as word and rest; what login scripts print is passed over.

        ``limit`` is in seconds.
        """
        with _bounded(limit):
            for line in self._lines:
                word, _, rest = line.decode("ascii", "replace").rstrip("\r\n").partition(" ")
                if word in words:
                    return word, rest
        raise ConnectionLost("the script ended without an answer", remedy="was it killed on the node?")

    def records(self, limit: float) -> list[str]:
        """What follows ``begin``: the lines up to ``end N``, that one included."""
        found = []
        with _bounded(limit):
            for line in self._lines:
                found.append(line.decode("ascii", "replace").rstrip("\r\n"))
                if found[-1].startswith("end "):
                    return found
        raise ConnectionLost("the answer is cut: the script was killed on the node")

    def stop(self) -> None:
        """Ask the script to end what it runs; its answer still comes."""
        with contextlib.suppress(OSError, EOFError, SSHException):
            self._channel.sendall(b"\n")

    def close(self) -> None:
        """End the channel, and with it the script."""
        self._channel.close()
