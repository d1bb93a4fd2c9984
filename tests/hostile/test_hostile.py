"""One hostile node among good ones: it gets one clear message, and nobody else notices it.

The servers are processes of their own (server.py); gpuready is the real executable.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
import pytest
import yaml

from tests.hostile.server import RAW, SAYS, TRICKS
from tests.lab import scale
from tests.system.faults import Terminal, until
from tests.system.harness import GPUREADY

pytestmark = pytest.mark.long

GOOD = [f"good{number}" for number in range(1, 9)]
#: Tricks that show in steps, so only apply meets them.
STEPS = ("lies_about_steps", "holds_the_lock", "garbage_from_steps")
#: Those of test_connections.py.
LATER = ("hangs_in_steps", "cut_after_the_probe", "gone_after_the_probe")
FLOODS = ("endless_line", "endless_empty_lines", "endless_stderr", "packets_without_meaning", "slow_to_mask",
          "default_attributes", "banner_without_end")  # fmt: skip
MEMORY = 300 << 20
#: Seconds on an idle machine in which a good host answers the probe, and for which a silent one is waited.
PATIENCE = 8
#: What may never reach a terminal: C0 but line ends and the escapes of our own colours and cursor; C1; bidi controls.
RAW_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b(?!\[[0-9;?]*[mKAhl])"
)


@dataclass
class Servers:
    """Where the tricks and the good hosts are served, and a home directory whose user may log in there."""

    home: Path
    bad: dict[str, Any]
    good: dict[str, Any]
    made: int = field(default=0)

    def inventory(self, names: Iterable[str], **more: dict[str, object]) -> Path:
        """An inventory of hosts: a trick's name, with a number where there are several, or a good host.

        ``more``: variables of a host, by its name.
        """
        hosts: dict[str, dict[str, object]] = {}
        for name in names:
            bad = {*TRICKS, *SAYS, *RAW}
            user = name if name in bad else name.rstrip("0123456789")
            server = self.bad if user in bad else self.good
            port = server["ports"].get(user, server["ports"][""])
            hosts[name] = {"ansible_port": port, "ansible_user": user, **more.get(name, {})}
        variables = {
            "ansible_host": "127.0.0.1",
            "ansible_ssh_private_key_file": str(self.home / "key"),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.home}/known",
            "gpuready": {"hardware": {"gpus": 1}, "memlock": "unlimited"},
        }
        self.made += 1
        path = self.home / f"inventory{self.made}.yaml"
        path.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": variables}}, sort_keys=False))
        return path


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two processes: floods of the one take no time of the other's."""
    home = tmp_path_factory.mktemp("home")
    paramiko.RSAKey.generate(2048).write_private_key_file(str(home / "key"))
    with contextlib.ExitStack() as stack:
        pipe = subprocess.PIPE
        told = []
        for _ in range(2):
            words = [sys.executable, "-m", "tests.hostile.server"]
            process = stack.enter_context(subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            told.append(json.loads(process.stdout.readline()))
        known = [f"[127.0.0.1]:{port} {one['key']}\n" for one in told for port in one["ports"].values()]
        (home / "known").write_text("".join(known))
        yield Servers(home, *told)


@dataclass
class Ran:
    """A run that has ended: its result, its greatest memory, and for each host when it was done.

    ``worked``: how much CPU time gpuready had taken by then. It does not depend on what else the machine does.
    """

    code: int
    document: dict[str, Any]
    stderr: str
    memory: int
    done: dict[str, float]
    worked: dict[str, float]

    def message(self, host: str) -> str:
        """The host's one message, or nothing."""
        error = self.document["hosts"][host]["error"]
        return "" if error is None else str(error["message"])


def run(servers: Servers, verb: str, hosts: Iterable[str], timeout: float = 120, **more: dict[str, object]) -> Ran:
    """The real executable over these hosts."""
    words = [GPUREADY, *verb.split(), "-i", str(servers.inventory(hosts, **more)), "--output", "json"]
    patience = round(scale.seconds(PATIENCE))
    env = {**os.environ, "HOME": str(servers.home), "GPUREADY_PROBE_TIMEOUT": str(patience)}
    env.pop("SSH_AUTH_SOCK", None)
    out, peak = (servers.home / "out").open("w+"), servers.home / "peak"

    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "tests.hostile.peak", str(peak), *words], text=True, env=env,
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)  # fmt: skip
    guard = threading.Timer(scale.seconds(timeout), process.terminate)
    guard.start()
    done, worked, lines = {}, {}, []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if progress := re.match(r"\[ *[0-9.]+ s\] (\S+)", line):
            done[progress[1]] = time.monotonic() - began
            worked[progress[1]] = cpu_seconds(process.pid)
    process.wait()
    guard.cancel()
    out.seek(0)
    text = out.read()
    out.close()
    assert text, f"exit {process.returncode}: {''.join(lines)}"
    return Ran(process.returncode, json.loads(text), "".join(lines), int(peak.read_text()), done, worked)


