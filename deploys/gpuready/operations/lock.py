"""Lock a node, so that only one controller changes it: a separate session holds an flock.

The lock ends with its session, and so when the controller or its connection ends. The node does not notice a network
failure, so the session also sends a heartbeat. Without it, the node releases the lock.
"""

import functools
import getpass
import secrets
import socket
import time

import gevent
from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.errors import ConvergeError, LockedError, UnreachableError, brief
from gpuready.operations.context import context
from gpuready.operations.transport import Session

_BEAT, _ANSWER = 10, 20
#: Seconds without a heartbeat after which the node releases the lock.
SILENCE = 45
#: The owner name with which the service of components/reconverge/component.py takes the lock, and how many seconds
#: gpuready waits for it.
ON_NODE, ON_NODE_LIMIT = "on the node itself", 180


@functools.cache
def _run() -> str:
    """Return an id of this run. It reveals that the inventory lists one machine twice."""
    return secrets.token_hex(8)


def hold(host: Host, patience: float = 0) -> None:
    """Take the node's lock, unless this run holds it already. Wait up to ``patience`` seconds for another owner.

    A run may be more patient than that. Raises :class:`LockedError` with the name of the owner.
    """
    held = context(host).lock
    if held is not None and held.is_open():
        return
    release(host)
    end = time.monotonic() + max(patience, context(host).patience)
    # others read the owner; a node may be reached by two addresses, so it has ours, too
    script = resources.script("lib/lock", owner=f"{controller()} run={_run()} as {_shown(host)}", silence=SILENCE)
    while True:
        session = Session(host, script, "lock")
        try:
            answer = session.listen("free", "held", limit=max(_ANSWER, context(host).probe_timeout))
        except BaseException:
            session.close()
            raise
        if answer is not None and answer[0] == "free":
            context(host).lock = _Held(session)
            return
        session.close()
        if answer is None:
            raise UnreachableError("the node's lock cannot be taken", remedy="is /run read-only or full?")
        _, ours, twin = answer[1].partition(f" run={_run()} as ")
        if ours and twin != _shown(host):  # our own name: a session whose connection broke still holds the lock
            raise ConvergeError(
                f"{_shown(host)} and {brief(twin)} are the same machine, and this run is already changing it as the "
                "latter",
                remedy="list the machine only once in the inventory, or exclude one name: --limit '!NAME'",
            )
        owner = brief(answer[1].partition(" run=")[0]) or "owner unknown"
        if time.monotonic() > end + (ON_NODE_LIMIT if ON_NODE in owner else 0):
            raise LockedError(f"another gpuready run is changing this node ({owner})", remedy="wait until it ends")
        gevent.sleep(1)


def controller() -> str:
    """Who runs gpuready here: USER@HOST."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def _shown(host: Host) -> str:
    """The name in the inventory, and the address if it differs."""
    address = host.data.get("ssh_hostname")
    return host.name if address in (None, host.name) else f"{host.name} ({address})"


class _Held:
    """The session that holds a node's lock, and its heartbeat."""

    def __init__(self, session: Session) -> None:
        self._session, self._heart = session, gevent.spawn(self._beat)

    def is_open(self) -> bool:
        return self._session.is_open()

    def close(self) -> None:
        self._heart.kill(block=False)
        self._session.close()

    def _beat(self) -> None:
        while self._session.is_open():
            gevent.sleep(_BEAT)
            try:
                self._session.send(b".", _BEAT)
            except UnreachableError:
                return


def release(host: Host) -> None:
    """Release the lock. Does nothing if the lock is not held or the connection is gone."""
    held, context(host).lock = context(host).lock, None
    if held is not None:
        held.close()
