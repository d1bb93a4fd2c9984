"""Run the user's command on the controller after a batch, such as a health test of their own.

It has a session of its own, so Ctrl-C at the terminal does not reach it; whatever ends gpuready's wait ends it.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from gpuready.base.files import reason
from gpuready.result.model import AfterBatch

#: Seconds that the command may take, and bytes of its output that are kept.
LIMIT, _TAIL = 3600, 2000
#: The shell's exit code of a command that cannot be run.
_CANNOT_RUN = 126
#: The variable with the names of the batch's hosts, with commas, as --limit takes them.
HOSTS = "GPUREADY_BATCH_HOSTS"


def after_batch(command: str, hosts: Sequence[str]) -> AfterBatch:
    """Run ``command`` with sh. Its exit code is None if it did not end in time."""
    began, code = time.monotonic(), None
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, HOSTS: ",".join(hosts)},
                start_new_session=True,
            )
        except OSError as e:  # the names of a few thousand hosts are too long for a variable
            return AfterBatch(tuple(hosts), _CANNOT_RUN, 0.0, f"{reason(e)}: use a smaller --batch")
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=LIMIT)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
        text = output.read().decode("utf-8", "replace")
    return AfterBatch(tuple(hosts), code, round(time.monotonic() - began, 1), text)
