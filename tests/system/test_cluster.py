"""A run on Dask: the same result as in one process, whatever happens to workers, scheduler and controller."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from xml.etree import ElementTree

import pytest
from distributed.security import Security

from tests.lab import Lab, Machine, module, scale
from tests.system.faults import hold_dpkg, idle, installations, leftovers, let_go, lock_is_free, settled, until
from tests.system.harness import ANY_SPEED, Gpuready, Inventories, Result

DASK = str(Path(sys.executable).parent / "dask")
#: An apply of two pristine hosts shows a few more steps.
STEPS = 30


@pytest.fixture
def two(lab: Lab) -> Iterator[list[Machine]]:
    with lab.machine() as a, lab.machine("debian12") as b:
        yield [a, b]


@pytest.fixture
def three(lab: Lab, two: list[Machine]) -> Iterator[list[Machine]]:
    with lab.machine() as c:
        yield [*two, c]


def outcomes(result: Result, machines: list[Machine]) -> list[str]:
    return [result.host(machine.name)["outcome"] for machine in machines]


@dataclass
class Theirs:
    """A scheduler and workers that speak TLS, as a user would start them."""

    address: str
    env: Mapping[str, str]
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]
    logs: list[Path]

    def busy(self) -> list[subprocess.Popen[bytes]]:
        """The workers that have started a process for a chunk."""
        return [each for each in self.workers if each.poll() is None and children(each.pid)]


def children(pid: int) -> list[int]:
    """The processes below one, however deep, that do a chunk."""
    found = []
    words = ["ps", "-ww", "-eo", "pid=,ppid=,args="]
    for line in subprocess.run(words, capture_output=True, text=True).stdout.splitlines():
        child, parent, args = line.split(None, 2)
        if int(parent) == pid:
            found += [int(child)] * ("gpuready.run.process" in args) + children(int(child))
    return found


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Theirs]:
    """Two workers, each with one thread and without a nanny: when one is killed, it stays dead."""
    security = Security.temporary()
    env = dict(os.environ)
    for name in (
        "ca_file",
        "scheduler_cert",
        "scheduler_key",
        "worker_cert",
        "worker_key",
        "client_cert",
        "client_key",
    ):
        value = getattr(security, f"tls_{name}")
        role, _, kind = name.rpartition("_")
        path = tmp_path / f"{name}.pem"
        path.write_text("".join(value) if isinstance(value, tuple) else value)
        key = "CA_FILE" if role == "ca" else f"{role.upper()}__{kind.upper()}"
        env[f"DASK_DISTRIBUTED__COMM__TLS__{key}"] = str(path)
    env["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "True"
    with ExitStack() as stack:
        log = tmp_path / "scheduler.log"
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--protocol", "tls"]
        scheduler = stack.enter_context(started(log, env, *words))
        until(lambda: "Scheduler at" in log.read_text(), 60)
        found = re.search(r"tls://[\d.:]+", log.read_text())
        assert found is not None
        workers, logs = [], []
        for number in range(2):
            logs.append(tmp_path / f"worker{number}.log")
            words = [
                "worker", found[0], "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory",
                str(tmp_path / f"space{number}"), "--death-timeout", "30",
            ]  # fmt: skip
            workers.append(stack.enter_context(started(logs[-1], env, *words)))
        until(lambda: all("Registered to" in each.read_text() for each in logs), 60)
        yield Theirs(found[0], env, scheduler, workers, logs)


@contextmanager
def started(log: Path, env: Mapping[str, str], *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen([DASK, *words], env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_two_workers_do_what_one_process_does(two: list[Machine], gpuready: Gpuready, inventory: Inventories) -> None:
    where, names = inventory(two), [machine.name for machine in two]
    first = gpuready.finish(gpuready.start("apply", "--yes", "--workers", "2", inventory=where), code=0)
    assert outcomes(first, two) == ["changed"] * 2, first.explain()
    assert first.document["batches"] == [[name] for name in names]
    again = gpuready.finish(gpuready.start("apply", "--yes", "--workers", "2", inventory=where), code=0)
    assert [(host["outcome"], host["execs"]) for host in again.document["hosts"].values()] == [("ok", 1)] * 2
    verified = gpuready.finish(gpuready.start("verify", "--workers", "2", inventory=where), code=0)
    alone = gpuready("verify", inventory=where, code=0)
    for name in names:
        assert [(c["id"], c["status"]) for c in verified.host(name)["checks"]] == [
            (c["id"], c["status"]) for c in alone.host(name)["checks"]
        ]
        assert f"{name}  probe" in verified.stderr
    gone = gpuready.finish(gpuready.start("remove", "--yes", "--workers", "2", inventory=where), code=0)
    assert outcomes(gone, two) == ["changed"] * 2, gone.explain()


def begun(machines: list[Machine], gpuready: Gpuready, where: Path, theirs: Theirs, batch: str = "100%") -> Popen[str]:
    """An apply on their workers that is in the middle of dpkg on its first two hosts."""
    markers = [hold_dpkg(m) for m in machines]
    options = ("--yes", "--batch", batch, "--scheduler", theirs.address)
    process = gpuready.start("apply", *options, inventory=where, env=theirs.env)
    until(lambda: all(marker.exists() for marker in markers[:2]), 60)
    return process


def go_on(machines: list[Machine]) -> None:
    """Let dpkg run, here and later."""
    for m in machines:
        (m.root / "etc/apt/apt.conf.d/99held").unlink()
        let_go(m)


def test_a_worker_is_killed_in_the_middle(
    two: list[Machine], gpuready: Gpuready, inventory: Inventories, theirs: Theirs
) -> None:
    """Its host is taken over by the other one, when the step that had begun there has ended."""
    where = inventory(two)
    process = begun(two, gpuready, where, theirs)
    victim = theirs.busy()[0]
    doing = children(victim.pid)
    victim.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in doing), 30, "the dead worker's processes end")
    until(lambda: any(map(lock_is_free, two)), 60, "the lock of its host is free")
    left = next(m for m in two if lock_is_free(m))
    go_on([left])
    until(lambda: idle(left), 60)
    go_on([m for m in two if m is not left])
    result = gpuready.finish(process, code=0)
    assert set(outcomes(result, two)) <= {"changed", "ok"}, result.explain()
    assert not any(leftovers(m) for m in two)
    settled(gpuready, where)


def test_the_scheduler_is_killed_in_the_middle(
    two: list[Machine], gpuready: Gpuready, inventory: Inventories, theirs: Theirs
) -> None:
    where = inventory(two)
    process = begun(two, gpuready, where, theirs)
    theirs.scheduler.kill()
    result = gpuready.finish(process, code=4)
    for m in two:
        assert result.host(m.name)["error"]["message"] == "the connection to the Dask scheduler broke", result.explain()
    go_on(two)
    for worker in theirs.workers:
        worker.wait(timeout=scale.seconds(60))
    until(lambda: all(lock_is_free(m) and idle(m) for m in two), 60)
    again = gpuready("apply", "--yes", "--batch", "100%", inventory=where, code=0)
    assert set(outcomes(again, two)) <= {"changed", "ok"}, again.explain()
    settled(gpuready, where)


def test_the_controller_is_killed_in_the_middle(
    two: list[Machine], gpuready: Gpuready, inventory: Inventories, theirs: Theirs
) -> None:
    """The workers end the chunks that had begun; no lock stays, and another run has nothing to mend."""
    where = inventory(two)
    process = begun(two, gpuready, where, theirs)
    process.kill()
    process.communicate()
    go_on(two)
    until(lambda: not theirs.busy(), 120, "the chunks end")
    assert not any(leftovers(m) for m in two)
    settled(gpuready, where)


def steps(process: Popen[str], count: int) -> int:
    """Wait until a run has shown so many steps of hosts, or has ended; return how many it has shown."""
    assert process.stderr is not None
    seen = 0
    while seen < count and process.stderr.readline():
        seen += 1
    return seen


@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize("seed", range(int(os.environ.get("GPUREADY_KILLS", "1"))))
def test_after_kill_9_at_random_resume_does_the_rest_once(
    two: list[Machine], gpuready: Gpuready, inventory: Inventories, theirs: Theirs, tmp_path: Path, seed: int
) -> None:
    """A seed chooses who is killed, and after which step. ``GPUREADY_KILLS=50`` tries fifty seeds."""
    chance, where = random.Random(seed), inventory(two)
    words = ("apply", "--yes", "--batch", "100%", "--state-dir", str(tmp_path / "state"))
    cluster = ("--scheduler", theirs.address)
    process = gpuready.start(*words, *cluster, inventory=where, json_output=False, env=theirs.env)
    seen = steps(process, chance.randrange(1, STEPS))
    who, victim = chance.choice(
        [("controller", process), ("scheduler", theirs.scheduler), *(("worker", each) for each in theirs.workers)]
    )
    doing = [pid for worker in theirs.workers for pid in children(worker.pid)]
    victim.kill()
    print(f"seed {seed}: kill {who} after {seen} steps")
    process.communicate(timeout=scale.seconds(240))
    doing += [pid for worker in theirs.workers for pid in children(worker.pid)]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in doing), 120, "the chunks end")
    until(lambda: all(lock_is_free(m) and idle(m) for m in two), 120, "the nodes are idle")
    assert [m.run("dpkg --audit").stdout for m in two] == ["", ""]
    result = gpuready(*words, "--resume", inventory=where, code=0)
    assert set(outcomes(result, two)) <= {"changed", "ok"}, result.explain()
    assert [installations(m) for m in two] == [1, 1] and not any(leftovers(m) for m in two)
    settled(gpuready, where)


@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_reaches_the_workers(
    three: list[Machine], gpuready: Gpuready, inventory: Inventories, theirs: Theirs, twice: bool
) -> None:
    """Once, what has begun ends. Twice, a step that has begun ends by itself. Nothing new begins; no lock stays."""
    where = inventory(three)
    process = begun(three, gpuready, where, theirs, batch="2")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    told = next(line for line in process.stderr if "interrupted" in line)
    assert all(m.name in told for m in three[:2]) and three[2].name not in told, told
    if twice:
        process.send_signal(signal.SIGINT)
    else:
        go_on(three)
    result = gpuready.finish(process, code=130)
    assert result.host(three[2].name)["outcome"] == "not_attempted", result.explain()
    for m in three[:2]:
        assert result.changed(m.name) == (set() if twice else {"repository", "toolkit"}), result.explain()
    until(lambda: not theirs.busy(), 30)
    if twice:
        go_on(three)
    until(lambda: all(map(lock_is_free, three)), 60)
    until(lambda: all(map(idle, three)), 60)
    gpuready("apply", "--yes", "--batch", "100%", inventory=where, code=0)
    settled(gpuready, where)


#: A Python that loads no GPU: it waits, then prints what two H200 gave (tests/data/stress).
PYTHON = """#!/bin/sh
case $* in *GPU-0*) ;; *) exit 1 ;; esac
cat >/dev/null
echo memory >&3
until [ -e /var/tmp/go ]; do sleep 0.1; done
cat /opt/train/figures.json
"""
SMI = "#!/bin/sh\ncase $* in *--query-gpu=index*) cat /opt/train/cards.csv ;; esac\n"
STRESS = Path(__file__).parents[1] / "data/stress"


@pytest.fixture
def trainers(two: list[Machine], inventory: Inventories) -> Path:
    """Two hosts whose driver seems to be loaded. The only GPU of the second one is slower than those of the first."""
    recorded, cards = json.loads((STRESS / "plain.json").read_text()), (STRESS / "cards.csv").read_text()
    for m in two:
        module.load(m, "580.159.04")
        m.script("/opt/train/bin/python", PYTHON)
        m.script("/usr/local/bin/nvidia-smi", SMI)
        (m.root / "opt/train/figures.json").write_text(json.dumps(recorded) + "\n")
        (m.root / "opt/train/cards.csv").write_text(cards)
        (recorded["gpus"][0]["memory"]["median"], recorded["gpus"][1:], cards) = (
            3500,
            [],
            cards.splitlines()[0] + "\n",
        )
    return inventory(two, hardware={"gpus": 2}, verify={"torch": "/opt/train/bin/python"})


def loads(machine: Machine) -> bool:
    return machine.run("pgrep -f train/bin/python", check=False).returncode == 0


def cases(report: Path) -> list[tuple[str | None, str | None, list[str]]]:
    """The cases of a JUnit report, and how each ended."""
    root = ElementTree.parse(report).getroot()
    return [(case.get("classname"), case.get("name"), [end.tag for end in case]) for case in root.iter("testcase")]


def test_gpus_are_compared_over_the_hosts_of_all_workers(
    trainers: Path, two: list[Machine], gpuready: Gpuready, tmp_path: Path
) -> None:
    for m in two:
        let_go(m)
    words, found = ("verify", "--level", "stress", "--seconds", "1"), []
    for number, options in enumerate([(), ("--workers", "2")]):
        given = (*words, *options, "--output", f"junit:{tmp_path}/{number}.xml")
        found.append(gpuready.finish(gpuready.start(*given, inventory=trainers), code=3))
    alone, divided = found
    for m in two:
        one, other = (each.host(m.name)["checks"] for each in found)
        assert divided.host(m.name)["stress"] == alone.host(m.name)["stress"]
        assert [(c["id"], c["status"]) for c in other] == [(c["id"], c["status"]) for c in one]
        assert [c for c in other if c["level"] == "stress"] == [c for c in one if c["level"] == "stress"]
    memory = divided.check("stress.memory", two[1].name)
    assert (memory["status"], divided.check("stress.memory", two[0].name)["status"]) == ("fail", "pass"), memory
    assert "below the median of 3 GPUs" in memory["summary"]
    assert cases(tmp_path / "1.xml") == cases(tmp_path / "0.xml")


def test_a_worker_is_killed_under_load(trainers: Path, two: list[Machine], gpuready: Gpuready, theirs: Theirs) -> None:
    """The other one loads its hosts again. Ctrl-C ends the load on all hosts."""
    words = ("stress", "--seconds", "600", "--scheduler", theirs.address)
    process = gpuready.start(*words, inventory=trainers, env=theirs.env)
    until(lambda: all(map(loads, two)), 60)
    theirs.busy()[0].kill()
    until(lambda: not all(map(loads, two)), 60, "the load ends with the worker")
    for m in two:
        let_go(m)
    result = gpuready.finish(process, code=3)
    assert {result.check("stress.run", m.name)["status"] for m in two} == {"pass"}, result.explain()

    for m in two:
        m.run("rm /var/tmp/go")
    process = gpuready.start(*words, inventory=trainers, env=theirs.env)
    until(lambda: any(map(loads, two)), 60)
    process.send_signal(signal.SIGINT)
    gpuready.finish(process, code=130)
    until(lambda: not any(loads(m) or not lock_is_free(m) or leftovers(m) for m in two), 60)


def figures(result: Result) -> list[tuple[object, ...]]:
    """What a run of fabric tested, and how each test ended."""
    return sorted(
        (each["round"], each["test"], each["server"]["host"], each["client"]["host"], each["status"])
        for each in result.document["fabric"]["findings"]
    )


CLIENT_WAITS = """#!/bin/sh
case " $* " in *" -c "*) until [ -e /var/tmp/go ]; do sleep 0.1; done ;; esac
exec /usr/bin/iperf3 "$@"
"""


def measures(machine: Machine) -> bool:
    return machine.run("pgrep -x iperf3", check=False).returncode == 0


def test_pairs_of_hosts_are_tested_on_workers(
    three: list[Machine], gpuready: Gpuready, inventory: Inventories, theirs: Theirs, tmp_path: Path
) -> None:
    """In the rounds of one process, also if a worker is killed. Ctrl-C ends the tests."""
    for m in three:
        m.install("iperf3")
    where, found = inventory(three, verify=ANY_SPEED), []
    on_theirs = ("--scheduler", theirs.address)
    for number, options in enumerate([(), on_theirs]):
        words = (
            "fabric",
            "--tests",
            "tcp_connect,tcp_bw",
            "--seconds",
            "1",
            "--output",
            f"junit:{tmp_path}/{number}.xml",
        )
        process = gpuready.start(*words, *options, inventory=where, env=theirs.env)
        found.append(gpuready.finish(process, code=0))
    alone, divided = found
    assert figures(divided) == figures(alone) and {row[0] for row in figures(alone)} == {1, 2, 3}
    for m in three:
        assert divided.checks("pass", host=m.name) == alone.checks("pass", host=m.name)
    assert sorted(cases(tmp_path / "1.xml")) == sorted(cases(tmp_path / "0.xml"))

    words = ("fabric", "--tests", "tcp_bw", *on_theirs)
    pair = three[:2]
    for m in pair:
        m.script("/usr/local/bin/iperf3", CLIENT_WAITS)
    process = gpuready.start(*words, "--seconds", "1", inventory=inventory(pair, verify=ANY_SPEED), env=theirs.env)
    until(lambda: any(map(measures, pair)), 60)
    theirs.busy()[0].kill()
    for m in pair:
        let_go(m)
    killed = gpuready.finish(process, code=0)
    assert figures(killed) == [row for row in figures(alone) if row[:2] == (1, "tcp_bw")]

    process = gpuready.start(*words, "--seconds", "600", inventory=where, env=theirs.env)
    until(lambda: any(map(measures, three)), 60)
    process.send_signal(signal.SIGINT)
    stopped = gpuready.finish(process, code=130)
    assert "not_attempted" in outcomes(stopped, three)
    until(lambda: not any(measures(m) or not lock_is_free(m) or leftovers(m) for m in three), 60)


def test_what_is_refused(two: list[Machine], gpuready: Gpuready, inventory: Inventories) -> None:
    where = inventory(two)
    for address in ("tcp://10.0.0.5:8786", "10.0.0.5:8786", "scheduler.example:8786"):
        plain = gpuready.finish(gpuready.start("plan", "--scheduler", address, inventory=where), code=64)
        assert "without TLS" in plain.document["error"]["message"]
    both = gpuready("plan", "--workers", "2", "--scheduler", "tls://127.0.0.1:1", inventory=where, code=64)
    assert "give only one" in both.document["error"]["message"]
    nobody = gpuready.finish(gpuready.start("plan", "--scheduler", "127.0.0.1:1", inventory=where), code=4)
    assert "does not answer" in nobody.document["error"]["message"]
