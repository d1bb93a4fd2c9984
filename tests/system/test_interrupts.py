"""What is cut in the middle: connections, controllers, runs, nodes. A step that must not be cut in two ends alone."""

import json
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.lab import Lab, Machine, access, scale
from tests.system.faults import (
    Terminal,
    cable,
    extended,
    footprint,
    hold_dpkg,
    idle,
    leftovers,
    let_go,
    lock_is_free,
    problem,
    settled,
    swallow,
    through,
    until,
)
from tests.system.harness import Gpuready, Inventories, Result
from tests.system.host import LIBRARIES, Hosts

# Stands before a command of the node on the path of our scripts; at its first matching call it kills the session.
_CUTTING = """#!/bin/sh
case "$*" in *'{arguments}'*)
  if [ ! -e /var/tmp/cut.{step} ]; then
    : >/var/tmp/cut.{step}
    pkill -KILL -f '^sshd[^ ]*: gpu'
    sleep 1
  fi ;;
esac
exec {command} "$@"
"""


def _cut(m: Machine, step: str, command: str, arguments: str = "") -> None:
    """The SSH session is killed when that command is called with those arguments, once."""
    real = m.run(f"PATH=/usr/bin:/usr/sbin command -v {command} || echo /usr/bin/{command}", timeout=20).stdout.strip()
    m.script(f"/usr/local/bin/{command}", _CUTTING.format(step=step, arguments=arguments, command=real))


@pytest.mark.fault("step-killed")
def test_a_step_that_is_killed_in_dpkg_says_so(fresh: Hosts) -> None:
    m = fresh()
    marker = hold_dpkg(m)
    process = m.begin("apply")
    until(marker.exists, 60)
    m.run("systemctl kill -s KILL gpuready-toolkit.service")
    error = m.gpuready.finish(process, code=1).component("toolkit")["error"]
    assert error["message"].startswith("the step did not end on its own: result signal code=killed"), error
    assert "its last line: " in error["message"] and error["remedy"].startswith("run again"), error
    (m.root / "etc/apt/apt.conf.d/99held").unlink()
    assert "toolkit" in m.apply().changed()
    m.settled()


class Departure:
    """A run over nodes that go in the middle of dpkg.

    ``dead`` loses its power; ``dark`` its network for good, behind a jump host that stays, ``grey`` for longer than a
    connection lasts, ``dim`` for a moment; on ``stuck`` the session's sshd hangs, while the kernel acknowledges.
    """

    def __init__(self, lab: Lab, stack: ExitStack, gpuready: Gpuready, inventory: Inventories) -> None:
        *made, hop = (stack.enter_context(lab.machine()) for _ in range(6))
        self.dead, self.dark, self.grey, self.dim, self.stuck = self.machines = made
        path = inventory(made)
        arguments = through(hop, path.with_suffix(".ssh"), access.known_hosts())
        behind = {"ansible_host": self.dark.address, "ansible_ssh_common_args": arguments}
        self.path = extended(path, {self.dark.name: behind})
        self._markers = [hold_dpkg(m) for m in made]
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
            let_go(m)
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
def test_the_connection_is_cut_at_every_step(fresh: Hosts, gpuready: Gpuready, inventory: Inventories) -> None:
    machines = [fresh("debian12"), fresh("debian13")]
    for m in machines:
        m.put_libraries()
    path = inventory(machines, ldso=[LIBRARIES])
    before = [footprint(m) for m in machines]

    def lost(changed: set[str], **cuts: tuple[str, str]) -> None:
        """An apply with cuts, the last of which it does not survive."""
        for m in machines:
            for step, (command, arguments) in cuts.items():
                _cut(m, step, command, arguments)
        result = gpuready("apply", "--yes", "--batch", "100%", inventory=path, code=4)
        for m in machines:
            told = problem(result, m.name)
            for step in cuts:
                assert (m.root / f"var/tmp/cut.{step}").exists(), f"{step}: nothing was cut"
            assert result.host(m.name)["outcome"] == "unreachable" and "connection broke" in told, result.explain()
            assert result.changed(m.name) == changed, result.explain()
            until(partial(idle, m), 60)  # the step goes on without its connection, and refuses the next run

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
    gpuready("verify", inventory=path, code=0)
    for m in machines:
        until(partial(lock_is_free, m), 5)
        assert not leftovers(m)


