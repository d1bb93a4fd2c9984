"""The node's lock, on this machine: who holds it is named, and a machine that the inventory has twice is recognised."""

import getpass
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyinfra.connectors.local import LocalConnector

from gpuready.base import resources
from gpuready.base.errors import ConvergeError
from gpuready.operations import lock, transport
from tests.operations.begun import begun


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts run without root, and the lock is a file of the test."""
    render = resources.script

    def script(name: str, **values: object) -> str:
        return render(name, **values).replace("/run/gpuready.lock", str(tmp_path / "lock"))

    monkeypatch.setattr(transport, "_ROOT", 'exec sh -c "$0"')
    monkeypatch.setattr(resources, "script", script)


def host(name: str, address: str | None = None) -> Mock:
    return begun(name, connector=Mock(LocalConnector), data={"ssh_hostname": address})


def test_two_names_of_one_machine() -> None:
    first, second = host("gpu01", "10.0.0.7"), host("gpu02", "10.0.0.8")
    lock.hold(first)
    try:
        lock.hold(first)  # it has it
        with pytest.raises(ConvergeError) as caught:
            lock.hold(second)
        assert str(caught.value) == (
            "gpu02 (10.0.0.8) and gpu01 (10.0.0.7) are the same machine, and this run is already changing it as the "
            "latter"
        )
        assert "--limit" in caught.value.remedy
        with pytest.raises(ConvergeError, match="gpu03 and gpu01 "):
            lock.hold(host("gpu03", "gpu03"))
    finally:
        lock.release(first)


def test_another_run_is_named_by_its_user_only(monkeypatch: pytest.MonkeyPatch) -> None:
    other = host("gpu01", "10.0.0.7")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(lock, "_run", lambda: "0" * 16)
        lock.hold(other)
    try:
        with pytest.raises(ConvergeError) as caught:
            lock.hold(host("gpu01", "10.0.0.7"))
        who = f"{getpass.getuser()}@{socket.gethostname()}"
        assert str(caught.value) == f"another gpuready run is changing this node ({who})"
    finally:
        lock.release(other)
