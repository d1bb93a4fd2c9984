"""A host's key, taken from the first packets of an SSH connection; nobody logs in.

Where to connect, and under which name the key is looked up, is decided as the run itself does it: the address and port
of the inventory, then HostName, Port and UserKnownHostsFile of the user's ssh configuration.
"""

import socket
from dataclasses import dataclass
from pathlib import Path

import paramiko

from gpuready.core.errors import UnreachableError
from gpuready.inventory import own_ssh_config
from gpuready.inventory.hosts import Connection
from gpuready.operations.ssh import BoundedSocket

_TIMEOUT = 15.0


@dataclass(frozen=True)
class Target:
    """Where the key is asked for; ``name`` is how known_hosts calls it."""

    address: str
    port: int
    known_hosts: Path

    @property
    def name(self) -> str:
        """``host``, or ``[host]:port``."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"


def target(connection: Connection) -> Target:
    """Resolve a connection; UnreachableError where a jump host stands before it."""
    found = _ssh_config(connection)
    options = {keyword.lower(): value for keyword, value in connection.options}
    jump = connection.jump or found.get("proxyjump") or found.get("proxycommand") or options.get("proxycommand")
    address = found.get("hostname", connection.address)
    port = connection.port or int(found.get("port", "22"))
    if jump and jump != "none":
        raise UnreachableError(
            f"{address} is behind {jump}, where gpuready trust does not log in",
            remedy=f"compare the fingerprint there, then store it: ssh {jump} ssh-keyscan -p {port} {address}",
        )
    files = options.get("userknownhostsfile") or found.get("userknownhostsfile") or "~/.ssh/known_hosts"
    return Target(address, port, Path(files.split()[0]).expanduser())


def _ssh_config(connection: Connection) -> dict[str, str]:
    try:
        text = connection.config if connection.config is not None else own_ssh_config.text()
        found = paramiko.SSHConfig.from_text(text).lookup(connection.address)
    except (OSError, paramiko.SSHException) as e:
        raise UnreachableError(f"the ssh configuration of {connection.address} cannot be read: {e}") from None
    return {key: value for key, value in found.items() if isinstance(value, str)}


def fetch(where: Target, known: list[str]) -> paramiko.PKey:
    """The key that the host shows; of a type in ``known`` if it has one, so that a known key is recognised."""
    try:
        with socket.create_connection((where.address, where.port), timeout=_TIMEOUT) as sock:
            transport = paramiko.Transport(BoundedSocket(sock))  # type: ignore[arg-type]
            try:
                _prefer(transport, known)
                transport.start_client(timeout=_TIMEOUT)
                return transport.get_remote_server_key()
            finally:
                transport.close()
    except (OSError, EOFError, paramiko.SSHException) as e:
        reason = getattr(e, "strerror", None) or str(e) or type(e).__name__
        raise UnreachableError(f"{where.name}: {reason}", remedy="is it up, and is the address right?") from None


def _prefer(transport: paramiko.Transport, known: list[str]) -> None:
    security = transport.get_security_options()
    types = list(security.key_types)
    wanted = [kind for kind in types if _family(kind) in known]
    if wanted:
        security.key_types = [*wanted, *(kind for kind in types if kind not in wanted)]


def _family(kind: str) -> str:
    """rsa-sha2-512 is a signature of an ssh-rsa key."""
    return "ssh-rsa" if kind.startswith("rsa-sha2-") else kind