@pytest.mark.fault("cut-inside-dpkg")
def test_a_cut_in_the_middle_of_dpkg_is_no_failure(fresh: Hosts, tmp_path: Path) -> None:
    m = fresh()
    known = tmp_path / "known_hosts"
    path = extended(m.where(), ansible_ssh_common_args=f"-o UserKnownHostsFile={known}")
    held = hold_dpkg(m)
    process = m.begin("apply", "--host-keys", "accept-new", inventory=path)
    until(held.exists)
    m.run("pkill -KILL -f '^sshd[^ ]*: gpu'", timeout=20)
    let_go(m)
    assert m.gpuready.finish(process, code=0).host()["outcome"] == "changed"
    assert len(known.read_text().splitlines()) == 1
    m.settled(inventory=path)


@pytest.mark.fault("sshd-away")
def test_an_sshd_that_is_away_for_seconds_during_a_step_is_waited_for(fresh: Hosts) -> None:
    m = fresh()
    held = hold_dpkg(m)
    process = m.begin("apply")
    until(held.exists)
    # Nothing to wait for: sshd is away for that long. The first attempts to reconnect are refused.
    stop, start = "systemctl stop ssh.socket ssh.service", "systemctl start ssh.service"
    m.run(f"{stop}; pkill -KILL -f '^sshd[^ ]*: gpu'; sleep 5; {start}", timeout=60)
    let_go(m)
    result = m.gpuready.finish(process, code=0)
    assert result.host()["outcome"] == "changed", result.explain()
    m.settled()


@pytest.mark.fault("controller-killed")
def test_a_killed_controller_leaves_a_node_that_ends_its_step(fresh: Hosts) -> None:
    m = fresh()
    held = hold_dpkg(m)
    process = m.begin("apply")
    until(held.exists)
    second = m.apply(code=1)
    told = problem(second)
    assert "another gpuready run is changing this node" in told and "@" in told, second.explain()
    assert not second.changed()

    process.kill()
    process.wait()
    until(partial(lock_is_free, m), 5)
    assert "(toolkit) still runs" in problem(m.apply(code=1))
    let_go(m)
    until(partial(idle, m), 60)
    assert m.run("dpkg --audit").stdout == ""
    m.mends()


@pytest.mark.promise
@pytest.mark.fault("interrupt")
@pytest.mark.parametrize(
    ("number", "verb"), [(signal.SIGINT, "apply"), (signal.SIGTERM, "plan"), (signal.SIGHUP, "verify")]
)
def test_an_interrupt_ends_in_a_document(number: signal.Signals, verb: str, shared: Hosts) -> None:
    m = shared("debian12")
    waits = "touch /var/tmp/probing; until [ -e /var/tmp/on ]; do sleep 0.05; done; rm /var/tmp/probing"
    wrapper = m.script("/usr/local/bin/dpkg-query", f'#!/bin/sh\n{waits}; exec /usr/bin/dpkg-query "$@"\n')
    path = extended(m.where(), {"away": {"ansible_host": "away.invalid"}})
    before = footprint(m)
    probing, on = m.root / "var/tmp/probing", m.root / "var/tmp/on"
    until(lambda: not probing.exists())
    on.unlink(missing_ok=True)
    process = m.begin(verb, inventory=path)
    until(probing.exists)
    process.send_signal(number)
    result = m.gpuready.finish(process, code=130)
    on.touch()
    assert result.document["error"]["kind"] == "interrupted", result.explain()
    assert set(result.document["hosts"]) == {m.name, "away"}, result.explain()
    assert result.host(m.name)["outcome"] == "not_attempted", result.explain()
    assert footprint(m) == before
    wrapper.unlink()


