"""The probe: the same bytes for every host, and without a trace."""

import re

import pytest

from gpuready.model import probe
from tests.lab import DISTROS, Machine
from tests.system.harness import await_processes, listing, processes
from tests.system.host import Hosts

pytestmark = pytest.mark.promise

_CAPTURE = """Match User gpu
  ForceCommand tee /home/gpu/stdin | sh -c "$SSH_ORIGINAL_COMMAND"
"""


def test_every_host_is_sent_the_same_bytes(shared: Hosts) -> None:
    specs = {
        "debian13": {"ldso": ["/srv/driver"], "toolkit": {"version": "1.19.1"}},
        "debian12": {"runtimes": {"docker": {"shm_size": "1g", "default_runtime": True}}},
    }
    sent = []
    for distro, spec in specs.items():
        node = shared(distro)
        (node.root / "etc/ssh/sshd_config.d/capture.conf").write_text(_CAPTURE, "utf-8")
        node.run("systemctl restart ssh")
        node.plan(**spec)
        nonce, _, script = (node.root / "home/gpu/stdin").read_bytes().partition(b"\n")
        assert re.fullmatch(rb"\{ NONCE=[0-9a-f]{16}", nonce)
        sent.append(script)
        node.run("rm /etc/ssh/sshd_config.d/capture.conf /home/gpu/stdin; systemctl restart ssh")
    assert sent[0] == sent[1]
    assert probe.script().encode() in sent[0]
    assert sent[0].isascii()


def memory(machine: Machine) -> set[str]:
    """Every name in /run, /tmp and /dev/shm but systemd's and sudo's own records of the session that asks."""
    names = machine.run("find /run /tmp /dev/shm").stdout.splitlines()
    return {name for name in names if not name.startswith(("/run/systemd/", "/run/user/", "/run/sudo/"))}


def modules(machine: Machine) -> set[str]:
    """The kernel's modules that a careless probe loads: the driver's and RDMA's (others may load theirs meanwhile)."""
    listed = machine.run("cat /proc/modules 2>/dev/null || true").stdout  # some kernels have no modules at all
    names = {row.split()[0] for row in listed.splitlines()}
    return {name for name in names if name.startswith(("nvidia", "nouveau", "ib_", "rdma", "mlx"))}


@pytest.mark.parametrize("distro", DISTROS)
def test_it_leaves_nothing_behind(distro: str, shared: Hosts) -> None:
    node = shared(distro)
    before = memory(node), modules(node), listing(node)
    running = processes(node)
    node.call("record")
    await_processes(node, running)
    assert memory(node) - before[0] == set()
    assert modules(node) == before[1]
    assert before[2] ^ listing(node) == frozenset()
