"""A large file to a node: its script reads it from stdin, and says from which byte on it wants it.

SFTP would write as the login user, somewhere that user can write to; this way what arrives is root's from its first
byte. A copy that was cut goes on where it ended.
"""

import re

import gevent
from pyinfra.api.host import Host

from gpuready.base.errors import ConvergeError
from gpuready.base.files import open_file, reason, status
from gpuready.base.step import Reply, Step
from gpuready.operations.transport import ConnectionLost, Session, count_exec

_CHUNK = 1 << 18
#: Seconds in which a chunk must have found its way into the connection.
_STALLED = 120
#: Bytes a second that a connection must take on average, and the most seconds for one file.
_SLOWEST, _LONGEST = 1 << 18, 4 * 3600
_STAYS = "what has arrived stays there, and the next run goes on from it"


def upload(host: Host, step: Step) -> Reply:
    """Run ``step``, which ``sends`` a file; its timeout is for all but the bytes.

    Raises :class:`ConnectionLost`, and :class:`ConvergeError` where the file cannot be read or the script fails early.
    """
    count_exec(host)
    try:
        with Session(host, step.script, f"step {step.name}") as session:
            session.hear("begin", limit=step.timeout)
            asked = session.listen("copy", limit=step.timeout)
            if asked is not None:
                _send(session, step.sends, _offset(asked[1]))
            session.end_input()
            return Reply(*session.finish(step.timeout))
    except ConnectionLost as e:
        raise ConnectionLost(f"{e.message} in step {step.name}; {_STAYS}", remedy=e.remedy) from None


def _offset(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ConnectionLost(f"the node asked for the file from byte {text[:40]!r}")
    return int(text)


def _send(session: Session, path: str, start: int) -> None:
    try:
        size = max(0, status(path).st_size - start)
        seconds = min(_STALLED + size / _SLOWEST, _LONGEST)
        late = ConnectionLost(
            f"{size >> 20} MiB were not sent within {seconds:.0f} s",
            remedy="check the network's speed, then run again",
        )
        with gevent.Timeout(seconds, late), open_file(path) as file:
            file.seek(start)
            while session.is_open() and (chunk := file.read(_CHUNK)):
                session.send(chunk, _STALLED)
    except OSError as e:
        raise ConvergeError(
            f"{path}: {reason(e)}", remedy="let this machine read the file to its end, then run again"
        ) from None
