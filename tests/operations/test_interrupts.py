"""Which signals wait for what has begun on nodes, which abort the run, and what an interrupt leaves to the next one."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import gevent
import pytest

from gpuready.contract.rollout import Member, Rollout
from gpuready.inventory.hosts import load
from gpuready.operations.interrupts import Stop, signals_to_main
from gpuready.result.model import HostResult, Run
from gpuready.run.follow import NOT_BEGUN, follow
from gpuready.run.journal import Journal
from tests.command import write_hosts

#: Signals that come while a host is busy, which of them tell what runs, and whether the last one aborts.
BUSY = {
    "once": ([signal.SIGINT], 1, False),
    "twice": ([signal.SIGINT, signal.SIGINT], 1, True),
    "SIGTERM": ([signal.SIGTERM], 0, True),
    "SIGTERM after SIGINT": ([signal.SIGINT, signal.SIGTERM], 1, True),
    "a terminal that goes": ([signal.SIGHUP, signal.SIGHUP, signal.SIGHUP], 1, False),
}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """All of them are handled, as in the console script."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def aborts(stop: Stop, tell: Callable[[], None], numbers: list[signal.Signals]) -> bool:
    """Send these signals to this process, one after the other; tell whether they raised KeyboardInterrupt."""
    sent = []
    try:
        with signals_to_main(stop, tell):
            for number in numbers:
                sent.append(number)
                signal.raise_signal(number)
                gevent.sleep(0)
            gevent.sleep(0)
    except KeyboardInterrupt:
        assert sent == numbers
        return True
    return False


@pytest.mark.parametrize(("numbers", "told", "abort"), BUSY.values(), ids=BUSY)
def test_while_a_host_is_busy(numbers: list[signal.Signals], told: int, abort: bool) -> None:
    stop, lines = Stop(busy={"gpu01"}), list[str]()
    assert aborts(stop, lambda: lines.append(""), numbers) == abort
    assert (stop.asked, len(lines)) == (bool(told), told)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_none_is_the_first_one_aborts(number: signal.Signals) -> None:
    stop, lines = Stop(), list[str]()
    assert aborts(stop, lambda: lines.append(""), [number]) and not (stop.asked or lines)


def test_a_batch_that_was_not_tested_is_left_to_the_next_run(tmp_path: Path) -> None:
    entries = load([write_hosts(tmp_path, "all: {hosts: {'n[1:2]': {}}, vars: {gpuready: {}}}\n")]).chosen
    journal = Journal(tmp_path, entries, None)
    results = {entry.name: HostResult(entry.name, outcome="would_change") for entry in entries}
    hosts = SimpleNamespace(results=results, progress=Mock(), ended=journal.end, stopping=False)

    def change(names: Sequence[str]) -> None:
        for name in names:
            results[name].outcome = "changed"
            journal.end(results[name])
        hosts.stopping = True

    run = Run("apply")
    follow(Rollout([Member("n1"), Member("n2")], "1"), run, hosts, change, hook="true", journal=journal)
    assert run.after_batch is None and [host.outcome for host in results.values()] == ["changed", "not_attempted"]
    assert results["n2"].notes == [NOT_BEGUN]
    os.close(journal._folder)
    later = Journal(tmp_path, entries, None, resume=True)
    assert [entry.name for entry in later.entries] == ["n1", "n2"] and later.again == {"n1"}
