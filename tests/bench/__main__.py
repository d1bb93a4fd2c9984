"""./dev bench [N]: execs, wall and CPU time of plan and of a converged apply over N loopback hosts.

The floor is the same connection with one exec of ``true``: pyinfra's connector, the same pool and sshd, one run.
All N hosts are one sshd on loopback with a key made for this run. Figures are of this machine; quote the ratios.
"""

import getpass
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyinfra.api.host import Host

from gpuready.contract.component import Disruption
from gpuready.inventory.hosts import HostEntry, load
from gpuready.model import probe
from gpuready.operations.transport import ask
from gpuready.result.model import Run
from gpuready.run import converge
from gpuready.run.access import Access
from gpuready.run.fleet import Fleet
from tests.bench import startup
from tests.lab import scale
from tests.lab.host import LabError, command


@contextmanager
def _sshd(folder: Path, path: str) -> Iterator[int]:
    """An sshd of our own on a free loopback port, for the user who runs this."""
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "client.pub", folder / "authorized")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    options = {
        "ListenAddress": "127.0.0.1", "Port": port, "HostKey": folder / "host", "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": folder / "authorized", "StrictModes": "no", "MaxStartups": "1000:30:2000",
        "PermitRootLogin": "yes",
    }  # fmt: skip
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    server = subprocess.Popen([path, "-D", "-e", "-f", "/dev/null", *words], stderr=subprocess.DEVNULL)
    try:
        _await(port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _await(port: int) -> None:
    limit = scale.Limit(10)
    while not limit.over():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit("bench: sshd does not answer")


def _inventory(folder: Path, port: int, count: int) -> list[HostEntry]:
    key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {' '.join(key)}\n")
    (folder / "bench.yaml").write_text(
        f"all:\n  hosts:\n    bench[001:{count:03d}]: {{ansible_host: 127.0.0.1}}\n  vars:\n"
        f"    ansible_port: {port}\n    ansible_user: {getpass.getuser()}\n"
        f"    ansible_ssh_private_key_file: {folder}/client\n"
        f"    ansible_ssh_common_args: -o UserKnownHostsFile={folder}/known\n"
        "    gpuready: {ldso: off, hardware: {gpus: none}}\n"
    )
    return list(load([str(folder / "bench.yaml")]).chosen)


def _floor(fleet: Fleet) -> Run:
    """Connect and run ``true`` on every host: what nobody can go below."""

    def work(host: Host) -> None:
        fleet.connect(host)
        ask(host, "true", 15, "true")
        fleet.results[host.name].outcome = "ok"

    return fleet.work("true", lambda run: fleet.each(work))


def _measured(name: str, work: Callable[[], Run]) -> tuple[str, float, float, int]:
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    run = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.monotonic() - began
    bad = [h for h in run.hosts if h.outcome in ("unreachable", "failed", "not_attempted")]
    if bad:
        raise SystemExit(f"bench: {name}: {bad[0].name}: {bad[0].outcome}: {bad[0].error}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return name, wall, cpu, sum(h.execs for h in run.hosts)


_PROBES = """
for i in 1 2 3 4 5 6 7 8 9; do
  a=$(date +%s%N); sh -c 'eval "$(cat)"' <"$1" >/dev/null; b=$(date +%s%N)
  n=0; while [ $n -lt 100 ]; do /bin/true; n=$((n+1)); done; c=$(date +%s%N)
  echo $(( (b - a) / 1000 )) $(( (c - b) / 1000 ))
done
"""


def _probe(folder: Path) -> str:
    """What the probe costs on this very machine, beside starting a process that does nothing."""
    (folder / "probe").write_text(probe.script(), "ascii")
    words = ["sh", "-c", _PROBES, "sh", str(folder / "probe")]
    rows = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    took, hundred = (statistics.median(map(int, column)) for column in zip(*(r.split() for r in rows), strict=True))
    return f"the probe alone: {took / 1000:.0f} ms, as long as {took / hundred * 100:.0f} processes that do nothing"


def main() -> int:
    """Print one line for each kind of run, with its ratio to the floor (the median of three pairs)."""
    if sys.argv[1:] == ["startup"]:
        return startup.main()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    ldso = frozenset({"ldso"})
    server = command("sshd", "openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with _sshd(folder, server) as port:
            entries = _inventory(folder, port, count)

            def fleet(only: frozenset[str] | None = None) -> Fleet:
                return Fleet(entries, Access(selected=only, allowed=Disruption.none), lambda host, what: None)

            kinds: list[tuple[str, Callable[[], Run]]] = [
                ("connect + true", lambda: _floor(fleet())),
                ("plan", lambda: converge.plan(fleet())),
                ("apply, nothing to do", lambda: converge.apply(fleet(ldso))),
            ]
            rounds = [[_measured(kind, work) for kind, work in kinds] for _ in range(4)][1:]
        alone = _probe(folder)
    print(f"{count} loopback hosts, {os.cpu_count()} CPUs; medians of {len(rounds)} rounds")
    print(f"{'':24}{'wall s':>8}{'ratio':>8}{'CPU s':>8}{'ratio':>8}{'execs/host':>12}")
    for at, (kind, _) in enumerate(kinds):
        middle = sorted(rounds, key=lambda r: r[at][1] / r[0][1])[len(rounds) // 2]
        _, wall, cpu, execs = middle[at]
        print(f"{kind:24}{wall:8.2f}{wall / middle[0][1]:8.2f}{cpu:8.2f}{cpu / middle[0][2]:8.2f}{execs / count:12.2f}")
    print(alone)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as e:
        sys.exit(f"bench: {e}")
