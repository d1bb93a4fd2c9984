"""operations/knownhosts.py itself: which line is for which host, what is asked of a server, how the file changes."""

import os
from pathlib import Path
from unittest.mock import Mock

import paramiko
import pytest
from paramiko.hostkeys import HostKeys

from gpuready.base.errors import InventoryError
from gpuready.operations import knownhosts
from gpuready.operations.knownhosts import Judgement, KnownHosts, Status, stored

KEY, OTHER = (paramiko.ECDSAKey.generate() for _ in range(2))
RSA = paramiko.RSAKey.generate(1024)


def text(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.get_base64()}"


def known(folder: Path, *lines: str) -> KnownHosts:
    (folder / "known").write_text("".join(f"{line}\n" for line in lines))
    return KnownHosts(folder / "known")


#: n1 with a fixed salt: each worker of the tests must collect the same names.
HASHED = HostKeys.hash_host("n1", "|1|HaTEJS+2S0mZI3XpQSLBWwv+06U=|yiJkulrgCE2O/HOL0i7IpYlhrUg=")
#: The names of a line -> hosts that it is for, and hosts that it is not for.
NAMES = {
    "n1": ("n1 N1", "n2 n1x xn1 [n1]:22"),
    "N1,n2": ("n1 n2", "n1,n2"),
    "[n1]:2222": ("[n1]:2222", "n1 [n1]:22"),
    "*": ("n1 [n1]:22", ""),
    "n?": ("n1 N2", "n n12"),
    "*.corp,!x.corp": ("a.corp", "x.corp corp"),
    "!x.corp,*.corp": ("a.corp", "x.corp"),
    "!n1": ("", "n1 n2"),
    HASHED: ("n1 N1", "n2"),
    "|1|x": ("", "n1"),
    "|1|AAAA|AAAA": ("", "n1"),
    "|2|AAAA|AAAA": ("", "n1"),
    "|1|A|A": ("", "n1"),
}


@pytest.mark.parametrize("names", NAMES)
def test_which_hosts_a_line_is_for(names: str, tmp_path: Path) -> None:
    mine, others = (hosts.split() for hosts in NAMES[names])
    judge = known(tmp_path, f"{names} {text(KEY)} a comment").judge
    assert {host: judge(host, KEY) for host in mine} == dict.fromkeys(mine, Judgement(Status.known, ""))
    assert {host: judge(host, OTHER).status for host in mine} == dict.fromkeys(mine, Status.changed)
    assert {host: judge(host, KEY).status for host in others} == dict.fromkeys(others, Status.new)


def test_lines_that_say_nothing(tmp_path: Path) -> None:
    lines = [
        "",
        "#n1 " + text(KEY),
        "  # n1 " + text(KEY),
        "n1 ecdsa",
        "@revoked",
        "@revoked n1 x",
        "n1",
        f"#x,n1 {text(KEY)}",
        f" #x,n1 {text(KEY)}",
    ]
    assert known(tmp_path, *lines).judge("n1", KEY).status is Status.new
    assert known(tmp_path, *lines, f" n1\t{text(KEY)}").judge("n1", KEY).status is Status.known


def test_a_marker_counts_for_every_port_and_others_do_not(tmp_path: Path) -> None:
    revoked = known(tmp_path, f"@revoked n1 {text(KEY)}", f"* {text(KEY)}")
    for host in ("n1", "[n1]:2222", "N1"):
        assert revoked.judge(host, KEY).status is Status.revoked
    assert revoked.judge("[n2]:22", KEY).status is Status.known
    port = known(tmp_path, f"@revoked [n1]:22 {text(KEY)}")
    assert [port.judge(host, KEY).status for host in ("[n1]:22", "[n1]:23", "n1")] == [
        Status.revoked,
        Status.new,
        Status.new,
    ]
    assert known(tmp_path, f"@revoked 1 {text(KEY)}").judge("n1", KEY).status is Status.new
    strange = known(tmp_path, f"@strange n1 {text(KEY)}", f"@cert-authority n1 {text(KEY)}")
    assert strange.judge("n1", KEY).status is Status.new


