"""inventory/ssh_options.py itself: each setting, jump host and file, with the exact words of a refusal."""

from pathlib import Path

import pytest

from gpuready.inventory import own_ssh_config
from gpuready.inventory.source_values import Refused
from gpuready.inventory.ssh_options import JUMP_ALLOWED, ConfigFiles, check_jump, setting

JUMPS = ["bastion", "me@bastion", "me@10.0.0.1:22", "a,b@c:65535", "[2001:db8::1]:22", "[::1]", "[1.2.3.4]", "x:1"]
NO_JUMPS = {
    "a,,b": "",
    "a,-oProxyCommand=x": "-oProxyCommand=x",
    "-a@b": "-a@b",
    "@b": "@b",
    "a:0": "a:0",
    "a:65536": "a:65536",
    "a@b@": "a@b@",
    "[bastion": "[bastion",
    "bastion]": "bastion]",
    "a b": "a b",
}


@pytest.mark.parametrize("text", JUMPS)
def test_jump_hosts(text: str) -> None:
    assert check_jump(text) == text
    assert setting(f"ProxyJump={text}", allow_exec=False) == ("ProxyJump", text)


@pytest.mark.parametrize("text", NO_JUMPS)
def test_what_is_no_jump_host_is_quoted(text: str) -> None:
    with pytest.raises(Refused) as caught:
        check_jump(text)
    assert (str(caught.value), caught.value.allowed) == (f"{NO_JUMPS[text]!r} is not a jump host", JUMP_ALLOWED)


TAKEN = {
    "HostName=10.0.0.1": ("HostName", "10.0.0.1"),
    "hostname %h.example.com": ("hostname", "%h.example.com"),
    "User = me": ("User", "me"),
    'User="me"': ("User", "me"),
    "IdentityFile ~/a key": ("IdentityFile", "~/a key"),
    'IdentityFile "~/a key"': ("IdentityFile", "~/a key"),
    "IdentityFile x ": ("IdentityFile", "x"),
    'IdentityFile "': ("IdentityFile", '"'),
    'IdentityFile a"': ("IdentityFile", 'a"'),
    'IdentityFile "a': ("IdentityFile", '"a'),
    "ProxyJump NONE": ("ProxyJump", "NONE"),
    "UserKnownHostsFile ~/.ssh/known_hosts ./my-known": ("UserKnownHostsFile", "~/.ssh/known_hosts ./my-known"),
    "UserKnownHostsFile /dev/null": ("UserKnownHostsFile", "/dev/null"),
    "ServerAliveInterval=30": ("ServerAliveInterval", "30"),
    "AddressFamily INET6": ("AddressFamily", "INET6"),
    "CanonicalizeHostname always": ("CanonicalizeHostname", "always"),
    "CanonicalDomains a.example b.example": ("CanonicalDomains", "a.example b.example"),
    "CanonicalizeMaxDots 1": ("CanonicalizeMaxDots", "1"),
    "CanonicalizeFallbackLocal no": ("CanonicalizeFallbackLocal", "no"),
    "ProxyCommand none": None,
    "ForwardAgent yes": None,
    "ControlPath -x": None,
}
KEYWORD, PLAIN = "Keyword=value of ssh_config", "a plain value"
KNOWN = "a file whose name contains known, such as known_hosts"
NOT_TAKEN = {
    "HostName": ("'HostName' is not supported", KEYWORD),
    "Host=x": ("'Host=x' is not supported", KEYWORD),
    "MATCH all": ("'MATCH all' is not supported", KEYWORD),
    "include x": ("'include x' is not supported", KEYWORD),
    "User=a\x1b": (r"'User=a\x1b' is not supported", KEYWORD),
    "Port\t22": ("'Port\\t22' is not supported", KEYWORD),
    "1User=a": ("'1User=a' is not supported", KEYWORD),
    "HostName=-x": ("HostName '-x' is not accepted", PLAIN),
    "HostName=%d": ("HostName '%d' is not accepted", PLAIN),
    'HostName="-x"': ("HostName '-x' is not accepted", PLAIN),
    'User=""': ("User '' is not accepted", PLAIN),
    "User=a b": ("User 'a b' is not accepted", PLAIN),
    "Port=2x": ("Port '2x' is not accepted", PLAIN),
    "UserKnownHostsFile ~/.bashrc": ("UserKnownHostsFile '~/.bashrc' is not accepted", KNOWN),
    "UserKnownHostsFile known/x": ("UserKnownHostsFile 'known/x' is not accepted", KNOWN),
    "CanonicalDomains a -b": ("CanonicalDomains 'a -b' is not accepted", PLAIN),
    "ProxyJump=-x": ("'-x' is not a jump host", JUMP_ALLOWED),
}
RUNS = [
    "ProxyCommand", "LocalCommand", "PermitLocalCommand", "KnownHostsCommand", "remotecommand", "PKCS11Provider",
    "SecurityKeyProvider", "XAuthLocation",
]  # fmt: skip


