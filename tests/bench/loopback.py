"""./dev bench [N]: execs, wall and CPU time of plan and of a converged apply over N loopback hosts.

The floors (tests/bench/floor.py) use the same connections, pool and sshd, in the same process. All N hosts are one sshd
on loopback with a key made for this run. Figures are of this machine; quote the ratios.
"""

import argparse
import gc
import getpass
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from gpuready.inventory.hosts import HostEntry, load
from gpuready.model import probe
from gpuready.result.model import Run
from gpuready.run import converge
from tests.bench.floor import fleet, floor
from tests.bench.measure import await_port
from tests.lab.host import command

_BAD = {"unreachable", "failed", "not_attempted"}


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
        "PermitRootLogin": "yes", "SetEnv": "HOME=/",  # some start-up files of shells are slow
    }  # fmt: skip
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    server = subprocess.Popen([path, "-D", "-e", "-f", "/dev/null", *words], stderr=subprocess.DEVNULL)
    try:
        await_port(port, "sshd")
        yield port
    finally:
        server.terminate()
        server.wait()


def _inventory(folder: Path, port: int, count: int) -> list[HostEntry]:
    key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {' '.join(key)}\n")
    first = "1".zfill(len(str(count)))
    (folder / "bench.yaml").write_text(
        f"all:\n  hosts:\n    bench[{first}:{count}]: {{ansible_host: 127.0.0.1}}\n  vars:\n"
        f"    ansible_port: {port}\n    ansible_user: {getpass.getuser()}\n"
        f"    ansible_ssh_private_key_file: {folder}/client\n"
        f"    ansible_ssh_common_args: -o UserKnownHostsFile={folder}/known\n"
        "    gpuready: {ldso: off, hardware: {gpus: none}}\n"
    )
    return list(load([str(folder / "bench.yaml")]).chosen)


class _Cost(NamedTuple):
    wall: float
    cpu: float
    execs: int


def _measured(name: str, work: Callable[[], Run]) -> _Cost:
    gc.collect()
    gc.freeze()  # as the command does: garbage is not looked for among the imports, nor among earlier rounds
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    run = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.monotonic() - began
    bad = [h for h in run.hosts if h.outcome in _BAD]
    if bad:
        raise SystemExit(f"bench: {name}: {bad[0].name}: {bad[0].outcome}: {bad[0].error}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Cost(wall, cpu, sum(h.execs for h in run.hosts))


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


def _verify(folder: Path, count: int) -> str:
    """What the whole command ``gpuready verify`` costs over the same hosts."""
    gpuready = str(Path(sys.executable).parent / "gpuready")
    words = [gpuready, "verify", "-i", str(folder / "bench.yaml"), "--output", "jsonl"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    outcomes = [json.loads(line)["outcome"] for line in done.stdout.splitlines()[:-1]]
    if len(outcomes) != count or not _BAD.isdisjoint(outcomes):
        raise SystemExit(f"bench: verify: {Counter(outcomes)}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        f"gpuready verify, the whole command: {wall:.1f} s, CPU {cpu:.2f} s ({cpu / count * 1000:.1f} ms a host), "
        f"memory {after.ru_maxrss / 1024:.0f} MiB"
    )


def main(words: Sequence[str]) -> int:
    """Print one line for each kind of run, with its ratios to the floor. Each figure is a median of its own."""
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description=__doc__.splitlines()[0].partition(": ")[2],
        epilog="Other benchmarks: ./dev bench peers|page|fleet|startup --help",
    )
    parser.add_argument("hosts", type=int, nargs="?", default=64)
    count: int = parser.parse_args(words).hosts
    ldso = frozenset({"ldso"})
    server = command("sshd", "openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with _sshd(folder, server) as port:
            entries = _inventory(folder, port, count)

            kinds: list[tuple[str, Callable[[], Run]]] = [
                ("connect + true", lambda: floor(fleet(entries), "true")),
                ("connect + probe", lambda: floor(fleet(entries), "probe")),
                ("plan", lambda: converge.plan(fleet(entries))),
                ("apply, nothing to do", lambda: converge.apply(fleet(entries, ldso))),
            ]
            rounds = [[_measured(kind, work) for kind, work in kinds] for _ in range(6)][1:]
            whole = _verify(folder, count)
        alone = _probe(folder)
    print(f"{count} loopback hosts, {os.cpu_count()} CPUs; medians of {len(rounds)} rounds")
    print(f"{'':24}{'wall s':>8}{'ratio':>8}{'CPU s':>8}{'ratio':>8}{'execs/host':>12}")
    for at, (kind, _) in enumerate(kinds):
        wall, cpu, execs = map(statistics.median, zip(*(r[at] for r in rounds), strict=True))
        slower, dearer = (statistics.median(r[at][of] / r[0][of] for r in rounds) for of in (0, 1))
        print(f"{kind:24}{wall:8.2f}{slower:8.2f}{cpu:8.2f}{dearer:8.2f}{execs / count:12.2f}")
    print(whole)
    print(alone)
    return 0