def test_keys_of_all_files_count_and_a_missing_one_is_empty(tmp_path: Path) -> None:
    (tmp_path / "two").write_text(f"n2 {text(KEY)}")
    hosts = KnownHosts(tmp_path / "one", Path(os.devnull), tmp_path / "two")
    assert [hosts.judge(name, KEY).status for name in ("n1", "n2")] == [Status.new, Status.known]
    assert hosts.path == tmp_path / "one"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InventoryError) as caught:
        KnownHosts(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: cannot be read: ")
    assert caught.value.remedy == "see UserKnownHostsFile"


def test_a_file_that_is_not_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    line = b"caf\xe9 ssh-x AAAA caf\xe9\nn1 " + text(KEY).encode() + b"\n"
    (tmp_path / "known").write_bytes(line)
    KnownHosts(tmp_path / "known").remove("n1")
    assert (tmp_path / "known").read_bytes() == b"caf\xe9 ssh-x AAAA caf\xe9\n"


# --- what is asked of a server ---


def asked(hosts: KnownHosts, name: str, *types: str) -> list[str]:
    options = Mock(key_types=types)
    hosts.prepare(Mock(get_security_options=Mock(return_value=options)), name)
    found: list[str] = options.key_types
    return found


def test_known_kinds_are_asked_for_first(tmp_path: Path) -> None:
    types = ("ssh-ed25519", KEY.get_name(), "rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
    hosts = known(tmp_path, f"n1 {text(KEY)}", f"n2 {text(RSA)}", f"@revoked n3 {text(KEY)}")
    assert asked(hosts, "n1", *types) == [types[1], types[0], *types[2:]]
    assert asked(hosts, "n2", *types) == [*types[2:], *types[:2]]
    assert asked(hosts, "n3", *types) == asked(hosts, "n4", *types) == [*types]


def test_a_certificate_is_asked_for_where_an_authority_is_known(tmp_path: Path) -> None:
    hosts = known(tmp_path, f"@cert-authority *.corp {text(KEY)}", f"n1.corp {text(RSA)}")
    assert asked(hosts, "[n1.corp]:22", "ssh-ed25519", "ssh-rsa") == [
        "ssh-ed25519-cert-v01@openssh.com",
        "ssh-ed25519",
        "ssh-rsa",
    ]
    assert asked(hosts, "n1.corp", "ssh-ed25519", "rsa-sha2-512")[0] == "rsa-sha2-512-cert-v01@openssh.com"


# --- how the file changes ---


def test_keys_are_added_on_lines_of_their_own(tmp_path: Path) -> None:
    hosts = KnownHosts(path := tmp_path / "home" / "ssh" / "known")
    hosts.add("n1", KEY)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_text() == f"n1 {text(KEY)}\n"
    path.write_text("# mine, without an end")
    hosts.add("[n2]:22", OTHER)
    hosts.add("n3", OTHER)
    assert path.read_text() == f"# mine, without an end\n[n2]:22 {text(OTHER)}\nn3 {text(OTHER)}\n"
    assert [hosts.judge(name, OTHER).status for name in ("n1", "[n2]:22", "n3", "n4")] == [
        Status.changed,
        Status.known,
        Status.known,
        Status.new,
    ]
    path.write_text("")
    hosts.add("n4", KEY)
    assert path.read_text() == f"n4 {text(KEY)}\n"


REMOVED = {
    "n1": None,
    "N1": None,
    "n1,n2": "n2",
    "n2,N1,n3": "n2,n3",
    "n*": "!n1,n*",
    "n1,n*": "!n1,n*",
    "*,!n1": "*,!n1",
    "n2": "n2",
    HASHED: None,
}


@pytest.mark.parametrize("names", REMOVED)
def test_a_host_is_removed_and_all_else_stays(names: str, tmp_path: Path) -> None:
    rest = ["# n1 is ours", "", f"@revoked n1 {text(OTHER)}", "n1 cut", f"other {text(KEY)}  with n1"]
    hosts = known(tmp_path, *rest[:2], f"{names} {text(KEY)} of {names}", *rest[2:])
    hosts.remove("n1")
    left = REMOVED[names]
    lines = [*rest[:2], *([f"{left} {text(KEY)} of {names}"] if left else []), *rest[2:]]
    assert (tmp_path / "known").read_text() == "".join(f"{line}\n" for line in lines)
    assert hosts.judge("n1", KEY).status is Status.new and hosts.judge("other", KEY).status is Status.known
    assert hosts.judge("n1", OTHER).status is Status.revoked


def test_a_file_without_the_host_is_not_written(tmp_path: Path) -> None:
    hosts = known(tmp_path, f"n2 {text(KEY)}")
    (tmp_path / "known").unlink()
    hosts.remove("n1")
    assert not (tmp_path / "known").exists()


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    empty = stored(["~/known"])
    assert stored([tmp_path / "known"]) is empty and empty.path == tmp_path / "known"
    (tmp_path / "known").write_text(f"n1 {text(KEY)}\n")
    once = stored(["~/known"])
    assert once is not empty and stored(["~/known"]) is once and once.judge("n1", KEY).status is Status.known
    os.utime(tmp_path / "known", ns=(1, 1))
    assert stored(["~/known"]) is not once
    assert knownhosts._stamp(tmp_path / "known") != knownhosts._stamp(tmp_path)
