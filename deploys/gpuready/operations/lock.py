"""One controller at a time changes a node: flock on a session of its own.

The lock lives as long as the session, so it frees itself when the controller or its connection goes. A network that
goes tells the node nothing, therefore the session also carries a heartbeat, and a lock without one is given up.
"""

from __future__ import annotations

import getpass
import socket
import time

import gevent
from pyinfra.api.host import Host

from gpuready.core import resources
from gpuready.core.errors import ConvergeError, UnreachableError, brief
from gpuready.operations.transport import Session

_SESSION = "gpuready.lock"
_BEAT, _ANSWER = 10, 20
#: Seconds without a heartbeat after which the node gives the lock up.
SILENCE = 45
#: By this the service of components/reconverge/component.py signs the lock; it is waited for, for so many seconds.
ON_NODE, ON_NODE_LIMIT = "on the node itself", 180


def hold(host: Host, patience: float = 0) -> None:
    """Take the node's lock, unless it is held already; :class:`ConvergeError` names who has it after ``patience`` s."""
    session, _ = host.connector_data.get(_SESSION, (None, None))
    if session is not None and session.is_open():
        return
    release(host)
    end = time.monotonic() + patience
    script = resources.script("lib/lock", owner=f"{getpass.getuser()}@{socket.gethostname()}", silence=SILENCE)
    while True:
        session = Session(host, script)
        try:
            answer = session.listen("free", "held", limit=_ANSWER)
        except BaseException:
            session.close()
            raise
        if answer is not None and answer[0] == "free":
            host.connector_data[_SESSION] = session, gevent.spawn(_beat, session)
            return
        session.close()
        if answer is None:
            raise UnreachableError("the node's lock cannot be taken", remedy="is /run read-only or full?")
        owner = brief(answer[1]) or "owner unknown"
        if time.monotonic() > end + (ON_NODE_LIMIT if ON_NODE in owner else 0):
            raise ConvergeError(f"another gpuready changes this node now ({owner})", remedy="wait for it to end")
        gevent.sleep(1)


def _beat(session: Session) -> None:
    while session.is_open():
        gevent.sleep(_BEAT)
        try:
            session.send(b".", _BEAT)
        except UnreachableError:
            return


def release(host: Host) -> None:
    """Give the lock back; harmless when it is not held or the connection is gone."""
    session, beat = host.connector_data.pop(_SESSION, (None, None))
    if session is not None:
        beat.kill(block=False)
        session.close()
