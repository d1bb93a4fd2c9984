"""Nothing that an inventory says to ssh, and no file that it names, runs a command here without --allow-exec."""

import os
import subprocess
import sys
import time
from pathlib import Path

import paramiko
import pytest

from gpuready.base.errors import SpecErrors
from gpuready.inventory.hosts import Connection, load
from gpuready.operations.connection import host_data
from tests.command import gpuready

pytestmark = pytest.mark.fault("D10")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, and a directory to stand in."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def inventory(arguments: str, variable: str = "ansible_ssh_common_args") -> str:
    """One chosen host with these arguments of ssh, in ./hosts.yaml."""
    quoted = arguments.replace("'", "''")
    text = (
        f"all:\n  hosts:\n    n1:\n      ansible_host: 127.0.0.1\n      ansible_port: 1\n      {variable}: '{quoted}'\n"
    )
    Path("hosts.yaml").write_text(f"{text}      gpuready: {{}}\n")
    return "hosts.yaml"


def runs_the_command(*argv: str) -> bool:
    """Whether the command runs; the connection that it was to make is not waited for."""
    command = [sys.executable, "-m", "gpuready", *argv]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 120
        while not Path("was-run").exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        process.kill()
    return Path("was-run").exists()


IN_FILES = {
    "plain": "ProxyCommand touch was-run",
    "equals sign": "proxycommand=touch was-run",
    "upper case, spaces": "  PROXYCOMMAND   =  touch was-run",
    "tabs": "\tProxyCommand\ttouch was-run",
    "quoted value": 'ProxyCommand "touch was-run"',
    "quoted keyword": '"ProxyCommand" touch was-run',
    "in a block": "Host *\n  ProxyCommand touch was-run",
    "in a block of others": "Host other\n  ProxyCommand touch was-run",
    "after a comment": "# ours\n\nPort 22\nProxyCommand touch was-run # yes",
    "after a carriage return": "Port 22\rProxyCommand touch was-run",
    "Windows lines": "Port 22\r\nProxyCommand touch was-run\r\n",
    "byte order mark": "\ufeffProxyCommand touch was-run",
    "after a vertical tab": "Port 22\vProxyCommand touch was-run",
    "after a line separator": "User a\u2028ProxyCommand touch was-run",
    "match": 'Match exec "touch was-run"\n  User x',
    "match after another": "Match host 127.0.0.1 exec 'touch was-run'\n  User x",
    "match, negated": "Match !exec 'touch was-run'\n  User x",
    "match, equals sign": "Match exec='touch was-run'\n  User x",
    "match, in upper case": "MATCH EXEC 'touch was-run'\n  User x",
    "match, quoted": "Match \"exec\" 'touch was-run'\n  User x",
    "match by equals sign": "Match=exec 'touch was-run'\n  User x",
    "include": "Include evil",
    "include of all": "include = *",
    "include in a block": "Host *\n  INCLUDE evil",
    "known hosts": "KnownHostsCommand touch was-run",
    "local": "PermitLocalCommand yes\nLocalCommand touch was-run",
    "a library": "PKCS11Provider ./evil.so",
    "host name with arguments": "HostName -oProxyCommand=touch",
    "user with arguments": "User -oProxyCommand=touch",
    "port with arguments": "Port 22 -oProxyCommand=touch",
    "jump host with arguments": "ProxyJump -oProxyCommand=touch",
    "a start-up file as known_hosts": "UserKnownHostsFile ~/.ssh/known_hosts ~/.bashrc",
}


@pytest.mark.parametrize("name", IN_FILES)
def test_a_file_that_runs_a_command_is_refused(name: str) -> None:
    Path("conf").write_text(IN_FILES[name], newline="")
    Path("evil").write_text("ProxyCommand touch was-run\n")
    with pytest.raises(SpecErrors) as caught:
        load([inventory("-F conf")])
    assert str(caught.value).startswith("hosts.yaml:6: ansible_ssh_common_args: ") and "conf" in str(caught.value)
    assert not Path("was-run").exists()


ARGUMENTS = (
    "-o ProxyCommand='touch was-run'",
    "-oProxyCommand='touch was-run'",
    "-o 'proxycommand touch was-run'",
    "-o 'PROXYCOMMAND = touch was-run'",
    "-o Proxy'Command=touch was-run'",
    "-o '\"ProxyCommand\" touch was-run'",
    "-o ' ProxyCommand=touch was-run'",
    "-o 'LocalCommand touch was-run'",
    "-o 'KnownHostsCommand=touch was-run'",
    "-o 'Match exec touch'",
    "-o Include=evil",
    "-o 'Include evil'",
    "-o 'HostName=x -oProxyCommand=touch'",
    "-o 'HostName=-oProxyCommand=touch'",
    "-o 'User=x -oProxyCommand=touch'",
    "-o 'Port=22 -oProxyCommand=touch'",
    "-o 'ProxyJump=-oProxyCommand=touch'",
    "-J -oProxyCommand=touch",
    "-o UserKnownHostsFile=~/.bashrc",
    "-F /dev/zero",
    "-F fifo",
    "-F nowhere",
    "-F .",
)


