"""One test machine as many hosts: a relay on an address of its own for each, which delays what comes back.

The relay is toxiproxy. The machine is one that gpuready has converged, so that every tool finds all as it should be.
"""

import json
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import yaml

from tests.bench.measure import await_port
from tests.bench.wanted import DIRECTORIES, SEEDED, File, wanted
from tests.lab import access, cache, golang, inventory, network, nspawn, packages, repository
from tests.lab.host import architecture, sh
from tests.lab.lab import Lab
from tests.lab.machine import Machine

#: The version of the toolkit's packages that the machine has.
VERSION = f"{packages.VERSIONS[-1]}-1"
USER = "gpu"
_TOXIPROXY = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"
_FIRST = IPv4Address("127.77.0.1")
_SETTINGS = {
    "runtimes": {"docker": {"default_runtime": True}, "containerd": "auto"},
    "ldso": [DIRECTORIES[0]],
    "rdma": {"packages": ["rdma-core"]},
    "nccl": {"interfaces": ["eth0"], "transport": "tcp", "extra": {"NCCL_SOCKET_NTHREADS": "4"}},
    "monitoring": {"rdma_exporter": "textfile", "textfile_directory": DIRECTORIES[1]},
}
# Every connection of a thousand hosts is let in, and the log names each session.
_SSHD = "MaxStartups 2000\nLogLevel VERBOSE\n"


@dataclass(frozen=True)
class Traffic:
    """What the node has seen so far: seconds of CPU time, bytes in both directions, SSH sessions."""

    cpu: float
    bytes: int
    sessions: int


@contextmanager
def converged(gpuready: Path, folder: Path) -> Iterator[Machine]:
    """A machine after ``gpuready apply``. ``folder/wanted`` has the contents of its files, for the other tools."""
    lab = Lab()
    lab.prepare(["debian13"])
    with lab.machine("debian13") as machine:
        machine.put(lab.driver_libraries("debian13"), DIRECTORIES[0])
        for path, text in SEEDED.items():
            (machine.root / path[1:]).write_text(text)
        (machine.root / "etc/ssh/sshd_config.d/bench.conf").write_text(_SSHD)
        machine.sh(f"mkdir -p {' '.join(DIRECTORIES)}; systemctl restart ssh")
        machine.install("python3 python3-apt")  # for Ansible
        sh(gpuready, "apply", "--yes", "-i", machine.inventory(**_SETTINGS))
        for item in wanted(VERSION):
            if isinstance(item, File):
                copy = folder / "wanted" / item.path[1:]
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(machine.root / item.path[1:], copy)
        yield machine


def seen(machine: Machine) -> Traffic:
    """Read the machine's counters, from outside as far as possible."""
    sessions = machine.run(
        f"journalctl -q -o cat -t sshd-session | grep -c '^Starting session.* for {USER} '", check=False
    )
    link = Path("/sys/class/net", network.link(machine.record.index), "statistics")
    count = sum(int((link / name).read_text()) for name in ("rx_bytes", "tx_bytes"))
    usage = (_cgroup(machine) / "cpu.stat").read_text().split()
    return Traffic(int(usage[1]) / 1e6, count, int(sessions.stdout))


def _cgroup(machine: Machine) -> Path:
    """The control group (version 2) of all the machine's processes."""
    mount = next(row.split()[1] for row in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in row)
    rows = Path("/proc", str(nspawn.inits(machine.name)[0]), "cgroup").read_text().splitlines()
    path = Path(mount + next(row for row in rows if row.startswith("0::"))[3:])
    return next(place for place in reversed(path.parents) if machine.name in place.name)


@contextmanager
def relays(machine: Machine, count: int, delay: int) -> Iterator[list[tuple[str, str, int]]]:
    """Name, address and port of ``count`` hosts. An answer of the machine arrives ``delay`` milliseconds late."""
    server = cache.cached("toxiproxy", {"module": _TOXIPROXY, "architecture": architecture()}, _build) / "server"
    api, port = _free(), _free()
    hosts = [(f"bench{at:04d}", str(_FIRST + at), port) for at in range(count)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([server, "-port", str(api)], stdout=log, stderr=log)
        try:
            await_port(api, "toxiproxy")
            upstream = f"{machine.address}:22"
            _post(api, "populate", [
                {"name": name, "listen": f"{address}:{port}", "upstream": upstream, "enabled": True}
                for name, address, port in hosts
            ])  # fmt: skip
            if delay:
                toxic = {"type": "latency", "stream": "downstream", "attributes": {"latency": delay}}
                for name, _, _ in hosts:
                    _post(api, f"proxies/{name}/toxics", toxic)
            yield hosts
        finally:
            process.terminate()
            process.wait()


def write_inventories(machine: Machine, hosts: Sequence[tuple[str, str, int]], folder: Path) -> None:
    """Write known_hosts, hosts.yaml for gpuready and Ansible, and hosts.py for pyinfra."""
    key = " ".join((machine.home / "host_key.pub").read_text().split()[:2])
    known = folder / "known_hosts"
    known.write_text("".join(f"[{address}]:{port} {key}\n" for _, address, port in hosts))
    settings = inventory.settings(repository.shared().settings(), _SETTINGS)
    variables = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(access.client_key()),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes",
        "gpuready": settings,
    }
    listed = {name: {"ansible_host": address, "ansible_port": port} for name, address, port in hosts}
    (folder / "hosts.yaml").write_text(yaml.safe_dump({"all": {"vars": variables, "hosts": listed}}))
    rows = [
        (name, {"ssh_hostname": address, "ssh_port": port, "ssh_user": USER, "ssh_key": str(access.client_key()),
                "ssh_known_hosts_file": str(known), "ssh_strict_host_key_checking": "yes"})
        for name, address, port in hosts
    ]  # fmt: skip
    (folder / "hosts.py").write_text(f"hosts = {rows!r}\n")


def _build(into: Path) -> None:
    go = golang.go()
    sh(go, "install", _TOXIPROXY, env={"GOBIN": str(into), "GOFLAGS": "-trimpath", "CGO_ENABLED": "0"})


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _post(port: int, path: str, body: object) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", json.dumps(body).encode())
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).close()
