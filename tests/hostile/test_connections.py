"""Connections that break, are refused, interrupted or opened by others' programs: who goes on, what stays open."""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import pytest
import yaml

from gpuready.operations.ssh import HANDSHAKE
from tests.gpu.test_imex_verdicts import fabric
from tests.hostile.server import RAW, TRICKS, Server
from tests.lab import scale
from tests.model.probe_answers import h200_lines
from tests.system.faults import until
from tests.system.harness import GPUREADY

pytestmark = pytest.mark.long

APPLY = ["apply", "--yes", "--only", "memlock"]


@dataclass
class Site:
    """A server in this process, and a home directory whose user may log in there as anybody."""

    home: Path
    server: Server

    def inventory(self, **hosts: dict[str, object]) -> str:
        """Of hosts, each with variables of its own; the name is the login name."""
        found = {name: {"ansible_user": name, **variables} for name, variables in hosts.items()}
        variables = {
            "ansible_host": "localhost",
            "ansible_port": self.server.port,
            "gpuready": {"hardware": {"gpus": 1}, "memlock": "unlimited"},
        }
        path = self.home / "hosts.yaml"
        path.write_text(yaml.safe_dump({"all": {"hosts": found, "vars": variables}}, sort_keys=False))
        return str(path)

    def env(self, **more: str) -> dict[str, str]:
        """For gpuready; no agent unless told."""
        found = {**os.environ, "HOME": str(self.home), **more}
        return found if more else {key: value for key, value in found.items() if key != "SSH_AUTH_SOCK"}

    def ran(self, words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(words, env=self.env(**env), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=scale.seconds(600), check=False)  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def run(self, *words: str) -> tuple[dict[str, Any], str]:
        """The hosts of the result of one command, and its stderr."""
        done = self.ran([GPUREADY, *words, "--output", "json"])
        return dict(json.loads(done.stdout)["hosts"]), done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    key = paramiko.ECDSAKey.generate()
    server = Server(key)
    (tmp_path / ".ssh").mkdir(mode=0o700)
    paramiko.RSAKey.generate(2048).write_private_key_file(str(tmp_path / ".ssh" / "id_rsa"))
    known = f"[localhost]:{server.port},[127.0.0.1]:{server.port} {key.get_name()} {key.get_base64()}\n"
    (tmp_path / ".ssh" / "known_hosts").write_text(known)
    with contextlib.closing(server):
        yield Site(tmp_path, server)


@pytest.mark.fault("connection-cut")
def test_a_connection_that_broke_before_its_batch_is_opened_anew_or_its_host_alone_is_unreachable(site: Site) -> None:
    names = ["lies_about_steps1", "cut_after_the_probe1", "gone_after_the_probe", "lies_about_steps2"]
    path = site.inventory(**{name: {} for name in names})
    hosts, told = site.run(*APPLY, "--batch", "1", "--max-fail", "9", "-i", path)
    assert {name: host["outcome"] for name, host in hosts.items()} == {
        "lies_about_steps1": "failed",  # changed, as it says, and then nothing has changed
        "cut_after_the_probe1": "failed",
        "gone_after_the_probe": "unreachable",
        "lies_about_steps2": "failed",
    }, told
    assert hosts["cut_after_the_probe1"]["error"] == hosts["lies_about_steps1"]["error"]
    assert "was refused" in hosts["gone_after_the_probe"]["error"]["message"]
    assert site.server.accepted == len(names) + 2


@pytest.mark.fault("hostile-node", "connection-cut")
def test_on_workers_slow_hanging_and_resetting_hosts_are_named_and_hold_up_nobody(site: Site) -> None:
    """Good and bad hosts share each chunk; if it were done again, more connections would come."""
    limit = str(round(scale.seconds(15)))  # good hosts answer within it on a busy machine, too
    bad = dict.fromkeys(("slow_drip", "silence"), f"no answer within {limit} s")
    bad |= {"disconnect": "the connection broke", "early_close": "the answer is incomplete", "refused": "was refused"}
    names = [name for number, each in enumerate(bad) for name in (each, f"good{number}")]
    path = site.inventory(**{name: {} for name in names})
    hosts, told = site.run("plan", "--workers", "2", "--probe-timeout", limit, "-i", path)
    for name, why in bad.items():
        assert hosts[name]["outcome"] == "unreachable" and why in hosts[name]["error"]["message"], hosts[name]
    assert {hosts[f"good{number}"]["outcome"] for number in range(5)} == {"would_change"}, told
    assert site.server.accepted == len(names)


@pytest.mark.fault("connection-cut")
def test_on_workers_a_host_that_dies_in_a_rollout_is_named_and_the_others_change(site: Site) -> None:
    names = ["converges1", "cut_after_the_probe1", "gone_after_the_probe", "converges2", "refuses_channels"]
    path = site.inventory(**{name: {} for name in names})
    hosts, told = site.run(*APPLY, "--workers", "2", "--batch", "2", "--max-fail", "9", "-i", path)
    assert {name: host["outcome"] for name, host in hosts.items()} == {
        "converges1": "changed",
        "cut_after_the_probe1": "failed",  # nothing has changed there
        "gone_after_the_probe": "unreachable",
        "converges2": "changed",
        "refuses_channels": "unreachable",
    }, told
    assert "was refused" in hosts["gone_after_the_probe"]["error"]["message"]


@pytest.mark.fault("interrupt")
@pytest.mark.parametrize(
    "signals",
    [(signal.SIGINT, signal.SIGINT), (signal.SIGHUP, signal.SIGTERM), (signal.SIGTERM,)],
    ids=["SIGINT twice", "SIGHUP then SIGTERM", "SIGTERM"],
)
def test_a_second_interrupt_and_sigterm_abort_and_no_host_goes_on(site: Site, signals: Sequence[int]) -> None:
    """A step that loses its connection is taken up by a new one; one that was aborted must not be."""
    hosts: dict[str, dict[str, object]] = {f"hangs_in_steps{number}": {} for number in range(12)}
    words = [GPUREADY, *APPLY, "--batch", "100%", "-i", site.inventory(**hosts)]
    with subprocess.Popen(words, env=site.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            until(lambda: site.server.begun.count("step") == len(hosts), scale.seconds(60))
            *first, last = signals
            for number in first:
                run.send_signal(number)
                assert run.stderr is not None
                told = next(line for line in run.stderr if "interrupted" in line)
                assert "Still running: hangs_in_steps[0-11]: " in told and "Ctrl-C again aborts at once" in told
                assert run.poll() is None
            run.send_signal(last)
            assert run.wait(scale.seconds(30)) == 130
        finally:
            run.kill()
    assert site.server.accepted == len(hosts) and site.server.begun[-1] == "step"


#: Runs a command line three times in one process; prints how many descriptors each left open beyond the first.
COUNT = """
import contextlib, io, os, sys
from gpuready.cli.app import run
counts = []
for _ in range(3):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = run(sys.argv[1:])
    counts.append(len(os.listdir("/proc/self/fd")))
print(code, *(count - counts[0] for count in counts[1:]), out.getvalue())
"""


def left_open(site: Site, *words: str, **env: str) -> str:
    """Exit code, and descriptors that the second and the third run left, before the report."""
    return site.ran([sys.executable, "-c", COUNT, *words], **env).stdout


@pytest.mark.fault("D12", "descriptors-exhausted")
def test_the_agents_descriptors_end_with_the_connection(site: Site, tmp_path: Path) -> None:
    asked = []

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                asked.append(connection)
                connection.recv(100)
                connection.sendall(bytes([0, 0, 0, 5, 12, 0, 0, 0, 0]))  # no identities

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent"))
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        path = site.inventory(**{f"good{number}": {} for number in range(5)})
        told = left_open(site, "plan", "-i", path, SSH_AUTH_SOCK=str(tmp_path / "agent"))
        listener.shutdown(socket.SHUT_RDWR)  # accept returns only then
        assert told.startswith("0 0 0 ") and len(asked) == 15, told


#: Login name and port (0: the server's) behind the jump hosts, their login names, and connections in all.
JUMPS = {
    "nothing fails": ("good", 0, "hop", 2),
    "the login": ("refused", 0, "hop", 2),
    "the connection to the host": ("nobody", 1, "hop", 1),
    "the second jump host": ("nobody", 0, "hop,refused", 2),
}


@pytest.mark.fault("D12", "descriptors-exhausted")
@pytest.mark.parametrize(("user", "port", "hops", "connections"), JUMPS.values(), ids=JUMPS)
def test_jump_hosts_are_let_go_whatever_fails_behind_them(
    site: Site, user: str, port: int, hops: str, connections: int
) -> None:
    jump = ",".join(f"{hop}@127.0.0.1:{site.server.port}" for hop in hops.split(","))
    variables = {"ansible_ssh_common_args": f"-J {jump}", "ansible_port": port or site.server.port}
    told = left_open(site, "plan", "-i", site.inventory(**{user: variables}))
    assert told.startswith(f"{0 if user == 'good' else 4} 0 0 "), told
    assert site.server.accepted == 3 * connections and (port == 0 or "cannot connect to it (connect failed)" in told)


#: Runs a verb over an inventory; prints how many hosts were read, how many states and connections of nodes are left
#: beside the result, and how many verdicts are stored more than once.
LEFT = """
import gc, sys
from gpuready.inventory.hosts import load
from gpuready.model.state import NodeState
from gpuready.operations.ssh import BoundedTransport
from gpuready.run import converge
from gpuready.run.access import Access
from gpuready.run.fleet import Fleet

options = {"batch": "100%", "max_fail": "9"} if sys.argv[1] == "apply" else {}
fleet = Fleet(load([sys.argv[2]]).chosen, Access(selected=frozenset({"memlock"})), lambda host, what: None)
run = getattr(converge, sys.argv[1])(fleet, **options)
gc.collect()
found = [item for item in gc.get_objects() if isinstance(item, (NodeState, BoundedTransport))]
checks = [check for host in run.hosts for check in host.checks]
print(sum(host.probed for host in run.hosts), len(found), len({*map(id, checks)}) - len({*checks}))
"""


@pytest.mark.parametrize("verb", ["plan", "verify", "apply"])
def test_states_and_connections_of_a_fleet_do_not_stay_in_memory(site: Site, verb: str) -> None:
    path = site.inventory(**{f"lies_about_steps{number}": {} for number in range(5)})
    assert site.ran([sys.executable, "-c", LEFT, verb, path]).stdout == "5 0 0\n"


@pytest.mark.parametrize("words", [(), ("--level", "stress")])
def test_the_hosts_of_a_rack_are_compared_when_their_states_are_forgotten(
    site: Site, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = fabric().driver
    assert isinstance(node.smi, str)
    rows = h200_lines("".join(f"{line}\n" for line in node.pci), node.smi)
    monkeypatch.setitem(TRICKS, "in_a_rack", lambda session: (session.answer(rows), session.leave()))
    path = site.inventory(**{f"in_a_rack{number}": {"rack": "r1"} for number in range(2)})
    hosts, _ = site.run("verify", *words, "-i", path, "-e", "maintenance.spread_by=rack")
    for host in hosts.values():
        found = {check["id"]: check["status"] for check in host["checks"]}
        assert (found["gpu.rack"], found["driver.imex_domain"]) == ("pass", "skip")


BRIDGE = """
import socket, sys, threading, os
there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def back():
    while data := there.recv(65536):
        os.write(1, data)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 65536):
    there.sendall(data)
"""


@pytest.mark.fault("proxy-program")
def test_a_proxycommand_works_or_the_message_names_its_program_and_what_it_printed(site: Site) -> None:
    (site.home / "bridge").write_text(BRIDGE)
    commands = {
        "works": f"{sys.executable} {site.home}/bridge {site.server.port}",
        "missing": "nowhere-to-be-found %h",
        "ends": "sh -c 'echo no route to the bastion >&2; exit 3'",
        "ends_without_a_word": "true",
    }
    arguments = {name: "-o " + shlex.quote(f"ProxyCommand={command}") for name, command in commands.items()}
    path = site.inventory(
        **{name: {"ansible_ssh_common_args": text, "ansible_timeout": 100} for name, text in arguments.items()}
    )
    hosts, _ = site.run("plan", "--allow-exec", "-i", path)
    messages = {name: (host["error"] or {}).get("message") for name, host in hosts.items()}
    where = f"localhost:{site.server.port}: the ProxyCommand in the inventory: "
    assert messages == {
        "works": None,
        "missing": where + "nowhere-to-be-found cannot be started (No such file or directory)",
        "ends": where + "sh ended with 3 (no route to the bastion)",
        "ends_without_a_word": where + "true ended with 0",
    }
    assert all(host["seconds"] < 60 for name, host in hosts.items() if name != "works"), "they waited for the limit"
    assert "correct the inventory" in hosts["missing"]["error"]["remedy"]


#: Closes the pipes of a ProxyCommand while another greenlet has just begun to wait for them.
CLOSED = """
import gevent
import gpuready.operations.startup
from gpuready.operations.ssh import Proxy
proxy = Proxy("cat")
reader = gevent.spawn(proxy.recv, 1)
gevent.sleep(0)
proxy.close()
reader.join()
print(isinstance(reader.exception, OSError))
"""


@pytest.mark.fault("proxy-program")
def test_a_proxycommand_that_is_closed_while_it_is_read_does_not_abort_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.fault("proxy-program")
def test_the_users_own_proxycommand_is_named_by_its_file(site: Site) -> None:
    (site.home / ".ssh" / "config").write_text("Host *\n  ProxyCommand nowhere-to-be-found %h\n")
    hosts, _ = site.run("plan", "-i", site.inventory(good={}))
    assert "the ProxyCommand in ~/.ssh/config: nowhere-to-be-found" in hosts["good"]["error"]["message"]


@pytest.mark.fault("D12", "descriptors-exhausted")
@pytest.mark.parametrize("verb", ["plan", "apply --yes --batch 100% --only memlock"])
def test_more_hosts_than_descriptors(site: Site, verb: str) -> None:
    """The hard limit is what a system allows: hosts that do not fit wait for their turn."""
    hosts: dict[str, dict[str, object]] = {f"lies_about_steps{number}": {} for number in range(120)}
    words = [GPUREADY, *verb.split(), "--parallel", "120", "-i", site.inventory(**hosts), "--output", "json"]
    done = site.ran(["prlimit", "--nofile=80:80", *words])
    outcomes = [host["outcome"] for host in json.loads(done.stdout)["hosts"].values()]
    assert outcomes == ["would_change" if verb == "plan" else "failed"] * 120  # nothing changes on these nodes
    assert "Too many open files" not in done.stdout
    assert 2 <= site.server.peak <= 80 // 4, "connections at once; one takes up to 4 descriptors"


@pytest.mark.fault("endless-line")
def test_packets_that_no_session_sees_are_counted_by_the_connection(site: Site) -> None:
    """The session counts what its script prints; SSH's own packets never reach it."""
    hosts, _ = site.run("plan", "--probe-timeout", "600", "-i", site.inventory(packets_without_meaning={}))
    assert "sent more than" in hosts["packets_without_meaning"]["error"]["message"]


#: Runs a command line; prints how many bytes its sockets have read.
READ = """
import contextlib, io, sys
if sys.argv[1] != "trust":
    import gpuready.operations.startup  # gevent has its own class
import socket
from gpuready.cli.app import run

class Counted(socket.socket):
    read = 0
    def recv(self, *args):
        data = super().recv(*args)
        Counted.read += len(data)
        return data

socket.socket = Counted
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
    code = run(sys.argv[1:])
print(code, Counted.read, out.getvalue())
"""


@pytest.mark.fault("endless-line")
@pytest.mark.parametrize(
    ("flood", "why"),
    [
        ("banner_without_end", "the port is open, but no SSH server answered"),
        ("packets_before_the_login", "the host sent more data than allowed before the login"),
    ],
)
@pytest.mark.parametrize("reader", ["trust", "plan", "jump host"])
def test_before_the_login_a_host_may_send_little(site: Site, reader: str, flood: str, why: str) -> None:
    """Whatever else ends the connection in time, gpuready reads no more than the limit."""
    with contextlib.closing(Server(site.server.key, RAW[flood])) as server:
        variables: dict[str, object] = {"ansible_port": server.port}
        if reader == "jump host":
            variables = {"ansible_ssh_common_args": f"-J hop@127.0.0.1:{server.port}"}
        path = site.inventory(good=variables)
        words = ["trust", "--yes"] if reader == "trust" else ["plan"]
        told = site.ran([sys.executable, "-c", READ, *words, "-i", path]).stdout
    code, read, _ = told.split(" ", 2)
    assert int(code) == 4 and 0 < int(read) <= HANDSHAKE and why in told, told