@pytest.mark.parametrize("variable", ["ansible_ssh_common_args", "ansible_ssh_args", "ansible_ssh_extra_args"])
def test_arguments_that_run_a_command_are_refused(variable: str) -> None:
    os.mkfifo("fifo")
    for arguments in ARGUMENTS:
        with pytest.raises(SpecErrors, match=f"^hosts.yaml:6: {variable}: "):
            load([inventory(arguments, variable)])
    assert not Path("was-run").exists()


@pytest.mark.parametrize("verb", [["plan"], ["trust", "--yes"]], ids=" ".join)
@pytest.mark.parametrize("name", ["plain", "match"])
def test_the_real_command_line_runs_nothing(verb: list[str], name: str) -> None:
    Path("conf").write_text(IN_FILES[name])
    done = gpuready(*verb, "-i", inventory("-F conf"))
    assert done.returncode == 5 and "--allow-exec" in done.stderr
    assert not Path("was-run").exists()


def test_with_consent_it_runs() -> None:
    """So that the others would see it."""
    Path("conf").write_text(IN_FILES["plain"])
    assert runs_the_command("plan", "-i", inventory("-F conf"), "--allow-exec")


def test_the_users_own_configuration_is_trusted(home: Path) -> None:
    (home / ".ssh" / "config").write_text(IN_FILES["plain"])
    Path("link").symlink_to(home / ".ssh" / "config")
    for way in ("", "-F ~/.ssh/config", "-F ../home/.ssh/config", "-F link"):
        assert load([inventory(way)]).chosen[0].connection.config is None
    assert runs_the_command("plan", "-i", inventory("-F ~/.ssh/config"))


def test_a_file_takes_the_place_of_the_users_own(home: Path) -> None:
    (home / ".ssh" / "config").write_text(IN_FILES["plain"])
    Path("conf").write_text("Port 1\n")
    for way in ("-F conf", "-F none"):
        (entry,) = load([inventory(way)]).chosen
        assert "was-run" not in Path(host_data(entry.connection)["ssh_config_file"]).read_text()


def test_what_a_file_may_say_is_honoured(home: Path) -> None:
    (home / "conf").write_text(
        "# of the bastion\nHost n1 'web *'\n  HostName = 10.0.0.9\n  Port=2200  # ssh\n\tUser \"me\"\n"
        "  IdentityFile ~/a key\n  IdentityFile %d/b\n  ProxyJump ops@bastion:22\n"
        "  ForwardAgent yes\n  Compression yes\n"
        "Match originalhost n2 !user nobody\n  HostName %h.example.com\nMatch all\n  ServerAliveInterval 30\n"
        "  StrictHostKeyChecking no\n  SendEnv *\n  ProxyCommand none\n"
    )
    (entry,) = load([inventory("-F ~/conf")]).chosen
    assert entry.connection.config == (
        "host n1 'web *'\n  HostName 10.0.0.9\n  Port 2200\n  User me\n  IdentityFile ~/a key\n  IdentityFile %d/b\n"
        "  ProxyJump ops@bastion:22\nmatch originalhost n2 '!user' nobody\n  HostName %h.example.com\nmatch all\n"
        "  ServerAliveInterval 30\n"
    )
    config = paramiko.SSHConfig.from_text(entry.connection.config)
    assert (config.lookup("n1")["hostname"], config.lookup("n1")["proxyjump"]) == ("10.0.0.9", "ops@bastion:22")
    assert config.lookup("n2")["hostname"] == "n2.example.com" and config.lookup("x")["serveraliveinterval"] == "30"


def test_each_file_is_read_once_and_never_again() -> None:
    Path("conf").write_text("Host *\n  Port 2200\n")
    (entry,) = load([inventory("-F conf")]).chosen
    Path("conf").write_text(IN_FILES["plain"])
    written = Path(host_data(entry.connection)["ssh_config_file"]).read_text()
    assert "2200" in written and "touch" not in written


def test_options_reach_the_configuration_and_no_others() -> None:
    arguments = "-C -q -o ControlMaster=auto -o ServerAliveInterval=5 -o ForwardAgent=yes -o StrictHostKeyChecking=no"
    (entry,) = load([inventory(arguments)]).chosen
    assert entry.connection == Connection("127.0.0.1", port=1, options=(("ServerAliveInterval", "5"),))


def test_a_jump_host_counts_in_whichever_variable_it_is() -> None:
    for variable in ("ansible_ssh_common_args", "ansible_ssh_args", "ansible_ssh_extra_args"):
        (entry,) = load([inventory("-o ProxyJump=bastion", variable)]).chosen
        assert entry.connection.jump == "bastion" and entry.notes == ()
