"""What test_chunks.py gives the process of a chunk to do. It runs there, not in the tests' own."""

import signal

import gevent

from gpuready.operations import connection
from gpuready.result.model import Run
from gpuready.run.fleet import Fleet


def wait(fleet: Fleet) -> Run:
    """Work until an interrupt comes."""

    def work(run: Run) -> None:
        fleet.progress("n1", "begun")
        gevent.sleep(30)

    return fleet.work("apply", work)


class _Interrupted:
    """Interrupts the process while it is pickled."""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        return str, ("whole",)


def answer(fleet: Fleet) -> Run:
    """Give a result that is interrupted while it is written."""
    run = Run("apply")
    run.parts["last"] = _Interrupted()
    return run


def leave(fleet: Fleet) -> Run:
    """Make the files that connections need."""
    return Run("apply", parts={"files": str(connection._folder())})
