"""The run of a training on several nodes ends in time, whatever one of them answers."""

from typing import Any

import gevent
import pytest

from gpuready.fabric import mpirun
from gpuready.fabric.verdict import Answer
from gpuready.operations.transport import ConnectionLost
from gpuready.verbs.fabric import job_run as operation
from tests.fabric.test_fabric_training import NAMES, roles


class Node:
    """A session whose node says these lines, and then nothing."""

    def __init__(self, *lines: tuple[str, str]) -> None:
        self._lines = iter(lines)

    def hear(self, *words: str, limit: float) -> tuple[str, str]:
        line = next(self._lines, None)
        if line is None:
            gevent.sleep(limit)
            raise ConnectionLost(f"no answer within {limit} s")
        return line

    def send(self, data: bytes, limit: float) -> None:
        pass


@pytest.mark.parametrize(
    ("first", "trouble"),
    [
        (Node(("begin", "")), ""),  # a node of rank 0 that ends well without a port
        (Node(*[("beat", "")] * 9), "no answer within "),
    ],
)
def test_no_node_can_make_the_others_wait_for_ever(first: Node, trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {"n1": first, "n2": Node(("ready", "")), "n3": Node(("ready", ""))}
    monkeypatch.setattr(operation, "begin", lambda stack, host, *rest: nodes[host])
    monkeypatch.setattr(operation, "answer", lambda session: Answer(0))
    monkeypatch.setattr(operation, "_SILENCE", 0.2)
    monkeypatch.setattr(operation, "_OWN_ERROR", 0.2)
    hosts: Any = NAMES
    with gevent.Timeout(10):
        found = operation.run_job(roles(), hosts)
    assert trouble in found[0].trouble and [each.rc for each in found[1:]] == [None, None]


def test_mpirun_may_be_silent_until_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens for nobody, and its script has no beat."""
    limits: list[float] = []

    def hear(self: Node, *words: str, limit: float) -> tuple[str, str]:
        limits.append(limit)
        return "begin", ""

    started: list[Any] = []
    monkeypatch.setattr(Node, "hear", hear)
    monkeypatch.setattr(operation, "begin", lambda stack, host, *rest: started.append(rest) or Node())
    monkeypatch.setattr(operation, "answer", lambda session: Answer(0))
    job = mpirun.role(roles(), 5)
    hosts: Any = NAMES[:1]
    assert operation.run_job([job], hosts) == [Answer(0)]
    assert limits == [job.command.limit + operation._GRACE] and started[0][-1] == ""


def test_the_whole_training_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = {name: Node(*[("beat", "")] * 40_000) for name in NAMES}
    monkeypatch.setattr(operation, "begin", lambda stack, host, *rest: endless[host])
    monkeypatch.setattr(operation, "_GRACE", 0.2 - roles()[0].command.limit)
    monkeypatch.setattr(Node, "hear", lambda self, *words, limit: gevent.sleep(0.001) or ("beat", ""))
    hosts: Any = NAMES
    with gevent.Timeout(10):
        found = operation.run_job(roles(), hosts)
    assert all("torchrun did not end within" in each.trouble for each in found)