def _listens(pid: int) -> bool:
    """Does the process catch SIGTERM? The first thing that the console script does."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.fault("interrupt")
def test_an_interrupt_at_any_moment_ends_in_a_document(shared: Hosts) -> None:
    m, chance = shared("debian12"), random.Random(7)
    for _ in range(12):
        process = m.begin("plan")
        until(partial(_listens, process.pid))  # before that, Python itself has not begun
        time.sleep(chance.uniform(0, 1.0))  # the point is that it is not waited for anything
        process.send_signal(signal.SIGINT)
        result = m.gpuready.finish(process)
        assert result.code in (0, 130), result.explain()


BOOK = "var/tmp/book"
#: Each component that needs an idle node drains it.
DRAINED = {"restart": "drained", "drain": {"before": f"echo before >>/{BOOK}", "after": f"echo after >>/{BOOK}"}}


@pytest.mark.promise
@pytest.mark.fault("interrupt")
def test_after_one_interrupt_what_has_begun_ends_and_resume_does_the_rest(
    fresh: Hosts, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    first, second = machines = fresh("debian12"), fresh("debian13")
    where = inventory(machines, maintenance=DRAINED)
    hook, state = f"echo >>{tmp_path}/tested", str(tmp_path)
    words = ("apply", "--yes", "--batch", "1", "--after-batch", hook, "--state-dir", state)
    held, before = hold_dpkg(first), footprint(second)
    process = gpuready.start(*words, inventory=where)
    until(held.exists, 60)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    told = next(line for line in process.stderr if "interrupted" in line)
    assert f"Still running: {first.name}: install " in told and "Ctrl-C again aborts at once" in told, told
    assert second.name not in told, told
    let_go(first)
    result = gpuready.finish(process, code=130)
    assert result.document["error"]["message"].startswith("interrupted; gpuready finished what had begun on nodes")
    assert result.host(first.name)["outcome"] == "pending", result.explain()
    assert result.changed(first.name) == {"repository", "toolkit"}, result.explain()
    assert not result.component("docker", host=first.name)["attempted"] and result.host(first.name)["checks"]
    assert (first.root / BOOK).read_text("utf-8").split() == ["before", "after"]
    assert not (first.root / "var/lib/gpuready/drained").exists()
    assert idle(first)
    until(partial(lock_is_free, first), 5)
    assert result.host(second.name)["outcome"] == "not_attempted", result.explain()
    assert "not begun: interrupted" in result.host(second.name)["notes"] and footprint(second) == before
    assert not (tmp_path / "tested").exists()

    rest = gpuready(*words, "--resume", inventory=where, code=0)
    assert [rest.host(m.name)["outcome"] for m in machines] == ["changed", "changed"], rest.explain()
    assert "docker" in rest.changed(first.name) and not {"repository", "toolkit"} & rest.changed(first.name)
    assert (tmp_path / "tested").read_text("utf-8") == "\n\n"
    settled(gpuready, where)


@pytest.mark.fault("interrupt")
def test_a_second_interrupt_in_a_step_leaves_terminal_and_node_in_order(fresh: Hosts) -> None:
    m = fresh()
    held = hold_dpkg(m)
    terminal = Terminal(m.gpuready.home)
    process = terminal.start("apply", "--yes", "-i", str(m.where()))
    until(held.exists)
    terminal.type("\x03")  # Ctrl-C, as the terminal makes it a signal
    until(partial(terminal.says, "Ctrl-C again aborts at once"), 10)
    assert process.poll() is None
    terminal.type("\x03")
    assert process.wait(scale.seconds(30)) == 130, terminal.shown
    until(partial(terminal.says, "exit 130"), 5)
    shown = terminal.shown
    assert "Traceback" not in shown and shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), shown
    assert terminal.unchanged()
    assert "ends there by itself" in shown, shown
    let_go(m)
    until(partial(idle, m), 60)
    m.mends()


@pytest.mark.fault("interrupt")
def test_a_terminal_that_goes_lets_the_step_end(fresh: Hosts, tmp_path: Path) -> None:
    m = fresh()
    held = hold_dpkg(m)
    terminal = Terminal(m.gpuready.home)
    words = ("apply", "--yes", "-i", str(m.where()), "--output", f"json:{tmp_path}/result.json")
    process = terminal.start(*words)
    until(held.exists)
    terminal.hang_up()
    let_go(m)
    assert process.wait(60) == 130
    result = Result(130, json.loads((tmp_path / "result.json").read_text("utf-8")), "", "")
    assert {"repository", "toolkit"} <= result.changed(), result.explain()
    assert idle(m)


@pytest.mark.fault("power-loss-in-dpkg", "host-dark", "sshd-stopped")
def test_nodes_that_go_in_the_middle(gpuready: Gpuready, departure: Departure) -> None:
    dead, dark, grey, dim, stuck = departure.machines
    result = departure.result(gpuready)
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
    until(partial(lock_is_free, dark), 60, "the lock of a controller that went without a word is given up")
    let_go(dead)
    final = gpuready("apply", "--yes", "--batch", "100%", inventory=departure.path, code=0)
    assert final.host(dead.name)["outcome"] == final.host(dark.name)["outcome"] == "changed", final.explain()
    settled(gpuready, departure.path)
