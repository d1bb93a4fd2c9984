"""What the failure tests share: proof that nothing changed, proof that a node is whole, and ways to break things."""

import fcntl
import os
import pty
import select
import socket
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from tests.lab import Machine, access, network, scale
from tests.lab.host import sh
from tests.system.harness import GPUREADY, Gpuready, Result

#: What goes on with the real nvidia-ctk in a script of :func:`another_ctk`.
REAL_CTK = 'exec /usr/bin/nvidia-ctk "$@"'
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
    places = "/run/gpuready-* /run/gpuready.?????? /tmp/gpuready* /tmp/tmp.* /etc/*/.gpuready* /etc/*/*/.gpuready*"
    return machine.run(f"ls -d {places} 2>/dev/null", check=False).stdout.split()


def problem(result: Result, host: str = "") -> str:
    """The host's one message, with its remedy; it stands in the report, and it is one line."""
    error = result.host(host)["error"]
    assert error is not None, result.explain()
    assert "\n" not in error["message"] and "Traceback" not in error["message"], error
    told = f"{error['message']} / {error['remedy']}"
    print(told)
    return told


def mends(gpuready: Gpuready, inventory: Path) -> Result:
    """The cause is gone: one apply closes what is left on each host, the next is one exec, no change."""
    result = gpuready("apply", "--yes", "--batch", "100%", inventory=inventory, code=0)
    assert {host["outcome"] for host in result.document["hosts"].values()} == {"changed"}, result.explain()
    settled(gpuready, inventory)
    return result


def settled(gpuready: Gpuready, inventory: Path) -> None:
    """Another apply finds nothing to do, with one exec a host."""
    again = gpuready("apply", "--yes", inventory=inventory, code=0)
    found = {(host["outcome"], host["execs"]) for host in again.document["hosts"].values()}
    assert found == {("ok", 1)}, again.explain()


def until(condition: Callable[[], object], seconds: float = 30, what: str = "") -> None:
    """Wait for something to come true."""
    limit = scale.Limit(seconds)
    while not condition():
        assert not limit.over(), f"not within {seconds:.0f} s of an idle machine: {what or condition}"
        time.sleep(0.02)


def extended(path: Path, hosts: Mapping[str, Mapping[str, object]] = {}, **variables: object) -> Path:
    """An inventory that gets other variables of hosts, which may be new, and of ``all`` (None takes one away)."""
    document = yaml.safe_load(path.read_text("utf-8"))
    _set(document["all"]["vars"], variables)
    for name, values in hosts.items():
        _set(document["all"]["hosts"].setdefault(name, {}), values)
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=200), "utf-8")
    return path


@contextmanager
def another_ctk(sh: Callable[[str], object], script: str) -> Iterator[None]:
    """Another nvidia-ctk before the real one on root's PATH; it is for `runtime configure` only."""
    path = "/usr/local/sbin/nvidia-ctk"
    sh(f"cat >{path} <<'X'\n#!/bin/sh\n[ \"$1\" = runtime ] || {REAL_CTK}\n{script}\nX\nchmod 755 {path}")
    try:
        yield
    finally:
        sh(f"rm -f {path}")


def _set(place: dict[str, object], values: Mapping[str, object]) -> None:
    for name, value in values.items():
        place[name] = value
        if value is None:
            del place[name]


def through(hop: Machine, config: Path, known: Path) -> str:
    """What ssh needs to go by that machine; its key is in a configuration file, which is written."""
    config.write_text(f"Host {hop.address}\n  IdentityFile {access.client_key()}\n", "utf-8")
    return f"-F {config} -o UserKnownHostsFile={known} -J gpu@{hop.address}"


def firewall(machine: Machine, *rule: str, chain: str = "INPUT", delete: bool = False) -> None:
    """A rule for what the machine receives or sends, set from outside, where no broken ssh is in the way."""
    space = network.namespace(machine.name).name
    sh("ip", "netns", "exec", space, "iptables", "-w", "-D" if delete else "-I", chain, *rule)


