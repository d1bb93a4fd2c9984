"""A FIFO, a directory, a device or a huge file where a file is named: refused at once, in the same words everywhere."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuready.base.errors import InventoryError
from gpuready.base.files import read_file, why_not
from gpuready.operations.knownhosts import KnownHosts
from tests.command import Exits, gpuready, write_hosts
from tests.lab import scale

IRREGULAR: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "directory": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}
KEY = "toolkit: {{repo: {{key: {path}, fingerprint: 0123456789ABCDEF0123456789ABCDEF01234567}}}}"
WHEEL = "torch_wheels: [{{wheel: {path}, env: /opt/venv}}]"
SECRET = "toolkit: {{repo: {{proxy: 'file:{path}'}}}}"
KNOWN = "-o UserKnownHostsFile={path}"
NAME = "known_hosts-1.0-py3-none-any.whl"


def hosts(at: Path, spec: str = "", arguments: str = "") -> str:
    """An inventory of one host, from which nothing answers."""
    text = "all:\n  hosts:\n    n1:\n      ansible_host: 127.0.0.1\n      ansible_port: 1\n"
    text += f"      ansible_ssh_common_args: {arguments or '-C'}\n      gpuready: {{{spec}}}\n"
    return write_hosts(at, text)


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """Whatever waits is interrupted."""
    signal.alarm(int(scale.seconds(60)))
    yield
    signal.alarm(0)


def given(at: Path, path: Path) -> dict[str, list[str]]:
    """A command line for each place in which a file is named."""
    words = {
        "-i": ["plan", "-i", str(path)],
        "--limit": ["plan", "-i", hosts(at), "--limit", f"@{path}"],
        "--state": ["plan", "-i", hosts(at), "--state", str(path)],
    }
    for name, spec in {"key": KEY, "wheel": WHEEL, "secret": SECRET}.items():
        (at / name).mkdir(exist_ok=True)
        words[name] = ["plan", "-i", hosts(at / name, spec.format(path=path)), "--allow-read", f"file:{path}"]
    return words


@pytest.mark.fault("irregular-input")
@pytest.mark.parametrize("kind", IRREGULAR)
def test_what_is_not_a_regular_file_is_refused_at_once(kind: str, tmp_path: Path, exits: Exits) -> None:
    path = tmp_path / "in" / NAME
    path.parent.mkdir()
    IRREGULAR[kind](path)
    for place, words in given(tmp_path, path).items():
        if (kind, place) != ("directory", "-i"):  # an inventory may be one
            assert "not a regular file" in exits(5, *words).err, place
    with pytest.raises(InventoryError, match="not a regular file"):
        KnownHosts(path)


@pytest.mark.fault("irregular-input")
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, exits: Exits) -> None:
    path = tmp_path / "in" / NAME
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for place in ("-i", "--limit", "--state", "secret"):
        assert "cannot be read: larger than " in exits(5, *given(tmp_path, path)[place]).err, place
    with pytest.raises(InventoryError, match="larger than 100 MB"):
        KnownHosts(path)


@pytest.mark.fault("irregular-input")
def test_known_hosts_from_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "known_hosts")
    done = gpuready("plan", "-i", hosts(tmp_path, arguments=KNOWN.format(path=tmp_path / "known_hosts")))
    assert done.returncode == 5 and "not a regular file" in done.stderr and "Traceback" not in done.stderr, done


def test_the_bound_itself_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_file(tmp_path / "file", 4)
    assert why_not(tmp_path / "file") == "" and why_not(tmp_path / "none") == "no such file or directory"
    assert why_not("a\0b") == "embedded null byte"