@pytest.mark.parametrize("text", TAKEN)
def test_settings_with_an_effect_here(text: str) -> None:
    assert setting(text, allow_exec=False) == TAKEN[text]


@pytest.mark.parametrize("text", NOT_TAKEN)
def test_settings_that_are_refused(text: str) -> None:
    for allow_exec in (False, True):
        with pytest.raises(Refused) as caught:
            setting(text, allow_exec=allow_exec)
        assert (str(caught.value), caught.value.allowed) == NOT_TAKEN[text]


@pytest.mark.parametrize("keyword", RUNS)
def test_what_runs_a_command_takes_consent(keyword: str) -> None:
    with pytest.raises(Refused) as caught:
        setting(f"{keyword}=x y", allow_exec=False)
    assert str(caught.value) == f"{keyword} runs a command on this machine"
    assert caught.value.allowed == "-J for a jump host, or --allow-exec"
    assert setting(f"{keyword}=x y", allow_exec=True) == (keyword, "x y")
    assert setting(f"{keyword}=None", allow_exec=True) is None


# --- whole files ---

COPIED = {
    "": "",
    "# a comment\n\n": "",
    "User me # who\n": "  User me\n",
    "Host a 'b c' !d\r\n  Port 1\r  User x": "host a 'b c' '!d'\n  Port 1\n  User x\n",
    "Match all\nMATCH host a user b": "match all\nmatch host a user b\n",
    "Match !originalhost a localuser b": "match '!originalhost' a localuser b\n",
    "Match canonical\nMatch final all": "match canonical\nmatch final all\n",
    "IdentityFile 'a # b'": "  IdentityFile 'a # b'\n",
    "ForwardAgent yes\nPort 1": "  Port 1\n",
}
INCLUDE = ("Include reads another file, which may run commands", "everything in one file, or --allow-exec")
MATCH = "Match all, canonical, final, host, localuser, originalhost, user"
EXEC = ("Match exec runs a command on this machine", "other criteria, or --allow-exec")
REFUSED = {
    "Include x": (1, *INCLUDE),
    "Port 1\n\ninclude=x": (3, *INCLUDE),
    "Match exec x": (1, *EXEC),
    "Match host a !EXEC=x": (1, *EXEC),
    "Match address x": (1, "Match address is not supported", MATCH),
    "Match user": (1, "Match user is not supported", MATCH),
    "Match all x": (1, "Match x is not supported", MATCH),
    "Host 'a": (1, "no closing quotation", "plain patterns"),
    "Host a\u2028b": (1, "'Host a\\u2028b' is not supported", KEYWORD),
    "ProxyCommand x": (1, "ProxyCommand runs a command on this machine", "-J for a jump host, or --allow-exec"),
}


@pytest.mark.parametrize("text", COPIED)
def test_of_a_file_only_what_has_an_effect_is_copied(text: str, tmp_path: Path) -> None:
    (tmp_path / "conf").write_text(text, newline="")
    assert ConfigFiles(allow_exec=False).text(str(tmp_path / "conf")) == COPIED[text]
    assert ConfigFiles(allow_exec=True).text(str(tmp_path / "conf")) == (tmp_path / "conf").read_bytes().decode()


@pytest.mark.parametrize("text", REFUSED)
def test_a_file_that_is_refused_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text(text, newline="")
    line, why, allowed = REFUSED[text]
    with pytest.raises(Refused) as caught:
        ConfigFiles(allow_exec=False).text(str(file))
    assert (str(caught.value), caught.value.allowed) == (f"{file}:{line}: {why}", allowed)
    assert ConfigFiles(allow_exec=True).text(str(file)) == text


def test_the_users_own_file_none_and_one_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    files = ConfigFiles(allow_exec=False)
    assert (files.text("none"), files.text("NONE")) == ("", "")
    for name in ("~/.ssh/config", "~nobody-of-that-name/x"):
        with pytest.raises(Refused, match=f"^-F {name}: ") as caught:
            files.text(name)
        assert caught.value.allowed == "a file that can be read"
    own = own_ssh_config.path()
    own.parent.mkdir()
    own.write_text("ProxyCommand x\n")
    (tmp_path / "link").symlink_to(own)
    assert (files.text("~/.ssh/config"), files.text(str(tmp_path / "link"))) == (None, None)
    (tmp_path / "other").write_text("Port 1\n")
    assert files.text("~/other") == "  Port 1\n"
    (tmp_path / "other").write_text("Port 2\n")
    assert files.text("~/other") == "  Port 1\n"
