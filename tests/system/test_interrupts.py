"""What is cut in the middle: connections, controllers, nodes. A step that must not be cut in two ends by itself."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.lab import Lab, Machine, access
from tests.lab.fixtures import MachineFactory
from tests.system.faults import (
    Terminal,
    cable,
    footprint,
    inventory_file,
    leftovers,
    mends,
    problem,
    settled,
    swallow,
    until,
)
from tests.system.harness import Gpuready, Inventories, Result

LIBRARIES = "/usr/local/nvidia/lib64"

# Stands before a command of the node on the path of our scripts; at its first matching call it kills the session.
_CUTTING = """#!/bin/sh
case "$*" in *'{arguments}'*)
  if [ ! -e /var/tmp/cut.{step} ]; then
    : >/var/tmp/cut.{step}
    {wait}pkill -KILL -f '^sshd[^ ]*: gpu'
    sleep 1
  fi ;;
esac
exec {command} "$@"
"""
# Holds dpkg up until it is let go, so that there is a middle of the installation to hit, on machines fast or slow.
_HELD = """DPkg::Pre-Invoke { "touch /var/tmp/in-dpkg; \
timeout 100 sh -c 'until [ -e /var/tmp/go ]; do sleep 0.1; done'; rm /var/tmp/in-dpkg"; };
"""


def _cut(m: Machine, step: str, command: str, arguments: str = "") -> None:
    """The SSH session is killed when that command is called with those arguments, once."""
    wrapper = m.root / "usr/local/bin" / command
    real = m.run(f"PATH=/usr/bin:/usr/sbin command -v {command} || echo /usr/bin/{command}", timeout=20).stdout.strip()
    wrapper.write_text(_CUTTING.format(step=step, arguments=arguments, command=real, wait=""))
    wrapper.chmod(0o755)


def _hold_dpkg(m: Machine) -> Path:
    """dpkg waits before it begins, until :func:`_let_go`; the file that is returned exists while it does."""
    (m.root / "etc/apt/apt.conf.d/99held").write_text(_HELD)
    return m.root / "var/tmp/in-dpkg"


def _let_go(m: Machine) -> None:
    (m.root / "var/tmp/go").touch()


def _lock_is_free(m: Machine) -> bool:
    return m.run("flock -n /run/gpuready.lock true", check=False, timeout=20).returncode == 0


def _idle(m: Machine) -> bool:
    """Whether no step of ours runs on the node."""
    return not m.run("systemctl -q list-units --no-legend 'gpuready-*'", check=False, timeout=20).stdout.strip()


class Departure:
    """A run over nodes that go in the middle of dpkg.

    ``dead`` loses its power; ``dark`` its network for good, behind a jump host that stays, ``grey`` for longer than a
    connection lasts, ``dim`` for a moment; on ``stuck`` the session's sshd hangs, while the kernel acknowledges.
    """

    def __init__(self, lab: Lab, stack: ExitStack, gpuready: Gpuready, inventory: Inventories) -> None:
        *made, hop = (stack.enter_context(lab.machine()) for _ in range(6))
        self.dead, self.dark, self.grey, self.dim, self.stuck = self.machines = made
        path = inventory(made)
        config = path.with_suffix(".ssh")
        config.write_text(f"Host {hop.address}\n  IdentityFile {access.client_key()}\n", "utf-8")
        arguments = f"-F {config} -o UserKnownHostsFile={access.known_hosts()} -J gpu@{hop.address}"
        through = {"ansible_host": self.dark.address, "ansible_ssh_common_args": arguments}
        self.path = inventory_file(path, path, {self.dark.name: through})
        self._markers = [_hold_dpkg(m) for m in made]
        self.process = gpuready.start("apply", "--yes", "--batch", "100%", inventory=self.path)
        self._acts = ThreadPoolExecutor(1).submit(self._act)

    def _act(self) -> None:
        until(lambda: all(marker.exists() for marker in self._markers), 60)
        began = time.monotonic()
        for m in (self.dead, self.dim):
            cable(m, plugged=False)
        for m in (self.dark, self.grey):
            swallow(m, packets=True)
        self.stuck.run("pkill -STOP -f '^sshd[^ ]*: gpu'", timeout=20)
        self.dead.kill()
        for m in (self.dark, self.grey, self.dim, self.stuck):
            _let_go(m)
        for m, seconds in ((self.dim, 3), (self.grey, 35)):  # nothing to wait for: the network is away for that long
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            swallow(m, packets=False) if m is self.grey else cable(m, plugged=True)
        self.process.wait()

    def result(self, gpuready: Gpuready) -> Result:
        """What became of it."""
        found = gpuready.finish(self.process)
        self._acts.result()  # what went wrong there is told, not hidden
        return found


@pytest.fixture(scope="module")
def departure(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Departure]:
    """Begun before the other tests of this module, because it takes time and little work."""
    with ExitStack() as stack:
        made = Departure(lab, stack, gpuready, inventory)
        yield made
        made.process.kill()


@pytest.mark.fault("connection-cut")
@pytest.mark.usefixtures("departure")
def test_the_connection_is_cut_at_every_step(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, lab: Lab
) -> None:
    machines = [machine("debian12"), machine("debian13")]
    for m in machines:
        m.put(lab.driver_libraries(m.distro), LIBRARIES)
    path = inventory(machines, ldso=[LIBRARIES])
    before = [footprint(m) for m in machines]

    def lost(changed: set[str], **cuts: tuple[str, str]) -> None:
        """An apply with cuts, the last of which it does not survive."""
        for m in machines:
            for step, (command, arguments) in cuts.items():
                _cut(m, step, command, arguments)
        result = gpuready("apply", "--yes", "--batch", "100%", inventory=path)
        assert result.code == 4, result.explain()
        for m in machines:
            told = problem(result, m.name)
            print(told)
            for step in cuts:
                assert (m.root / f"var/tmp/cut.{step}").exists(), f"{step}: nothing was cut"
            assert result.host(m.name)["outcome"] == "unreachable" and "connection broke" in told, result.explain()
            assert result.changed(m.name) == changed, result.explain()

    lost(set(), probe=("dpkg-query", ""))
    lost(set(), key=("wc", "-c"))
    assert [footprint(m) for m in machines] == before
    # These three are taken up again, each; then the preparation of daemon.json is cut, which is not.
    lost(
        {"repository", "toolkit", "ldso"},
        repository=("sync", "/etc/apt/keyrings"),
        toolkit=("apt-get", "install"),
        ldso=("mktemp", "/etc/ld.so.conf.d"),
        stage=("nvidia-ctk", "runtime configure"),
    )
    assert not any((m.root / "etc/docker/daemon.json").exists() for m in machines)
    lost({"docker"}, docker=("sync", "/etc/docker"), check=("apt-cache", "policy"))

    settled(gpuready, path)
    verified = gpuready("verify", inventory=path)
    assert verified.code == 0, verified.explain()
    for m in machines:
        until(partial(_lock_is_free, m), 5)
        assert not leftovers(m)


@pytest.mark.fault("cut-inside-dpkg")
def test_a_cut_in_the_middle_of_dpkg_is_no_failure(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = machine()
    known = tmp_path / "known_hosts"
    path = inventory_file(tmp_path / "i.yaml", inventory(m), ansible_ssh_common_args=f"-o UserKnownHostsFile={known}")
    held = _hold_dpkg(m)
    process = gpuready.start("apply", "--yes", "--host-keys", "accept-new", inventory=path)
    until(held.exists)
    m.run("pkill -KILL -f '^sshd[^ ]*: gpu'", timeout=20)
    _let_go(m)
    result = gpuready.finish(process)
    assert result.code == 0 and result.host()["outcome"] == "changed", problem(result) + result.explain()
    assert len(known.read_text().splitlines()) == 1
    settled(gpuready, path)


@pytest.mark.promise
@pytest.mark.fault("controller-killed")
def test_a_killed_controller_leaves_a_node_that_ends_its_step(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    m = machine()
    path = inventory(m)
    held = _hold_dpkg(m)
    process = gpuready.start("apply", "--yes", inventory=path)
    until(held.exists)
    second = gpuready("apply", "--yes", inventory=path)
    told = problem(second)
    print(told)
    assert second.code == 1 and "another gpuready run is changing this node" in told and "@" in told, second.explain()
    assert not second.changed()

    process.kill()
    process.wait()
    until(partial(_lock_is_free, m), 5)
    third = gpuready("apply", "--yes", inventory=path)
    told = problem(third)
    print(told)
    assert third.code == 1 and "(toolkit) still runs" in told, third.explain()
    _let_go(m)
    until(partial(_idle, m), 60)
    assert m.run("dpkg --audit").stdout == ""
    mends(gpuready, path)


@pytest.mark.promise
@pytest.mark.fault("interrupt")
@pytest.mark.parametrize(
    ("number", "verb"),
    [(signal.SIGINT, ("plan",)), (signal.SIGTERM, ("apply", "--yes")), (signal.SIGHUP, ("verify",))],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_an_interrupt_ends_in_a_document(
    number: signal.Signals,
    verb: tuple[str, ...],
    module_machine: MachineFactory,
    gpuready: Gpuready,
    inventory: Inventories,
    tmp_path: Path,
) -> None:
    m = module_machine("debian12")
    wrapper = m.root / "usr/local/bin/dpkg-query"
    wrapper.write_text(
        '#!/bin/sh\ntouch /var/tmp/probing; sleep 1; rm /var/tmp/probing; exec /usr/bin/dpkg-query "$@"\n'
    )
    wrapper.chmod(0o755)
    path = inventory_file(tmp_path / "i.yaml", inventory(m), {"away": {"ansible_host": "away.invalid"}})
    before = footprint(m)
    probing = m.root / "var/tmp/probing"
    until(lambda: not probing.exists())
    process = gpuready.start(*verb, inventory=path)
    until(probing.exists)
    process.send_signal(number)
    result = gpuready.finish(process)
    assert result.code == 130 and result.document["error"]["kind"] == "interrupted", result.explain()
    assert set(result.document["hosts"]) == {m.name, "away"}, result.explain()
    assert result.host(m.name)["outcome"] == "not_attempted", result.explain()
    assert footprint(m) == before
    wrapper.unlink()


def _listens(pid: int) -> bool:
    """Does the process catch SIGTERM? The first thing that the console script does."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.fault("interrupt")
