"""The work on one host's answer is ended when it has kept all other hosts waiting, and only then."""

import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterator

import gevent
import pytest
from gevent import monkey

from gpuready.base.records import ProbeError
from gpuready.operations import watchdog
from gpuready.operations.watchdog import holding, stand_aside, working

LIMIT = 0.3
ENDED = "reading the node's answer took more than 0 s of CPU time"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(watchdog, "LIMIT", LIMIT)
    yield
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def spin(seconds: float = 1000) -> None:
    """Use CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def swallow() -> None:
    """Catch the first error and go on, as a library might."""
    with contextlib.suppress(ProbeError):
        spin()
    spin()


@pytest.mark.fault("held-loop")
@pytest.mark.parametrize(
    "work", [spin, swallow, lambda: re.match("(a+)+$", "a" * 60 + "b")], ids=["python", "swallowed", "regex"]
)
def test_work_that_holds_the_loop_is_ended_and_the_others_go_on(work: Callable[[], object]) -> None:
    def hostile() -> None:
        with holding("reading"):
            work()

    def honest() -> str:
        for _ in range(5):
            with holding("reading") as pause:
                pause()
        return "well"

    jobs = [gevent.spawn(honest), gevent.spawn(hostile), gevent.spawn(honest)]
    gevent.joinall(jobs)
    assert [job.value for job in jobs] == ["well", None, "well"]
    with pytest.raises(ProbeError, match=ENDED):
        jobs[1].get()


@pytest.mark.fault("held-loop")
def test_the_parts_of_the_work_count_together() -> None:
    parts = []
    with pytest.raises(ProbeError, match=ENDED), holding("reading") as pause:
        for part in range(100):
            parts.append(part)
            spin(LIMIT / 4)
            pause()
    assert 3 <= len(parts) <= 4


@pytest.mark.fault("held-loop")
def test_time_without_cpu_does_not_count() -> None:
    """As on a machine that is busy with something else."""
    with holding("reading"):
        monkey.get_original("time", "sleep")(2 * LIMIT)


def test_what_others_do_while_the_work_waits_does_not_count() -> None:
    def hog() -> None:
        spin(2 * LIMIT)

    def waiting() -> None:
        with holding("reading") as pause:
            pause()
            gevent.sleep(0)  # as the reading of a wheel does within a comparison
            pause()

    jobs = [gevent.spawn(waiting), gevent.spawn(hog), gevent.spawn(waiting)]
    gevent.joinall(jobs, raise_error=True)


@pytest.mark.parametrize(("slice", "order"), [(0.0, "aabb"), (LIMIT, "abab")])
def test_others_run_only_after_a_part_that_is_worth_a_pause(
    slice: float, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_SLICE", slice)
    parts = []

    def work() -> None:
        with holding("reading") as pause:
            for part in "ab":
                parts.append(part)
                pause()

    gevent.joinall([gevent.spawn(work), gevent.spawn(work)], raise_error=True)
    assert "".join(parts) == order


def test_long_parts_of_many_hosts_leave_the_others_most_of_the_time() -> None:
    """After each part they wait, one after another: in the time of one wait, only one of them has another part."""
    began, parts, done = time.monotonic(), [], []

    def hostile() -> None:
        with holding("reading") as pause:
            for _ in range(2):
                parts.append(time.monotonic() - began)
                spin(0.06)
                pause()
        done.append(time.monotonic() - began)

    gevent.joinall([gevent.spawn(hostile) for _ in range(4)], raise_error=True)
    assert len(parts) == 8 and done[-1] > 8 * 4 * 0.06


def test_a_handler_of_somebody_else_stays() -> None:
    before = signal.signal(signal.SIGPROF, signal.SIG_IGN)
    try:
        with holding("reading"):
            assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
        assert signal.getsignal(signal.SIGPROF) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGPROF, before)


def test_long_answers_are_read_last_and_one_after_another() -> None:
    order: list[str] = []

    def long(name: str) -> None:
        with working():
            stand_aside()
            order.append(f"{name} begins")
            gevent.sleep(0)
            order.append(f"{name} ends")

    def short(name: str) -> None:
        with working():
            for _ in range(5):
                gevent.sleep(0)
            order.append(name)

    jobs = [gevent.spawn(short, "c"), gevent.spawn(long, "a"), gevent.spawn(short, "d"), gevent.spawn(long, "b")]
    gevent.joinall(jobs, timeout=60, raise_error=True)
    assert order[:2] == ["c", "d"]
    assert order[2:] in (
        ["a begins", "a ends", "b begins", "b ends"],
        ["b begins", "b ends", "a begins", "a ends"],
    )


def test_a_long_answer_that_is_alone_waits_for_nobody() -> None:
    with working():
        stand_aside()
    stand_aside()  # an operation of pyinfra's, which nobody counts


def test_a_host_that_fails_or_is_interrupted_keeps_nobody_waiting() -> None:
    def fails() -> None:
        with working():
            gevent.sleep(0)
            raise ProbeError("no")

    def interrupted() -> None:
        with working():
            stand_aside()
            gevent.sleep(1000)

    first, second = gevent.spawn(interrupted), gevent.spawn(fails)
    second.join()
    gevent.sleep(0)
    first.kill()
    with working():
        stand_aside()
