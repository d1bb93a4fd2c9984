"""OpenSSH's known_hosts: judge a server's key, add a key, replace a key. Other lines are kept byte for byte.

This is the only reader: runs, jump hosts and ``trust`` all ask it. paramiko's reader knows no markers and no patterns,
and pyinfra's stops at the first line that paramiko cannot read. paramiko's writer drops comments and markers, so this
module edits the file line by line, atomically.
Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"; check_host_key() in OpenSSH's sshconnect.c.
"""

import functools
import hmac
import os
import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from paramiko import PKey, Transport

from gpuready.base.errors import InventoryError
from gpuready.base.files import read_file, reason, replace_file
from gpuready.operations import hostcert

_MOST = 100_000_000
_SPECIAL = re.compile(r"[*?!|]")


class Status(Enum):
    """What known_hosts says of a server's key."""

    known = "known"
    new = "new"
    changed = "CHANGED"
    revoked = "REVOKED"
    invalid = "INVALID"
    """A trusted authority signed its certificate, but the certificate does not prove the host's name."""


class Judgement(NamedTuple):
    """``why`` explains the status ``invalid``."""

    status: Status
    why: str = ""


@dataclass(frozen=True)
class _Line:
    """One line. ``names`` is empty for comments and for lines that cannot be parsed; ``key`` is kind and base64.

    ``plain``: the names in lower case, if none of them is a pattern or hashed.
    """

    text: str
    names: tuple[str, ...] = ()
    key: str = ""
    marker: str = ""
    plain: frozenset[str] = frozenset()

    def is_for(self, host: str) -> bool:
        """Tell whether the line names the host: in plain text, hashed or by patterns, and no pattern excludes it."""
        if self.plain:
            return host.lower() in self.plain
        denied = any(name.startswith("!") and _matches(name[1:], host) for name in self.names)
        return not denied and any(_matches(name, host) for name in self.names)


class KnownHosts:
    """Some known_hosts files; new keys go to the first. ``host`` is written as ssh does: ``host``, ``[host]:port``."""

    def __init__(self, *paths: Path) -> None:
        self.path = paths[0]
        self._first, *others = ([_parse(line) for line in _text(path).splitlines()] for path in paths)
        self._others = [line for lines in others for line in lines]

    def judge(self, host: str, key: PKey) -> Judgement:
        """Judge the key that a server has shown, with the certificate that came with it, in ssh's order."""
        shown, certificate = f"{key.get_name()} {key.get_base64()}", hostcert.read(key)
        signer = hostcert.signer(certificate) if certificate is not None else shown
        if {shown, signer} & self._marked("@revoked", host):
            return Judgement(Status.revoked)
        known = self._keys(host)
        if shown in known:
            return Judgement(Status.known)
        if certificate is not None and signer in self._marked("@cert-authority", host):
            why = hostcert.fault(certificate, key, _bare(host))
            return Judgement(Status.invalid if why else Status.known, why)
        return Judgement(Status.changed if known else Status.new)

    def prepare(self, transport: Transport, host: str) -> None:
        """Ask the server for a key that can be judged: a certificate if an authority is known, then known kinds."""
        kinds = {key.split()[0] for key in self._keys(host)}
        security = transport.get_security_options()
        types = sorted(security.key_types, key=lambda kind: _family(kind) not in kinds)
        certified = [hostcert.certified(kind) for kind in types if kind != "ssh-rsa"]
        security.key_types = [*(certified if self._marked("@cert-authority", host) else ()), *types]

    def _keys(self, host: str) -> set[str]:
        return {line.key for line in (*self._first, *self._others) if not line.marker and line.is_for(host)}

    def _marked(self, marker: str, host: str) -> set[str]:
        """The keys with this marker. As for ssh, a line for the host counts for all of its ports."""
        lines = [line for line in (*self._first, *self._others) if line.marker == marker]
        return {line.key for line in lines if line.is_for(host) or line.is_for(_bare(host))}

    def add(self, host: str, key: PKey) -> None:
        """Append the key in one write, so that two runs do not mix their lines."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = f"{host} {key.get_name()} {key.get_base64()}\n"
        if self.path.exists() and self.path.stat().st_size and not self.path.read_bytes().endswith(b"\n"):
            line = "\n" + line
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
        self._first.append(_parse(line.strip()))

    def remove(self, host: str) -> None:
        """Remove the host from all lines without a marker. Other names on those lines stay."""
        if not any(line.is_for(host) for line in self._first):
            return
        kept = [line for line in (_without(line, host) for line in self._first) if line is not None]
        replace_file(self.path, "".join(f"{line.text}\n" for line in kept).encode(errors="surrogateescape"), 0o600)
        self._first = kept


def _text(path: Path) -> str:
    if not path.exists() or str(path) == os.devnull:
        return ""
    try:
        return read_file(path, _MOST).decode(errors="surrogateescape")
    except OSError as e:
        raise InventoryError(f"{path}: cannot be read: {reason(e)}", remedy="see UserKnownHostsFile") from None


def _parse(text: str) -> _Line:
    words = text.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if text.lstrip().startswith("#") or len(words) < 3:
        return _Line(text)
    plain = () if _SPECIAL.search(words[0]) else words[0].lower().split(",")
    return _Line(text, tuple(words[0].split(",")), f"{words[1]} {words[2]}", marker, frozenset(plain))


def _without(line: _Line, host: str) -> _Line | None:
    """The line without the host; a pattern stays for other hosts."""
    if line.marker or not line.is_for(host):
        return line
    names = [name for name in line.names if name.lower() != host.lower() and not _is_hash_of(name, host)]
    if any(_matches(name, host) for name in names):
        names.insert(0, f"!{host}")
    return _parse(line.text.replace(",".join(line.names), ",".join(names), 1)) if names else None


def _matches(name: str, host: str) -> bool:
    return _is_hash_of(name, host) or hostcert.matches(name, host)


def _is_hash_of(name: str, host: str) -> bool:
    """Tell whether the name is ``|1|SALT|HASH`` of the host."""
    if not name.startswith("|1|"):
        return False
    try:
        salt, digest = map(b64decode, name[3:].split("|"))
    except ValueError:
        return False
    return hmac.compare_digest(digest, hmac.digest(salt, host.lower().encode(), "sha1"))


def _bare(host: str) -> str:
    """The host without its port."""
    return host[1:].partition("]")[0] if host.startswith("[") else host


def _family(kind: str) -> str:
    """rsa-sha2-512 is a signature of an ssh-rsa key."""
    return "ssh-rsa" if kind.startswith("rsa-sha2-") else kind


def stored(files: Iterable[str | Path]) -> KnownHosts:
    """Read these files, once until they change."""
    paths = tuple(Path(file).expanduser() for file in files)
    return _stored(paths, tuple(map(_stamp, paths)))


@functools.lru_cache(maxsize=16)
def _stored(paths: tuple[Path, ...], _stamps: tuple[object, ...]) -> KnownHosts:
    return KnownHosts(*paths)


def _stamp(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
