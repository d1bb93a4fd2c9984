"""``--ask-become-pass``: once, on the terminal, and never where none is."""

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.cli import become
from gpuready.inventory.hosts import load
from tests.command import gpuready

pytestmark = pytest.mark.fault("sudo-password")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    become._asked.cache_clear()
    yield
    become._asked.cache_clear()


def test_the_password_goes_to_the_hosts_without_one_and_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_OWN_PASSWORD", "own")
    asked: list[str] = []
    monkeypatch.setattr(getpass, "getpass", lambda prompt: asked.append(prompt) or "typed")
    (tmp_path / "hosts.ini").write_text(
        "[all:vars]\ngpuready={}\n[g]\na\nb ansible_become_password=env:GPUREADY_OWN_PASSWORD\n"
    )
    chosen = load([str(tmp_path / "hosts.ini")]).chosen
    for _ in range(2):
        passwords = [entry.connection.become_password for entry in become.with_password(chosen)]
        assert [password.reveal() for password in passwords if password] == ["typed", "own"]
    assert asked == ["sudo password: "]


def test_without_a_terminal_it_is_an_error_and_stdin_is_not_read() -> None:
    done = gpuready("plan", "-i", "a,", "--ask-become-pass", input="hunter2\n", start_new_session=True)
    assert done.returncode == 64 and "--ask-become-pass needs a terminal" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
