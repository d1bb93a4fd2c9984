"""A file on its way to a node ends in bounded time, however little of it the node takes at once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from gpuready.core.ledger import WriteFiles
from gpuready.core.step import Reply, Step
from gpuready.operations import upload as module
from gpuready.operations.transport import ConnectionLost


class Taker:
    """A session that asks for the file from a byte on, and takes ``pace`` seconds for a chunk."""

    start, pace = 0, 0.0

    def __init__(self, host: object, script: str, name: str) -> None:
        self.got = b""
        Taker.last = self

    last: Taker

    def __enter__(self) -> Taker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def hear(self, *words: str, limit: float) -> tuple[str, str]:
        return words[0], ""

    def listen(self, *words: str, limit: float) -> tuple[str, str]:
        return words[0], str(self.start)

    def is_open(self) -> bool:
        return True

    def send(self, data: bytes, limit: float) -> None:
        gevent.sleep(self.pace)
        self.got += data

    def end_input(self) -> None:
        pass

    def finish(self, limit: float) -> tuple[int, str, str]:
        return 0, "", ""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sends 4 MiB to a node that takes a chunk every ``pace`` seconds, from byte ``start`` on."""
    monkeypatch.setattr(module, "Session", Taker)
    (tmp_path / "wheel").write_bytes(bytes(4 << 20))
    step = Step("wheel-copy", WriteFiles(()), timeout=60, survives=False, sends=str(tmp_path / "wheel"))

    def begin(pace: float, start: int = 0) -> Reply:
        monkeypatch.setattr(Taker, "pace", pace)
        monkeypatch.setattr(Taker, "start", start)
        return module.upload(SimpleNamespace(connector_data={}), step)  # type: ignore[arg-type]

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
    assert copy(pace=0, start=(4 << 20) - 5) == Reply(0, "", "")
    assert Taker.last.got == bytes(5)
