"""A file on its way to a node ends in bounded time, however little of it the node takes at once."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import gevent
import pytest

from gpuready.base.step import Reply, Step
from gpuready.contract.ledger import WriteFiles
from gpuready.operations import upload as module
from gpuready.operations.transport import ConnectionLost, Session
from tests.operations.begun import begun


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sends 4 MiB to a node that takes a chunk every ``pace`` seconds, from byte ``start`` on; returns what arrived."""
    (tmp_path / "wheel").write_bytes(bytes(4 << 20))
    step = Step("wheel-copy", WriteFiles(()), timeout=60, survives=False, sends=str(tmp_path / "wheel"))

    def begin(pace: float, start: int = 0) -> tuple[Reply, bytes]:
        got = bytearray()

        def send(data: bytes, limit: float) -> None:
            gevent.sleep(pace)
            got.extend(data)

        session = MagicMock(Session, send=send)
        session.__enter__.return_value, session.__exit__.return_value = session, None
        session.listen.return_value, session.finish.return_value = ("copy", str(start)), (0, "", "")
        monkeypatch.setattr(module, "Session", lambda *_: session)
        return module.upload(begun(), step), bytes(got)

    return begin


@pytest.mark.fault("cut-wheel")
def test_a_slow_copy_ends_and_the_message_says_how_long_it_had(copy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STALLED", 0.1)
    monkeypatch.setattr(module, "_SLOWEST", 4 << 20)
    with gevent.Timeout(60), pytest.raises(ConnectionLost) as caught:
        copy(pace=0.5)  # each chunk within its own limit
    message = "4 MiB were not sent within 1 s in step wheel-copy; what has arrived stays there"
    assert caught.value.message.startswith(message) and "network" in caught.value.remedy


def test_what_is_left_of_a_cut_copy_is_sent(copy: Any) -> None:
    assert copy(pace=0, start=(4 << 20) - 5) == (Reply(0, "", ""), bytes(5))
