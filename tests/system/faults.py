"""What the failure tests share: proof that nothing changed, proof that a node is whole, and ways to break things."""

from __future__ import annotations

import fcntl
import os
import pty
import socket
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import paramiko
import yaml

from tests.lab import Machine, network, scale
from tests.lab.host import sh
from tests.system.harness import GPUREADY, Gpuready, Result

# Where a converge leaves its marks, but for transcripts, copies and records, which a failure may leave.
_WATCHED = "/etc /usr/bin /var/lib/dpkg/status /var/lib/dpkg/info /var/lib/gpuready /run/systemd/transient"
_IGNORED = "-path /var/lib/gpuready/tx -prune -o -path /var/lib/gpuready/backup -prune -o -name '*.ours' -prune -o"
_IGNORED += " -name last-apply.json -prune -o"


def footprint(machine: Machine) -> dict[str, str]:
    """Every file that a converge could touch, with its inode, size and time of change."""
    script = f"find {_WATCHED} {_IGNORED} ! -type d -printf '%p\\t%i %s %C@\\n' 2>/dev/null"
    rows = machine.run(script, check=False).stdout.splitlines()
    return dict(row.split("\t", 1) for row in rows)


def leftovers(machine: Machine) -> list[str]:
    """Temporary files of ours that nobody needs any more."""
    script = (
        "ls -d /run/gpuready-* /run/gpuready.?????? /tmp/gpuready* /tmp/tmp.* /etc/*/.gpuready* /etc/*/*/.gpuready*"
    )
    return machine.run(f"{script} 2>/dev/null", check=False).stdout.split()


def problem(result: Result, host: str = "") -> str:
    """The host's one message, with its remedy; it stands in the report, and it is one line."""
    error = result.host(host)["error"]
    assert error is not None, result.explain()
    assert "\n" not in error["message"] and "Traceback" not in error["message"], error
    return f"{error['message']} / {error['remedy']}"


def mends(gpuready: Gpuready, inventory: Path, *, already: bool = False) -> Result:
    """The cause is gone: one apply closes what is left (``already``: nothing is), the next is one exec, no change."""
    result = gpuready("apply", "--yes", "--batch", "100%", inventory=inventory)
    assert result.code == 0, result.explain()
    wanted = {"ok"} if already else {"changed"}
    assert {host["outcome"] for host in result.document["hosts"].values()} == wanted, result.explain()
    settled(gpuready, inventory)
    return result


def settled(gpuready: Gpuready, inventory: Path) -> None:
    """Another apply finds nothing to do, with one exec a host."""
    again = gpuready("apply", "--yes", inventory=inventory)
    assert again.code == 0, again.explain()
    assert {(host["outcome"], host["execs"]) for host in again.document["hosts"].values()} == {("ok", 1)}, (
        again.explain()
    )


def until(condition: Callable[[], object], seconds: float = 30, what: str = "") -> None:
    """Wait for something to come true."""
    limit = scale.Limit(seconds)
    while not condition():
        assert not limit.over(), f"not within {seconds:.0f} s of an idle machine: {what or condition}"
        time.sleep(0.02)


def inventory_file(
    path: Path, base: Path, hosts: dict[str, dict[str, object]] | None = None, **variables: object
) -> Path:
    """A copy of an inventory with more hosts and other variables of ``all`` (None takes one away)."""
    document = yaml.safe_load(base.read_text("utf-8"))
    document["all"]["hosts"].update(hosts or {})
    document["all"]["vars"].update(variables)
    document["all"]["vars"] = {key: value for key, value in document["all"]["vars"].items() if value is not None}
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=200), "utf-8")
    return path


def firewall(machine: Machine, *rule: str, delete: bool = False) -> None:
    """A rule for what the machine receives, set from outside, where no broken ssh is in the way."""
    space = network.namespace(machine.name).name
    sh("ip", "netns", "exec", space, "iptables", "-w", "-D" if delete else "-I", "INPUT", *rule)


def swallow(machine: Machine, *, packets: bool) -> None:
    """Let every packet from and to the machine vanish without a word, or no more."""
    space = network.namespace(machine.name).name
    for chain in ("INPUT", "OUTPUT"):
        sh("ip", "netns", "exec", space, "iptables", "-w", "-I" if packets else "-D", chain, "-j", "DROP")


def cable(machine: Machine, *, plugged: bool) -> None:
    """Pull the machine's network cable, or put it back."""
    sh("ip", "link", "set", network.link(machine.record.index), "up" if plugged else "down")
    if plugged:  # taking the link down removed the machine's default route
        space = network.namespace(machine.name).name
        sh("ip", "-n", space, "route", "replace", "default", "via", network.gateway(machine.record.index))


class Listener:
    """A TCP port of the lab's host that accepts connections, counts them, and never says a word."""

    def __init__(self) -> None:
        self._socket = socket.create_server((network.SERVER, 0))
        self.port = int(self._socket.getsockname()[1])
        self.accepted: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection = self._socket.accept()[0]
                self.accepted.append(connection)
                self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        """What is done with a connection: nothing."""

    def close(self) -> None:
        """Refuse from now on."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self.accepted:
            connection.close()


class Hanging(Listener):
    """An SSH server that lets everyone in, takes every command, and answers none."""

    def __init__(self) -> None:
        self.key = paramiko.RSAKey.generate(2048)
        super().__init__()

    @property
    def known(self) -> str:
        """Its line of known_hosts."""
        return f"[{network.SERVER}]:{self.port} {self.key.get_name()} {self.key.get_base64()}\n"

    def serve(self, connection: socket.socket) -> None:
        """Up to the command, all is well."""
        transport = paramiko.Transport(connection)
        transport.add_server_key(self.key)
        transport.start_server(server=_Open())


class _Open(paramiko.ServerInterface):
    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        return True


class Terminal:
    """A pseudo-terminal that a run has as its own, controlling terminal included, and what is shown there."""

    def __init__(self, home: Path) -> None:
        self.home, self.shown = home, ""
        self._ours, self._theirs = pty.openpty()
        self.before = termios.tcgetattr(self._theirs)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self._ours, 65536):
                self.shown += data.decode("utf-8", "replace")

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Begin a run of the command line."""
        env = {key: value for key, value in os.environ.items() if key not in ("SSH_AUTH_SOCK", "NO_COLOR")}
        return subprocess.Popen(
            [GPUREADY, *args],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(self._theirs, termios.TIOCSCTTY, 0),
            cwd=self.home,
            env={**env, "HOME": str(self.home), "TERM": "xterm"},
        )

    def says(self, text: str) -> bool:
        """Whether that was shown."""
        return text in self.shown

    def type(self, text: str) -> None:
        """What somebody types."""
        os.write(self._ours, text.encode())

    def unread(self) -> int:
        """Bytes that were typed and that nobody read."""
        return int.from_bytes(fcntl.ioctl(self._theirs, termios.FIONREAD, b"\0\0\0\0"), "little")

    def unchanged(self) -> bool:
        """Whether echo, line mode and all else are what they were before."""
        return termios.tcgetattr(self._theirs) == self.before
