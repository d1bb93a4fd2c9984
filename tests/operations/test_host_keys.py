"""Host keys as ssh judges them: markers, patterns, cut lines and certificates, for hosts and jump hosts.

The servers are OpenSSH's on loopback ports; gpuready is the real executable. Each host of an inventory has a
known_hosts of its own.
"""

import getpass
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import pytest
import yaml
from paramiko.hostkeys import HostKeys

from gpuready.operations.knownhosts import Judgement, KnownHosts, Status
from tests.command import gpuready
from tests.lab import scale
from tests.lab.host import command, sh

#: What a run says of a host whose key it accepts: these servers let everyone in and run nothing.
ACCEPTED = "the node closed the session"
CUT = "other.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\n"


def keygen(path: Path) -> str:
    """Make a key; return the kind and the base64 of its public part."""
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


def certify(authority: Path, key: Path, *options: str, names: str = "localhost") -> None:
    """Sign the host key for these names; an option of ssh-keygen given here wins over the usual one."""
    usual = ["-V", "-1d:+1d", *(("-n", names) if names else ())]
    sh("ssh-keygen", "-q", "-s", authority, "-I", "test", "-h", *usual, *options, key.with_suffix(".pub"))


@contextmanager
def served(folder: Path, key: Path) -> Iterator[int]:
    """An sshd with this key and its certificate, if there is one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    options = {
        "ListenAddress": "127.0.0.1", "Port": port, "HostKey": key, "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": folder / ".ssh/id_ed25519.pub", "StrictModes": "no", "MaxStartups": "1000:30:2000",
        "PermitRootLogin": "yes", "ForceCommand": "false", "SetEnv": f"HOME={folder}",
    }  # fmt: skip
    certificate = key.with_name(f"{key.name}-cert.pub")
    if certificate.exists():
        options["HostCertificate"] = certificate
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    words = [command("sshd", "openssh-server"), "-D", "-e", "-f", "/dev/null", *words]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None and "listening" in server.stderr.readline()
            yield port
        finally:
            server.terminate()


@dataclass
class World:
    """Servers with a plain key, a certificate and an expired one; all keys by name."""

    folder: Path
    ports: dict[str, int]
    keys: dict[str, str]

    def name(self, server: str, address: str = "localhost") -> str:
        return f"[{address}]:{self.ports[server]}"

    def run(self, verb: str, *options: str, hosts: dict[str, tuple[str, str]]) -> Any:
        """Run the verb over hosts: the server of each and its known_hosts."""
        document: dict[str, Any] = {"hosts": {}, "vars": {"gpuready": {}, "ansible_user": getpass.getuser()}}
        for name, (server, text) in hosts.items():
            self.known(name).write_text(text)
            jump, _, target = server.rpartition(">")
            arguments = f"-o UserKnownHostsFile={self.known(name)}"
            if jump:
                arguments += f" -J 127.0.0.1:{self.ports[jump]}"
            document["hosts"][name] = {
                "ansible_host": "localhost",
                "ansible_port": self.ports[target],
                "ansible_ssh_common_args": arguments,
            }
        path = self.folder / "hosts.yaml"
        path.write_text(yaml.safe_dump({"all": document}))
        environment = {**os.environ, "HOME": str(self.folder)}
        environment.pop("SSH_AUTH_SOCK", None)
        return gpuready(verb, "-i", path, *options, env=environment, timeout=scale.seconds(180))

    def messages(self, *options: str, hosts: dict[str, tuple[str, str]]) -> dict[str, str]:
        """The error of each host after a plan."""
        done = self.run("plan", "--parallel", "8", "--output", "json", *options, hosts=hosts)
        assert done.returncode == 4, done
        return {name: host["error"]["message"] for name, host in json.loads(done.stdout)["hosts"].items()}

    def known(self, host: str) -> Path:
        return self.folder / f"known_{host}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("sshd")
    keys = {name: keygen(folder / name) for name in ("ca", "other", "plain", "signed", "expired")}
    (folder / ".ssh").mkdir()
    keygen(folder / ".ssh/id_ed25519")
    certify(folder / "ca", folder / "signed", names="localhost,127.0.0.1")
    certify(folder / "ca", folder / "expired", "-V", "-2d:-1d")
    with ExitStack() as stack:
        ports = {name: stack.enter_context(served(folder, folder / name)) for name in ("plain", "signed", "expired")}
        yield World(folder, ports, keys)


def cases(world: World) -> dict[str, tuple[str, str, str, str]]:
    """Server, known_hosts, and what a plan says in strict and in accept-new; nothing if it is the same."""
    plain, keys = world.name("plain"), world.keys
    right, wrong = f"{plain} {keys['plain']}\n", f"{plain} {keys['other']}\n"
    authority = f"@cert-authority *.corp {keys['ca']}\n"
    hop = f"{world.name('plain', '127.0.0.1')} "
    ours = f"@cert-authority local*,127.* {keys['ca']}\n"
    hashed = HostKeys.hash_host(plain)
    changed, revoked = "has changed", "is marked @revoked"
    return {
        "authority_then_right": ("plain", authority + right, ACCEPTED, ""),
        "authority_then_wrong": ("plain", authority + wrong, changed, ""),
        "cut_then_right": ("plain", CUT + right, ACCEPTED, ""),
        "cut_then_wrong": ("plain", CUT + wrong, changed, ""),
        "cut_itself": ("plain", f"{plain} ssh-ed25519 AAAAC3NzaC1lZ\n", changed, ""),
        "revoked_and_known": ("plain", right + f"@revoked {right}", revoked, ""),
        "revoked_alone": ("plain", f"@revoked {right}", revoked, ""),
        "revoked_by_pattern": ("plain", f"@revoked *,!x {keys['plain']}\n", revoked, ""),
        "revoked_by_hash": ("plain", f"@revoked {hashed} {keys['plain']}\n{right}", revoked, ""),
        "revoked_without_port": ("plain", f"@revoked LocalHos? {keys['plain']}\n", revoked, ""),
        "revoked_elsewhere": ("plain", f"@revoked *,!{plain},!localhost {keys['plain']}\n{right}", ACCEPTED, ""),
        "known_by_pattern": ("plain", f"[local*]:* {keys['plain']}\n", ACCEPTED, ""),
        "excluded": ("plain", f"*,!{plain} {keys['plain']}\n", "is not known", ACCEPTED),
        "strange_hash": ("plain", f"|1|x|y ssh-ed25519 A\n{right}", ACCEPTED, ""),
        "new": ("plain", "", "is not known", ACCEPTED),
        "certified": ("signed", ours, ACCEPTED, ""),
        "certified_by_another": ("signed", authority, "is not known", ACCEPTED),
        "certified_anew": ("signed", f"{world.name('signed')} {keys['other']}\n{ours}", ACCEPTED, ""),
        "authority_revoked": ("signed", f"{ours}@revoked * {keys['ca']}\n", revoked, ""),
        "no_certificate": ("plain", ours, "is not known", ACCEPTED),
        "expired": ("expired", ours, "does not prove its name: it has expired", ""),
        "expired_and_known": ("expired", f"{ours}{world.name('expired')} {keys['expired']}\n", ACCEPTED, ""),
        "jump_wrong": ("plain>signed", f"{authority}{hop}{keys['other']}\n{ours}", changed, ""),
        "jump_revoked": ("plain>signed", f"{hop}{keys['plain']}\n@revoked {hop}{keys['plain']}\n{ours}", revoked, ""),
        "jump_certified": ("signed>plain", ours + right, ACCEPTED, ""),
        "behind_revoked": ("signed>plain", f"{ours}{right}@revoked * {keys['plain']}\n", revoked, ""),
    }


@pytest.mark.fault("host-key-changed", "host-key-revoked", "jump-host-key", "host-key-unknown")
@pytest.mark.parametrize("policy", ["strict", "accept-new"])
def test_one_reader_judges_every_host_key(world: World, policy: str) -> None:
    wanted = cases(world)
    hosts = {name: (server, text) for name, (server, text, *_) in wanted.items()}
    found = world.messages("--host-keys", policy, hosts=hosts)
    said = {name: new if new and policy == "accept-new" else strict for name, (_, _, strict, new) in wanted.items()}
    assert {name: text for name, text in found.items() if said[name] not in text} == {}
    stored = {name for name, (_, text) in hosts.items() if world.known(name).read_text() != text}
    assert stored == {name for name in said if "not known" in wanted[name][2] and policy == "accept-new"}
    hops = {name for name, text in found.items() if "the jump host" in text}
    assert hops == {"jump_wrong", "jump_revoked"}


def test_trust_judges_as_a_run_does(world: World) -> None:
    wanted = {name: case for name, case in cases(world).items() if ">" not in case[0]}
    hosts = {name: (server, text) for name, (server, text, *_) in wanted.items()}
    words = {ACCEPTED: "known", "has changed": "CHANGED", "is marked @revoked": "REVOKED", "is not known": "new"}
    done = world.run("trust", "--yes", hosts=hosts)
    assert done.returncode == 4, done
    rows = dict(line.split()[:2] for line in done.stdout.splitlines() if "ssh-ed25519" in line)
    assert rows == {name: words.get(case[2], "INVALID") for name, case in wanted.items()}
    again = world.run("trust", "--yes", "--replace", hosts={"expired": hosts["expired"]})
    assert again.returncode == 0 and "1 key stored" in again.stdout, again
    assert f"{world.name('expired')} {world.keys['expired']}\n" in world.known("expired").read_text()


@pytest.mark.parametrize(
    ("names", "options", "why"),
    [
        ("localhost", (), ""),
        ("*host", (), ""),
        ("gpu1,gpu2", (), "it is for gpu1, gpu2"),
        ("", (), "it is for no name"),
        ("localhost", ("-V", "+1h:+2h"), "it is not valid yet"),
        ("localhost", ("-V", "-2h:-1h"), "it has expired"),
        ("localhost", ("-O", "critical:x=y"), "it has critical options"),
    ],
)
def test_a_certificate_proves_its_names_for_a_time(
    names: str, options: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    authority, _ = keygen(tmp_path / "ca"), keygen(tmp_path / "host")
    certify(tmp_path / "ca", tmp_path / "host", *options, names=names)
    assert judged(tmp_path, authority) == Judgement(Status.invalid if why else Status.known, why)


def judged(folder: Path, authority: str) -> Judgement:
    """Judge the certificate of ``host`` there by this authority."""
    key = paramiko.Ed25519Key.from_private_key_file(str(folder / "host"))
    key.load_certificate(str(folder / "host-cert.pub"))
    (folder / "known").write_text(f"@cert-authority localhost {authority}\n")
    return KnownHosts(folder / "known").judge("localhost", key)


def test_a_certificate_for_users_or_with_another_key_proves_nothing(tmp_path: Path) -> None:
    authority, _, _ = (keygen(tmp_path / name) for name in ("ca", "host", "other"))
    sh("ssh-keygen", "-q", "-s", tmp_path / "ca", "-I", "test", "-n", "localhost", tmp_path / "host.pub")
    assert judged(tmp_path, authority) == Judgement(Status.invalid, "it is a user's certificate")
    certify(tmp_path / "ca", tmp_path / "other")
    (tmp_path / "other-cert.pub").rename(tmp_path / "host-cert.pub")
    assert judged(tmp_path, authority) == Judgement(Status.invalid, "it is for another key")


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_kinds_of_authorities(kind: str, tmp_path: Path) -> None:
    keygen(tmp_path / "host")
    sh("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", tmp_path / "ca")
    authority = " ".join((tmp_path / "ca.pub").read_text().split()[:2])
    certify(tmp_path / "ca", tmp_path / "host")
    assert judged(tmp_path, authority) == Judgement(Status.known)
    if kind == "rsa":
        certify(tmp_path / "ca", tmp_path / "host", "-t", "ssh-rsa")
        assert judged(tmp_path, authority) == Judgement(Status.invalid, "it is signed with SHA-1")


def test_replacing_a_key_keeps_a_pattern_for_other_hosts(tmp_path: Path) -> None:
    path, (old, new) = tmp_path / "known", (paramiko.ECDSAKey.generate() for _ in range(2))
    line = f"{old.get_name()} {old.get_base64()}\n"
    path.write_text(f"n1,*.corp {line}")
    known = KnownHosts(path)
    known.remove("n1.corp")
    known.add("n1.corp", new)
    assert path.read_text().splitlines()[0] == f"!n1.corp,n1,*.corp {line.rstrip()}"
    for each in (known, KnownHosts(path)):
        found = {host: each.judge(host, old).status.name for host in ("n1", "n1.corp", "n2.corp", "n2")}
        assert found == {"n1": "known", "n1.corp": "changed", "n2.corp": "known", "n2": "new"}


def test_a_revocation_in_the_second_file_counts(tmp_path: Path) -> None:
    key = paramiko.ECDSAKey.generate()
    line = f"n1 {key.get_name()} {key.get_base64()}\n"
    (tmp_path / "one").write_text(line)
    (tmp_path / "two").write_text(f"@revoked {line}")
    assert KnownHosts(tmp_path / "one").judge("n1", key).status is Status.known
    assert KnownHosts(tmp_path / "one", tmp_path / "two").judge("n1", key).status is Status.revoked
