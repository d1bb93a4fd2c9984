"""A host's key, taken from the first packets of an SSH connection; nobody logs in.

Where to connect, and under which name the key is looked up, is decided as the run itself does it: the address and port
of the inventory, then HostName, Port and UserKnownHostsFile of the user's ssh configuration.
"""

import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import paramiko

from gpuready.base.errors import UnreachableError
from gpuready.inventory import own_ssh_config
from gpuready.inventory.hosts import Connection
from gpuready.operations.connection import obstacle
from gpuready.operations.knownhosts import KnownHosts
from gpuready.operations.ssh import BoundedSocket

#: Seconds to connect, if the inventory says nothing; and seconds until the key is there.
CONNECT, _TIMEOUT = 10, 15.0
#: Keys are exchanged with so many hosts at once: that takes this machine's time. Hosts that are off only wait.
_EXCHANGES = threading.Semaphore(32)


@dataclass(frozen=True)
class Target:
    """Where the key is asked for; ``name`` is how known_hosts calls it."""

    address: str
    port: int
    known_hosts: tuple[Path, ...]
    """The files; the first one gets new keys."""
    timeout: int = CONNECT

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
    return Target(address, port, tuple(Path(file).expanduser() for file in files.split()),
                  connection.timeout or CONNECT)  # fmt: skip


def _ssh_config(connection: Connection) -> dict[str, str]:
    try:
        text = connection.config if connection.config is not None else own_ssh_config.text()
        found = paramiko.SSHConfig.from_text(text).lookup(connection.address)
    except (OSError, paramiko.SSHException) as e:
        raise UnreachableError(f"the ssh configuration of {connection.address} cannot be read: {e}") from None
    return {key: value for key, value in found.items() if isinstance(value, str)}


def fetch(where: Target, known: KnownHosts) -> paramiko.PKey:
    """The key that the host shows; of a kind that ``known`` can judge, if it has one."""
    try:
        with socket.create_connection((where.address, where.port), timeout=where.timeout) as sock, _EXCHANGES:
            transport = paramiko.Transport(BoundedSocket(sock))  # type: ignore[arg-type]
            try:
                known.prepare(transport, where.name)
                transport.start_client(timeout=_TIMEOUT)
                return transport.get_remote_server_key()
            finally:
                transport.close()
    except (OSError, EOFError, paramiko.SSHException) as e:
        raise UnreachableError(f"{where.name}: {obstacle(e)}", remedy="is it up, and is the address right?") from None