def cpu_seconds(pid: int) -> float:
    """CPU time that the process's children have taken so far."""
    found = 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            found += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return found / os.sysconf("SC_CLK_TCK")


def slowest(ran: Ran) -> float:
    """Seconds until the last of the good hosts was done."""
    return max(ran.done[name] for name in GOOD)


@pytest.fixture(scope="module")
def alone(servers: Servers) -> Ran:
    """The good hosts without any other."""
    return run(servers, "plan", GOOD)


@pytest.mark.fault("hostile-node")
@pytest.mark.fault("D2")
@pytest.mark.fault("D3")
@pytest.mark.fault("D11")
def test_every_trick_has_one_message_and_no_effect_on_the_others(servers: Servers, alone: Ran) -> None:
    tricks = [name for name in (*TRICKS, *SAYS, *RAW) if name not in (*STEPS, *LATER)]
    ran = run(servers, "plan --parallel 100", dict.fromkeys([*GOOD, *tricks]))
    assert len(set(tricks)) >= 25
    for name in GOOD:
        assert ran.document["hosts"][name]["components"] == alone.document["hosts"][name]["components"], name
    wrong = {}
    for name in tricks:
        message = ran.message(name)
        harmless = SAYS.get(name) == "" and ran.document["hosts"][name]["outcome"] in ("ok", "would_change", "failed")
        parts = SAYS.get(name, "no SSH server answered|sent more data than allowed").split("|")
        if not harmless and (not message or not any(part in message for part in parts)):
            wrong[name] = message
        assert "\n" not in message, name
    assert wrong == {}
    assert "Traceback" not in ran.stderr and ran.document["error"] is None


@pytest.mark.fault("D3")
@pytest.mark.fault("endless-line")
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_costs_the_others_no_time_and_no_memory(servers: Servers, alone: Ran, name: str) -> None:
    ran = run(servers, "plan", [name, *GOOD])
    assert slowest(ran) < slowest(alone) + scale.seconds(15), ran.stderr  # without bounds: the better part of a minute
    assert ran.memory < MEMORY
    assert {ran.document["hosts"][good]["outcome"] for good in GOOD} == {"would_change"}


@pytest.mark.fault("D3", "short-lines", "held-loop")
def test_ten_hostile_nodes_fail_by_name_beside_256_good_ones_and_cost_them_little(servers: Servers) -> None:
    """In CPU time, because it does not depend on what else this machine does; the good ones alone are the measure."""
    good = [f"good{number}" for number in range(256)]
    ended = {"too_many_short_lines": "proc.text of the node's answer has", "work_without_end": "of CPU time",
             "endless_record": "sent more than", "endless_stderr": "sent more than"}  # fmt: skip
    hostile = ["short_lines", "slow_to_mask", *(f"{name}{number}" for name in ended for number in (1, 2))]
    by_themselves = run(servers, "plan --parallel 32 --probe-timeout 300", good, timeout=600)
    ran = run(servers, "plan --parallel 32 --probe-timeout 300", [*hostile, *good], timeout=600)
    for one in (by_themselves, ran):
        assert [one.document["hosts"][name]["outcome"] for name in good] == ["would_change"] * len(good)
    for name, says in ended.items():
        assert says in ran.message(f"{name}1") and says in ran.message(f"{name}2")
    took, alone = (max(one.worked[name] for name in good) for one in (ran, by_themselves))
    assert took < 2 * alone, (took, alone)