def test_an_interrupt_at_any_moment_ends_in_a_document(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    path = inventory(module_machine("debian12"))
    chance = random.Random(7)
    for _ in range(12):
        process = gpuready.start("plan", inventory=path)
        until(partial(_listens, process.pid))  # before that, Python itself has not begun
        time.sleep(chance.uniform(0, 1.0))  # the point is that it is not waited for anything
        process.send_signal(signal.SIGINT)
        result = gpuready.finish(process)
        assert result.code in (0, 130), result.explain()


@pytest.mark.fault("interrupt")
def test_an_interrupt_in_a_step_leaves_terminal_and_node_in_order(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = machine()
    path = inventory(m)
    held = _hold_dpkg(m)
    terminal = Terminal(gpuready.home)
    process = terminal.start("apply", "--yes", "-i", str(path))
    until(held.exists)
    terminal.type("\x03")  # Ctrl-C, as the terminal makes it a signal
    assert process.wait(10) == 130, terminal.shown
    until(partial(terminal.says, "exit 130"), 5)
    shown = terminal.shown
    assert "Traceback" not in shown and shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), shown
    assert terminal.unchanged()
    assert "ends there by itself" in shown, shown
    _let_go(m)
    until(partial(_idle, m), 60)
    mends(gpuready, path)


@pytest.mark.fault("power-loss-in-dpkg")
@pytest.mark.fault("host-dark")
@pytest.mark.fault("sshd-stopped")
def test_nodes_that_go_in_the_middle(gpuready: Gpuready, departure: Departure) -> None:
    dead, dark, grey, dim, stuck = departure.machines
    result = departure.result(gpuready)
    print(problem(result, dead.name), problem(result, dark.name), sep="\n")
    print({name: host["seconds"] for name, host in result.document["hosts"].items()})
    assert result.code == 1, result.explain()
    for m in (grey, dim, stuck):
        assert result.host(m.name)["outcome"] == "changed", result.explain()
    for m in (dead, dark):
        told = problem(result, m.name)
        assert result.host(m.name)["outcome"] == "failed" and "result unknown" in told, result.explain()
        assert "toolkit" in told and "run again" in told
    swallow(dark, packets=False)
    cable(dead, plugged=True)
    dead.start()
    until(partial(_lock_is_free, dark), 60, "the lock of a controller that went without a word is given up")
    _let_go(dead)
    final = gpuready("apply", "--yes", "--batch", "100%", inventory=departure.path)
    assert final.code == 0, final.explain()
    assert final.host(dead.name)["outcome"] == final.host(dark.name)["outcome"] == "changed", final.explain()
    settled(gpuready, departure.path)
