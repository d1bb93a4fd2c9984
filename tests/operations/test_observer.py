"""What an observer learns of a session: names, times and bytes; and nothing of its text."""

from unittest.mock import Mock

import pytest
from pyinfra.connectors.local import LocalConnector

from gpuready.base.errors import UnreachableError
from gpuready.operations import transport
from gpuready.operations.context import context
from gpuready.operations.events import Event
from gpuready.operations.observer import timed
from gpuready.operations.transport import ask, run_script
from tests.operations.begun import begun


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """This machine, without root."""
    monkeypatch.setattr(transport, "_ROOT", 'exec sh -c "$0"')
    return begun(connector=Mock(LocalConnector))


def test_each_script_is_one_event(host: Mock) -> None:
    seen: list[Event] = []
    context(host).observer = seen.append
    assert ask(host, "echo hunter2", 10, "read a word") == "hunter2"
    with pytest.raises(UnreachableError):
        run_script(host, "exit 3", 10, "step broken")
    with timed(host, "connect"):
        pass
    assert [(event.host, event.name) for event in seen] == [
        ("gpu01", "read a word"), ("gpu01", "step broken"), ("gpu01", "connect"),
    ]  # fmt: skip
    first, second, third = seen
    assert first.sent > 100 > first.received > len("hunter2") and 0 < first.seconds < 10
    assert 0 < second.sent < first.sent and (third.sent, third.received) == (0, 0)
    assert "hunter2" not in repr(seen) and "exit 3" not in repr(seen)


def test_without_an_observer_nothing_is_told(host: Mock) -> None:
    assert ask(host, "echo 1", 10, "read") == "1"
