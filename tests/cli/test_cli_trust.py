"""Host keys: shown, stored, compared; a changed one is never replaced unasked, and no other line is touched."""

import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import paramiko
import pytest
from paramiko.hostkeys import HostKeys

from gpuready.base.errors import UnreachableError
from gpuready.cli.app import run
from gpuready.inventory.hosts import Connection
from gpuready.operations.knownhosts import KnownHosts
from gpuready.verbs.trust import command
from gpuready.verbs.trust.hostkey import CONNECT, target
from tests.command import Exits, write_hosts

OTHER = "other.example,10.1.1.1 ssh-rsa AAAAB3NzaC1yc2E= a comment\n"


class Server:
    """An SSH server that shows its key and lets nobody in."""

    def __init__(self) -> None:
        self.key: paramiko.PKey = paramiko.ECDSAKey.generate()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return f"[127.0.0.1]:{self.port}"

    @property
    def line(self) -> str:
        return f"{self.name} {self.key.get_name()} {self.key.get_base64()}\n"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            transport = paramiko.Transport(client)
            transport.add_server_key(self.key)
            transport.start_server(event=threading.Event(), server=paramiko.ServerInterface())

    def close(self) -> None:
        """End the thread, too: after a signal, it would accept from whatever has its descriptor by then."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "ssh" / "known_hosts"


@pytest.fixture
def hosts(tmp_path: Path, server: Server, known: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path))
    text = "all:\n  hosts:\n    gpu[01:02]:\n  vars:\n    gpuready: {}\n    ansible_host: 127.0.0.1\n"
    text += f"    ansible_port: {server.port}\n    ansible_ssh_common_args: -o UserKnownHostsFile={known}\n"
    return write_hosts(tmp_path, text)


def test_a_new_key_is_shown_and_stored_once(hosts: str, server: Server, known: Path, exits: Exits) -> None:
    told = exits(0, "trust", "-i", hosts, "--yes").out
    assert f"gpu01  new      {server.name}  ecdsa-sha2-nistp256 {server.key.fingerprint}" in told
    assert told.endswith("1 key stored\n")
    assert known.read_text() == server.line
    assert known.stat().st_mode & 0o777 == 0o600 and known.parent.stat().st_mode & 0o777 == 0o700
    assert "known" in exits(0, "trust", "-i", hosts, "--yes").out and known.read_text() == server.line


def test_without_a_terminal_the_keys_are_shown_and_not_stored(
    hosts: str, server: Server, known: Path, exits: Exits
) -> None:
    told = exits(64, "trust", "-i", hosts)
    assert f"gpu02  new      {server.name}  ecdsa-sha2-nistp256 {server.key.fingerprint}" in told.out
    assert "needs --yes" in told.err and "ssh-keygen -lf" in told.err and not known.exists()
    known.parent.mkdir()
    known.write_text(server.line)
    assert run(["trust", "-i", hosts]) == 0  # nothing to ask


def test_after_no_nothing_is_stored(hosts: str, known: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *text, **options: False)
    assert exits(7, "trust", "-i", hosts).out.endswith("\nno key was stored\n") and not known.exists()


def test_a_hashed_name_is_recognised(hosts: str, server: Server, known: Path) -> None:
    known.parent.mkdir()
    known.write_text(server.line.replace(server.name, HostKeys.hash_host(server.name)))
    before = known.read_text()
    assert run(["trust", "-i", hosts, "--yes"]) == 0
    assert known.read_text() == before


@pytest.mark.parametrize(("files", "hosts"), [(256, 64), (1024, 256), (1 << 20, 256), (resource.RLIM_INFINITY, 256)])
def test_no_more_hosts_at_once_than_files_may_be_open(files: int, hosts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert command._at_once() == hosts


@pytest.mark.fault("host-key-changed")
def test_a_changed_key_is_refused_and_replaced_only_when_asked(
    hosts: str, server: Server, known: Path, exits: Exits
) -> None:
    known.parent.mkdir()
    marker = "@cert-authority * ssh-ed25519 AAAA\n"
    before = f"# mine\n{OTHER}{server.line.replace(server.name, 'friend,' + server.name)}{marker}"
    known.write_text(before)
    server.key = paramiko.ECDSAKey.generate()
    told = exits(4, "trust", "-i", hosts, "--yes")
    assert "CHANGED" in told.out and "nothing was stored" in told.err and known.read_text() == before
    assert f"rebuilt: gpuready trust -i {hosts} --limit gpu02 --replace; otherwise" in " ".join(told.err.split())
    assert run(["trust", "-i", hosts, "--yes", "--replace"]) == 0
    assert known.read_text() == before.replace("friend," + server.name, "friend") + server.line


def test_a_revoked_key_is_never_stored(hosts: str, server: Server, known: Path) -> None:
    known.parent.mkdir()
    known.write_text(f"@revoked {server.line}")
    assert run(["trust", "-i", hosts, "--yes", "--replace"]) == 4
    assert known.read_text() == f"@revoked {server.line}"


def test_a_file_without_a_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(OTHER.rstrip())
    key = paramiko.ECDSAKey.generate()
    KnownHosts(path).add("h", key)
    assert path.read_text() == f"{OTHER}h {key.get_name()} {key.get_base64()}\n"


def test_unreachable_is_4(tmp_path: Path, exits: Exits) -> None:
    path = write_hosts(tmp_path, "all: {hosts: {lab1: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}}}\n")
    assert "lab1  UNREACHABLE" in exits(4, "trust", "-i", path, "--yes").out


def test_all_hosts_that_are_off_cost_one_time_to_connect(
    tmp_path: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for all the others here, so fewer at once would end in another error."""
    together, limits = threading.Barrier(60), []

    def off(address: tuple[str, int], timeout: float) -> None:
        limits.append(timeout)
        together.wait(30)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", off)
    text = "all: {hosts: {'gpu[01:59]': {}, slow: {ansible_timeout: 3}}, vars: {gpuready: {}}}\n"
    told = exits(4, "trust", "-i", write_hosts(tmp_path, text), "--yes").out
    assert told.count("the connection timed out") == 60 and sorted(limits) == [3, *([CONNECT] * 59)]


def test_where_to_ask_follows_the_ssh_configuration(tmp_path: Path) -> None:
    config = "Host gpu*\n  HostName 10.0.0.9\n  Port 2200\n  UserKnownHostsFile /k /l\nHost far\n  ProxyJump bastion\n"
    found = target(Connection("gpu01", config=config))
    assert (found.name, found.known_hosts) == ("[10.0.0.9]:2200", (Path("/k"), Path("/l")))
    assert target(Connection("gpu01", port=22, config=config)).name == "10.0.0.9"
    own = Connection("gpu01", config=config, options=(("UserKnownHostsFile", "/mine"),))
    assert target(own).known_hosts == (Path("/mine"),)
    for behind in (Connection("far", config=config), Connection("x", jump="bastion")):
        with pytest.raises(UnreachableError, match="behind bastion"):
            target(behind)