@pytest.mark.fault("D2")
@pytest.mark.fault("D8")
@pytest.mark.fault("spoofed-sudo")
def test_nothing_is_asked_on_the_terminal_and_nothing_raw_reaches_it(servers: Servers) -> None:
    names = ["spoofed_sudo", "spoofed_sudo_on_stdout", "escapes_in_the_refusal", "escapes_in_every_field",
             "unknown_record", "noise_without_newline"]  # fmt: skip
    for verb in ("plan", "verify --passive"):
        shown = Terminal(servers.home)
        shown.type("secret\n")
        process = shown.start(*verb.split(), "-i", str(servers.inventory([*names, *GOOD])), "--color", "always")
        assert process.wait(120) in (1, 3, 4), shown.shown
        until(lambda screen=shown: "hosts: " in screen.shown, 10)
        assert shown.unread() == len("secret\n") and "assword:" not in shown.shown
        assert "you shall not pass" in shown.shown and shown.unchanged()
        raw = RAW_CONTROLS.search(shown.shown)
        assert raw is None, shown.shown[max(0, raw.start() - 80) : raw.end() + 20]


@pytest.mark.fault("hostile-node")
@pytest.mark.parametrize("name", STEPS)
def test_a_node_that_lies_in_steps_fails_alone(servers: Servers, name: str) -> None:
    ran = run(servers, "apply --yes --batch 100% --only memlock", [name])
    host = ran.document["hosts"][name]
    assert host["outcome"] in ("failed", "unreachable") and ran.code in (1, 4), ran.stderr
    assert SAYS[name] in ran.message(name) and "\n" not in ran.message(name), ran.message(name)


@pytest.mark.parametrize("name", ["silence", "slow_drip", "banner_without_end", "slow_to_mask"])
def test_ctrl_c_ends_it_at_once(servers: Servers, name: str) -> None:
    may_have_ended = {"banner_without_end": (1, 4), "slow_to_mask": (0, 1, 3, 4)}.get(name, ())
    shown = Terminal(servers.home)
    process = shown.start("plan", "-i", str(servers.inventory([name, "good1"])), "--color", "never")
    until(lambda: "1 differs" in shown.shown or process.poll() is not None, 20)  # the good one is done
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (130, -signal.SIGINT, *may_have_ended), shown.shown
    assert time.monotonic() - began < scale.seconds(15)
    assert "Traceback" not in shown.shown


@pytest.mark.fault("D3")
def test_trust_takes_no_flood_for_a_host_key(servers: Servers) -> None:
    peak = servers.home / "peak"
    words = [sys.executable, "-m", "tests.hostile.peak", str(peak)]
    words += [GPUREADY, "trust", "--yes", "-i", str(servers.inventory([*RAW, "good1"]))]
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "HOME": str(servers.home)})
    assert done.returncode == 4 and "good1" in done.stdout and time.monotonic() - began < scale.seconds(60), done
    assert int(peak.read_text()) < MEMORY


@pytest.mark.fault("D3", "endless-line")
def test_a_flood_where_a_jump_host_should_be_stops_nobody(servers: Servers) -> None:
    """Whoever answers at its address speaks before its key is checked."""
    jump: dict[str, object] = {
        "ansible_ssh_extra_args": f"-o ProxyJump=u@localhost:{servers.bad['ports']['banner_without_end']}"
    }
    ran = run(servers, "plan", ["behind1", "good1"], behind1=jump)
    outcomes = {name: host["outcome"] for name, host in ran.document["hosts"].items()}
    assert outcomes == {"behind1": "unreachable", "good1": "would_change"}
    assert "no SSH server answered" in ran.message("behind1")
