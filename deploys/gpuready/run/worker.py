"""What a Dask worker does for gpuready: start a process for each chunk of hosts, and end it when asked to.

Only Dask calls these functions, on its workers. Nothing here imports pyinfra or gevent.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections import defaultdict
from typing import IO

from distributed import get_worker

from gpuready.base.child import command, environment

_running: dict[str, set[subprocess.Popen[bytes]]] = defaultdict(set)
_stopped: set[str] = set()
_guard = threading.Lock()
_LAST_WORDS = 2000


class ChunkDied(Exception):
    """The process of a chunk ended without a result. The message is the end of what it printed."""


def work(run_id: str, payload: bytes) -> bytes | None:
    """Do a pickled chunk, and return the pickled result; None if the run was stopped. Raises :class:`ChunkDied`."""
    worker = get_worker()
    with tempfile.TemporaryFile() as errors:
        with _guard:
            if run_id in _stopped:
                return None
            process = _start(errors)
            _running[run_id].add(process)
        try:
            with contextlib.suppress(BrokenPipeError):
                assert process.stdin is not None
                process.stdin.write(b"%d\n" % len(payload) + payload)
                process.stdin.flush()  # it stays open: its end tells that this worker is gone
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith(b"{"):
                    result = process.stdout.read()
                    if len(result) == int(line):
                        return result
                    break
                worker.log_event(run_id, line.decode())
            code = process.wait()
            errors.seek(0, os.SEEK_END)
            errors.seek(max(0, errors.tell() - _LAST_WORDS))
            raise ChunkDied(f"exit {code}: {errors.read().decode('utf-8', 'replace').strip()}")
        finally:
            process.kill()
            process.communicate()
            with _guard:
                _running[run_id].discard(process)
                if not _running[run_id]:
                    del _running[run_id]


def _start(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C on the worker's terminal is the controller's to handle."""
    return subprocess.Popen(
        command("gpuready.run.process"),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )


async def stop(run_id: str) -> None:
    """Interrupt the chunks of a run on this worker. They end what must not be cut off, and give what they have.

    It is a coroutine: only that can be called on a worker without waiting for an answer.
    """
    with _guard:
        _stopped.add(run_id)
        for process in _running.get(run_id, ()):
            process.send_signal(signal.SIGINT)