def swallow(machine: Machine, *, packets: bool) -> None:
    """Let every packet from and to the machine vanish without a word, or no more."""
    for chain in ("INPUT", "OUTPUT"):
        firewall(machine, "-j", "DROP", chain=chain, delete=not packets)


@contextmanager
def lossy(machine: Machine, share: float) -> Iterator[Callable[[], int]]:
    """Lose this share of the packets from and to the machine's SSH server; give how many were lost so far.

    netfilter chooses them at random. netem does the same, but the kernels of many build machines lack it.
    """
    random = ("-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP")
    rules = {chain: ("-p", "tcp", port, "22", *random) for chain, port in (("INPUT", "--dport"), ("OUTPUT", "--sport"))}
    for chain, rule in rules.items():
        firewall(machine, *rule, chain=chain)

    def lost() -> int:
        rows = sh("ip", "netns", "exec", network.namespace(machine.name).name, "iptables", "-w", "-nvxL").splitlines()
        return sum(int(row.split()[0]) for row in rows if "statistic" in row)

    try:
        yield lost
    finally:
        for chain, rule in rules.items():
            firewall(machine, *rule, chain=chain, delete=True)


def cable(machine: Machine, *, plugged: bool) -> None:
    """Pull the machine's network cable, or put it back."""
    sh("ip", "link", "set", network.link(machine.record.index), "up" if plugged else "down")
    if plugged:  # taking the link down removed the machine's default route
        space = network.namespace(machine.name).name
        sh("ip", "-n", space, "route", "replace", "default", "via", network.gateway(machine.record.index))


class Listener:
    """A TCP port of the lab's host that takes connections, as the kernel does, and never says a word."""

    def __init__(self) -> None:
        self._socket = socket.create_server((network.SERVER, 0))
        self.port = int(self._socket.getsockname()[1])
        self.close = self._socket.close

    @property
    def accepted(self) -> bool:
        """Whether anybody has connected so far."""
        return bool(select.select([self._socket], [], [], 0)[0])


#: asm-generic/ioctls.h; Python's termios lacks it.
_TIOCVHANGUP = 0x5437


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

    def hang_up(self) -> None:
        """The terminal goes, as a window that is closed: its processes get SIGHUP, and cannot write any more."""
        fcntl.ioctl(self._theirs, _TIOCVHANGUP)

    def unread(self) -> int:
        """Bytes that were typed and that nobody read."""
        return int.from_bytes(fcntl.ioctl(self._theirs, termios.FIONREAD, b"\0\0\0\0"), "little")

    def unchanged(self) -> bool:
        """Whether echo, line mode and all else are what they were before."""
        return termios.tcgetattr(self._theirs) == self.before


# Holds dpkg up until it is let go, so that there is a middle of the installation to hit, on machines fast or slow.
_HELD = """DPkg::Pre-Invoke { "touch /var/tmp/in-dpkg; \
timeout 100 sh -c 'until [ -e /var/tmp/go ]; do sleep 0.1; done'; rm /var/tmp/in-dpkg"; };
"""


def hold_dpkg(m: Machine) -> Path:
    """dpkg waits before it begins, until :func:`let_go`; the file that is returned exists while it does."""
    (m.root / "etc/apt/apt.conf.d/99held").write_text(_HELD)
    return m.root / "var/tmp/in-dpkg"


def let_go(m: Machine) -> None:
    (m.root / "var/tmp/go").touch()


def lock_is_free(m: Machine) -> bool:
    return m.run("flock -n /run/gpuready.lock true", check=False, timeout=20).returncode == 0


def idle(m: Machine) -> bool:
    """Whether no step of ours runs on the node."""
    return not m.run("systemctl -q list-units --no-legend 'gpuready-*'", check=False, timeout=20).stdout.strip()


def installations(m: Machine) -> int:
    """How often dpkg installed the toolkit."""
    return (m.root / "var/log/dpkg.log").read_text("utf-8").count(" install nvidia-container-toolkit:")
