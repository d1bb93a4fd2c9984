"""The process of a chunk of hosts, and what a fleet does in one. gevent stays out of the tests' own process."""

import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpuready.base.child import command, environment
from gpuready.result.model import Run
from gpuready.run.access import Access, Chunk, Work

ROOT = Path(__file__).parents[2]


def started(function: str) -> subprocess.Popen[bytes]:
    """The process of a chunk without hosts, started by one that ignores SIGINT, as ``sh -c 'gpuready ... &'`` does."""
    process = subprocess.Popen(
        command("gpuready.run.process"),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    chunk = Chunk(Work(f"tests.operations.chunk_work:{function}"), (), pickle.dumps([]), Access(), (), False)
    payload = pickle.dumps(chunk)
    assert process.stdin is not None
    process.stdin.write(b"%d\n" % len(payload) + payload)
    process.stdin.flush()
    return process


def result(process: subprocess.Popen[bytes]) -> Run:
    assert process.stdout is not None
    length = int(process.stdout.readline())
    data = process.stdout.read()
    assert len(data) == length
    done: Run = pickle.loads(data)
    return done


@pytest.mark.fault("interrupt")
def test_a_chunk_ends_at_the_interrupt_also_if_gpuready_was_started_in_the_background() -> None:
    with started("wait") as process:
        assert process.stdout is not None and b"begun" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert result(process).interrupted


@pytest.mark.fault("interrupt")
def test_an_interrupt_does_not_cut_the_result_of_a_chunk() -> None:
    with started("answer") as process:
        assert result(process).parts == {"last": "whole"}


def test_a_chunk_leaves_no_file() -> None:
    with started("leave") as process:
        files = Path(result(process).parts["files"])
        assert process.wait(60) == 0
    assert files.name.startswith("gpuready-ssh-") and not files.exists()


def alone(code: str) -> None:
    """Run Python code in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


#: Nothing differs on the host, but its turn to be brought back into service came after the interrupt.
LEFT_DRAINED = """
from types import SimpleNamespace
from gpuready.run import converge
from gpuready.operations.context import context
from gpuready.operations.interrupts import Stop
from gpuready.result.model import HostResult
from gpuready.run.follow import NOT_BEGUN
from tests.operations.begun import begun

converge._look_again = lambda fleet, host: None
for drained, ended in ((True, ("not_attempted", [NOT_BEGUN])), (False, ("ok", []))):
    host, result = begun(), HostResult("gpu01", outcome="would_change")
    context(host).again = drained
    fleet = SimpleNamespace(results={"gpu01": result}, again={"gpu01"}, stopping=True, stop=Stop(asked=True))
    converge._confirm(fleet, host)
    assert (result.outcome, result.notes) == ended, result
"""


@pytest.mark.fault("interrupt")
def test_a_node_that_may_still_be_drained_is_left_to_the_next_run() -> None:
    alone(LEFT_DRAINED)


#: All of a large fleet's states would fill the memory.
FORGOTTEN = """
from unittest.mock import Mock
from gpuready.result.model import HostResult
from gpuready.verbs.verify.stress import load

fleet = Mock()
load(fleet, seconds=1)
assert fleet.remembers(HostResult("gpu01")) is False
"""


def test_a_load_keeps_no_states() -> None:
    alone(FORGOTTEN)


#: The chunk of a worker does not know the hosts of the others.
UNBATCHED = """
from gpuready.run import converge
from gpuready.run.access import Access
from gpuready.run.fleet import Fleet

def plan_batches(*_: object) -> None:
    raise AssertionError("batches of a chunk")

converge.plan_batches = plan_batches
run = converge.compare(Fleet([], Access(), lambda host, what: None), verb="plan")
assert run.verb == "plan" and run.batches == [], run
"""


def test_a_chunk_plans_no_batches() -> None:
    alone(UNBATCHED)
