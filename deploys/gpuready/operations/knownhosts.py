"""OpenSSH's known_hosts: look up a host, add a key, replace a key. Other lines are kept byte for byte.

paramiko's writer drops comments and markers, so this module edits the file line by line, atomically.
Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

import os
from dataclasses import dataclass
from pathlib import Path

from paramiko import PKey
from paramiko.hostkeys import HostKeys

from gpuready.core.errors import InventoryError
from gpuready.core.files import read_file, reason, replace_file

_MOST = 100_000_000


@dataclass(frozen=True)
class _Line:
    """One line. ``names`` is empty for comments and for lines that cannot be parsed."""

    text: str
    names: tuple[str, ...] = ()
    kind: str = ""
    key: str = ""
    marker: str = ""

    def is_for(self, host: str) -> bool:
        """Tell whether the line names the host, in plain text or hashed."""
        return any(_matches(name, host) for name in self.names)


class KnownHosts:
    """One known_hosts file. ``host`` has the form that ssh writes: ``host`` or ``[host]:port``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = [_parse(line) for line in _text(path).splitlines()]

    def kinds(self, host: str) -> list[str]:
        return [line.kind for line in self._lines if not line.marker and line.is_for(host)]

    def knows(self, host: str, key: PKey) -> bool:
        return any(line.key == key.get_base64() for line in self._lines if not line.marker and line.is_for(host))

    def revoked(self, host: str, key: PKey) -> bool:
        revoked = [line for line in self._lines if line.marker == "@revoked"]
        return any(line.key == key.get_base64() and line.is_for(host) for line in revoked)

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
        self._lines.append(_parse(line.strip()))

    def remove(self, host: str) -> None:
        """Remove the host from all lines without a marker. Other names on those lines stay."""
        if not self.kinds(host):
            return
        kept = [line for line in (_without(line, host) for line in self._lines) if line is not None]
        replace_file(self.path, "".join(f"{line.text}\n" for line in kept).encode("utf-8", "surrogateescape"), 0o600)
        self._lines = kept


def _text(path: Path) -> str:
    if not path.exists() or str(path) == os.devnull:
        return ""
    try:
        return read_file(path, _MOST).decode("utf-8", "surrogateescape")
    except OSError as e:
        raise InventoryError(f"{path}: cannot be read: {reason(e)}", remedy="see UserKnownHostsFile") from None


def _parse(text: str) -> _Line:
    words = text.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if text.lstrip().startswith("#") or len(words) < 3:
        return _Line(text)
    return _Line(text, tuple(words[0].split(",")), words[1], words[2], marker)


def _without(line: _Line, host: str) -> _Line | None:
    if line.marker or not line.is_for(host):
        return line
    names = [name for name in line.names if not _matches(name, host)]
    return _parse(line.text.replace(",".join(line.names), ",".join(names), 1)) if names else None


def _matches(name: str, host: str) -> bool:
    if name.startswith("|1|"):
        return HostKeys.hash_host(host, name) == name
    return name == host
