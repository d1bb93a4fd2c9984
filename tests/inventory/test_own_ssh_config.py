"""``-i ssh:PATTERN``: the hosts that ~/.ssh/config names, and its Include wherever gpuready reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyinfra.connectors.sshuserclient.config import SSHConfig

from gpuready.cli.app import run
from gpuready.cli.hostkey import target
from gpuready.core.errors import InventoryError
from gpuready.inventory.hosts import Connection, load
from gpuready.operations.connection import host_data

CONFIG = """\
Include conf.d/*.conf nothing-there "{home}/more"
Host gpu01 gpu02 login
  User ops
Host gpu* !gpu02 "*.example.com"
  Port 2222
Match host special
  Port 1
Host = GIT_forge
  HostName git.example.com
Host bad/name
Host !gpu09 gpu?9
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh" / "conf.d").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def ssh(home: Path) -> Path:
    """~/.ssh/config with files that it includes."""
    (home / ".ssh" / "config").write_text(CONFIG.format(home=home))
    (home / ".ssh" / "conf.d" / "20.conf").write_text(
        "host gpu03 # the new one\n\tHostName 10.0.0.3\nInclude conf.d/*\n"
    )
    (home / ".ssh" / "conf.d" / "10.conf").write_text(
        "Host gpu10\n  HostName 10.0.0.10\n  Include inside\n  Port 2210\n"
    )
    (home / ".ssh" / "inside").write_text("User inner\nHost gpu10 gpu11\n  ProxyJump none\n")
    (home / "more").write_text("Match all\n  Include far\n")
    (home / ".ssh" / "far").write_text("Host far-gpu\n  HostName 10.9.9.9\n")
    return home / ".ssh" / "config"


def names(*sources: str) -> list[str]:
    return [entry.name for entry in load(sources).chosen]


def test_the_hosts_that_match(ssh: Path) -> None:
    assert names("ssh:gpu*") == ["gpu10", "gpu03", "gpu01", "gpu02"]
    assert names("ssh:gpu0?,!gpu02, login") == ["gpu03", "gpu01", "login"]
    assert names("ssh:*") == ["gpu10", "gpu03", "far-gpu", "gpu01", "gpu02", "login", "GIT_forge"]
    assert any("bad/name" in note for note in load(["ssh:*"]).chosen[0].notes)


def test_an_address_is_the_name_and_ssh_decides_the_rest(ssh: Path, tmp_path: Path) -> None:
    (tmp_path / "vars.yaml").write_text("all: {vars: {gpuready: {ldso: 'off'}}}\n")
    entry = load(["ssh:gpu03", str(tmp_path / "vars.yaml")]).chosen[0]
    assert entry.connection == Connection("gpu03") and entry.spec.ldso == "off"
    assert str(entry.source) == f"{ssh.parent}/conf.d/20.conf:1"


@pytest.mark.parametrize("source", ["ssh:cpu*", "ssh:", "ssh:!gpu01", "ssh:bad/name"])
def test_nothing_matches(source: str, ssh: Path) -> None:
    with pytest.raises(InventoryError, match=r"no host in ~/\.ssh/config matches"):
        names(source)


def test_without_a_config(home: Path) -> None:
    with pytest.raises(InventoryError, match=r"no host in ~/\.ssh/config matches"):
        names("ssh:*")


def test_connections_and_trust_follow_include(ssh: Path) -> None:
    with Path(host_data(Connection("gpu03"))["ssh_config_file"]).open() as file:
        config = SSHConfig()
        config.parse(file)
    found = {name: config.lookup(name) for name in ("gpu03", "gpu10", "gpu01", "far-gpu")}
    assert found["gpu03"]["hostname"] == "10.0.0.3" and found["far-gpu"]["hostname"] == "10.9.9.9"
    assert (found["gpu10"]["user"], found["gpu10"]["port"]) == ("inner", "2210")
    assert (found["gpu01"]["user"], found["gpu01"]["port"]) == ("ops", "2222")
    assert target(Connection("gpu03")).address == "10.0.0.3" and target(Connection("gpu10")).port == 2210


def test_a_file_that_cannot_be_read_is_named(ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(InventoryError, match="config: cannot be read: Permission denied"):
        host_data(Connection("gpu03"))


def test_the_command_line(ssh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "-i", "ssh:gpu0*", "--limit", "!gpu01", "--list-hosts"]) == 0
    assert capsys.readouterr().out.split() == ["gpu03", "gpu02"]
