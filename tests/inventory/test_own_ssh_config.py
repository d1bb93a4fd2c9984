"""``-i ssh:PATTERN``: the hosts that ~/.ssh/config names, and its Include wherever gpuready reads it."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from pyinfra.connectors.sshuserclient.config import SSHConfig

from gpuready.base.errors import InventoryError
from gpuready.inventory import own_ssh_config
from gpuready.inventory.hosts import Connection, load
from gpuready.operations.connection import host_data
from gpuready.verbs.trust.hostkey import target
from tests.command import Exits

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
INCLUDED = {
    ".ssh/conf.d/20.conf": "host gpu03 # the new one\n\tHostName 10.0.0.3\nInclude conf.d/*\n",
    ".ssh/conf.d/10.conf": "Host gpu10\n  HostName 10.0.0.10\n  Include inside\n  Port 2210\n",
    ".ssh/inside": "User inner\nHost gpu10 gpu11\n  ProxyJump none\n",
    "more": "Match all\n  Include far\n",
    ".ssh/far": "Host far-gpu\n  HostName 10.9.9.9\n",
}


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """~/.ssh/config with files that it includes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh" / "conf.d").mkdir(parents=True)
    for name, text in {".ssh/config": CONFIG.format(home=tmp_path), **INCLUDED}.items():
        (tmp_path / name).write_text(text)
    return tmp_path / ".ssh" / "config"


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


def test_nothing_matches(ssh: Path) -> None:
    def refused(source: str) -> None:
        with pytest.raises(InventoryError, match=r"no host in ~/\.ssh/config matches"):
            names(source)

    for source in ("ssh:cpu*", "ssh:", "ssh:!gpu01", "ssh:bad/name"):
        refused(source)
    ssh.unlink()
    refused("ssh:*")


def test_connections_and_trust_follow_include(ssh: Path) -> None:
    with Path(host_data(Connection("gpu03"))["ssh_config_file"]).open() as file:
        config = SSHConfig()
        config.parse(file)
    found = {name: config.lookup(name) for name in ("gpu03", "gpu10", "gpu01", "far-gpu")}
    assert found["gpu03"]["hostname"] == "10.0.0.3" and found["far-gpu"]["hostname"] == "10.9.9.9"
    assert (found["gpu10"]["user"], found["gpu10"]["port"]) == ("inner", "2210")
    assert (found["gpu01"]["user"], found["gpu01"]["port"]) == ("ops", "2222")
    assert target(Connection("gpu03")).address == "10.0.0.3" and target(Connection("gpu10")).port == 2210


def test_addresses_are_those_of_ssh(ssh: Path) -> None:
    """As the reader of connections finds them, also in included files and blocks."""
    with Path(host_data(Connection("gpu03"))["ssh_config_file"]).open() as file:
        config = SSHConfig()
        config.parse(file)
    there = own_ssh_config.host_names()
    expected = {name: config.lookup(name)["hostname"] for name in there}
    assert {name: own_ssh_config.addresses(there).get(name, name) for name in there} == expected
    assert own_ssh_config.addresses(["gpu10", "gpu01"]) == {"gpu10": "10.0.0.10"}
    ssh.write_text("HostName %h.lan\nHost gpu01\n  HostName other\n")
    assert own_ssh_config.addresses(["gpu01"]) == {"gpu01": "gpu01.lan"}
    ssh.unlink()
    assert own_ssh_config.addresses(["gpu01"]) == {}


def test_a_file_that_cannot_be_read_is_named(ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = PermissionError(13, "Permission denied", "~/.ssh/config")
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=refused))
    with pytest.raises(InventoryError, match="config: cannot be read: Permission denied"):
        host_data(Connection("gpu03"))


def test_the_command_line(ssh: Path, exits: Exits) -> None:
    assert exits(0, "plan", "-i", "ssh:gpu0*", "--limit", "!gpu01", "--list-hosts").out == "gpu03\ngpu02\n"
