"""What leaves this machine for the workers of a cluster, and to whom."""

import pickle
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import dask.config
import distributed  # noqa: F401  # its settings
import psutil
import pytest

from gpuready import __version__
from gpuready.base.errors import GpureadyError, SpecError, UsageError
from gpuready.inventory import secrets
from gpuready.inventory.hosts import load
from gpuready.inventory.secrets import Secret
from gpuready.result.model import FINISHED, INTERRUPTED, HostResult, Run
from gpuready.run import worker
from gpuready.run.access import Access, Chunk, Work, Workers
from gpuready.run.cluster import CHANGE, Cluster, check_address, chunks, connected, plan, same_version
from gpuready.run.follow import NOT_BEGUN, still_running
from tests.command import write_hosts
from tests.lab import scale


@pytest.mark.parametrize(
    "address", ["10.0.0.5:8786", "tcp://10.0.0.5:8786", "tcp://dask.example:8786", "ws://[fd00::1]:8786"]
)
def test_another_machine_needs_tls(address: str) -> None:
    with pytest.raises(UsageError, match="without TLS"):
        check_address(address)
    check_address(address, plain=True)


@pytest.mark.parametrize(
    "address", ["tls://10.0.0.5:8786", "wss://dask.example:443", "127.0.0.1:8786", "tcp://[::1]:1"]
)
def test_tls_and_this_machine_are_accepted(address: str) -> None:
    check_address(address)


def test_the_guide_names_settings_that_dask_has() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/fleets.md").read_text("utf-8")
    exported = dict(re.findall(r"^export (DASK_\w+)=(\S+)$", guide, re.M))
    found = dask.config.collect_env(exported)["distributed"]["comm"]
    assert found == {
        "require_encryption": True,
        "tls": {"ca_file": "ca.pem", "client": {"cert": "gpuready.pem", "key": "gpuready-key.pem"}},
    }
    known = dask.config.get("distributed.comm")
    assert {"require-encryption", "tls"} <= known.keys() and {"ca-file", "client"} <= known["tls"].keys()


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ({}, "the Dask cluster has no worker"),
        ({"tls://w1:1": __version__, "tls://w2:1": "0.0.9"}, "worker tls://w2:1 has gpuready 0.0.9, and this is"),
        ({"tls://w1:1": PackageNotFoundError("gpuready")}, "worker tls://w1:1 has no gpuready, and this is"),
    ],
)
def test_workers_have_the_same_release(workers: dict[str, object], message: str) -> None:
    client = types.SimpleNamespace(run=lambda function, *words, on_error: workers)
    with pytest.raises(GpureadyError, match=message):
        same_version(client)
    same_version(types.SimpleNamespace(run=lambda function, *words, on_error: {"tls://w1:1": __version__}))


def test_a_reference_travels_and_the_secret_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "sudo"
    secret.write_text("hunter2-in-clear")
    where = write_hosts(
        tmp_path, f"all: {{hosts: {{n1: {{gpuready: {{}}, ansible_become_password: 'file:{secret}'}}}}}}\n"
    )
    monkeypatch.setattr(secrets, "_resolved", {})
    hosts = pickle.dumps(load([where], allow_exec=True).chosen)
    assert b"hunter2" not in hosts and f"file:{secret}".encode() in hosts
    assert secrets.used_references() == (f"file:{secret}",)

    def arrives() -> str:
        """What a worker reads, as gpuready.run.process does: it may have another secret there, or none."""
        monkeypatch.setattr(secrets, "_resolved", {})
        secrets.resolve(f"file:{secret}", allow_exec=True)
        password = pickle.loads(hosts)[0].connection.become_password
        return str(password.reveal())

    secret.write_text("of-the-worker")
    assert arrives() == "of-the-worker"
    secret.unlink()
    with pytest.raises(SpecError, match="cannot be read"):
        arrives()


def test_a_typed_password_stays_here() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("typed"))


@pytest.mark.parametrize(("hosts", "threads"), [(1, 4), (7, 2), (64, 1), (65, 1), (1000, 3), (3, 8)])
def test_chunks_are_a_partition(hosts: int, threads: int) -> None:
    names = [f"n{number}" for number in range(hosts)]
    parts = chunks(names, threads)
    assert [name for part in parts for name in part] == names
    assert all(1 <= len(part) <= 64 for part in parts) and len(parts) >= min(hosts, threads)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_pairs_stay_together() -> None:
    names = [f"n{number}" for number in range(14)]
    assert chunks(names, 3, together=2) == [names[:4], names[4:8], names[8:]]
    assert chunks(names, 8, together=2) == [names[2 * n : 2 * n + 2] for n in range(7)]
    assert chunks(names, 8, together=14) == [names]
    assert {len(part) % 2 for part in chunks([*names, *names] * 10, 3, together=2)} == {0}


class Future:
    """A task of the client below, with the status and the result that a test gives it."""

    def __init__(self, status: str = "finished", result: Run | None = None) -> None:
        self.status, self._result = status, result

    def done(self) -> bool:
        return self.status != "pending"

    def result(self) -> bytes | None:
        return pickle.dumps(self._result) if self._result is not None else None

    def exception(self) -> Exception:
        return OSError("killed")


class Client:
    """Stands for Dask's client: keeps the chunks, and plays what becomes of them."""

    def __init__(self, play: Callable[[Chunk], Future]) -> None:
        self.status, self.chunks, self.stopped = "running", list[Chunk](), list[int]()
        self._play = play

    def subscribe_topic(self, topic: str, handler: object) -> None:
        pass

    def nthreads(self) -> dict[str, int]:
        if self.status != "running":
            raise OSError("Timed out")
        return {"w1": 1, "w2": 1}

    def submit(self, function: object, run_id: str, payload: bytes, **options: Any) -> Future:
        self.chunks.append(pickle.loads(payload))
        return self._play(self.chunks[-1])

    def run(self, function: object, run_id: str, number: int, **options: Any) -> None:
        self.stopped.append(number)


def played(tmp_path: Path, play: Callable[[Chunk], Future], tick: Callable[[], None] = lambda: None) -> Cluster:
    where = write_hosts(tmp_path, "all: {hosts: {'n[1:2]': {}}, vars: {gpuready: {}}}\n")
    return Cluster(Client(play), load([where]).chosen, Access(), lambda host, what: None, tick=tick)


def ended(chunk: Chunk, outcome: str = "ok", *, interrupted: bool = False) -> Future:
    run = Run("", [HostResult(name, outcome=outcome) for name in chunk.names])
    if interrupted:
        run.interrupt()
    return Future(result=run)


def test_a_chunk_that_changes_hosts_may_begin_twice(tmp_path: Path) -> None:
    """The first time may have left a node drained, so the second one looks for that."""
    cluster = played(tmp_path, ended)
    cluster.each(Work("gpuready.run.converge:look_first"), ["n1"])
    cluster.each(Work(CHANGE), ["n1", "n2"])
    assert [chunk.access.again for chunk in cluster._client.chunks] == [frozenset(), {"n1"}, {"n2"}]


@pytest.fixture(autouse=True)
def hang_up() -> Iterator[None]:
    """SIGHUP is an interrupt; whatever a test makes of it ends with the test."""
    before = signal.signal(HUP, signal.default_int_handler)
    yield
    signal.signal(HUP, before)


LOOK = "gpuready.run.converge:look_first"
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@pytest.mark.parametrize(
    ("work", "signals", "sent", "aborted"),
    [
        (CHANGE, [INT], [INT], False),
        (CHANGE, [INT, INT], [INT, TERM], True),
        (CHANGE, [HUP], [INT], False),
        (CHANGE, [TERM], [TERM], True),
        (LOOK, [INT], [TERM], True),
    ],
)
def test_ctrl_c_lets_the_changes_end_and_a_second_one_aborts(
    tmp_path: Path, work: str, signals: list[int], sent: list[int], aborted: bool
) -> None:
    """What was done is in the result in every case."""
    rest = iter(signals)

    def interrupt() -> None:
        for number in rest:
            raise KeyboardInterrupt(number)

    cluster = played(tmp_path, lambda chunk: ended(chunk, "changed"), interrupt)
    run = cluster.work("apply", lambda run: cluster.each(Work(work), ["n1", "n2"]))
    assert run.error == (INTERRUPTED if aborted else FINISHED) and cluster._client.stopped == sent
    assert [host.outcome for host in run.hosts] == ["changed", "changed"]
    ignored = signal.getsignal(HUP) == signal.SIG_IGN
    assert ignored == (INT in sent), "the shell of a terminal that goes sends a second one"


def test_a_chunk_that_had_not_begun_is_not_attempted(tmp_path: Path) -> None:
    cluster = played(tmp_path, lambda chunk: ended(chunk, "would_change", interrupted=True))
    cluster.stopping = True
    cluster.each(Work(CHANGE), ["n1"])
    assert cluster.results["n1"].outcome == "not_attempted"


def test_a_chunk_whose_worker_died_before_the_interrupt_had_begun(tmp_path: Path) -> None:
    """Dask begins it again, and the worker then refuses it. Its hosts may be half changed, or drained."""

    def play(chunk: Chunk) -> Future:
        if chunk.names == ("n1",):
            cluster._news.put({"host": "n1", "what": "apply"})
            cluster._news.put({"host": "n2", "what": "would_change"})  # late, of the first look
        return Future()

    cluster = played(tmp_path, play)
    cluster._doing["n2"] = "ok"  # of the first look
    for result in cluster.results.values():
        result.outcome = "would_change"
    cluster.stopping = True
    cluster.each(Work(CHANGE), ["n1", "n2"])
    assert [result.outcome for result in cluster.results.values()] == ["unreachable", "not_attempted"]
    assert cluster.results["n1"].error.message == "its worker died, and the run was interrupted"
    assert cluster.results["n2"].notes == [NOT_BEGUN]


@pytest.mark.parametrize(("work", "before", "after"), [(CHANGE, "would_change", "not_attempted"), (LOOK, "ok", "ok")])
def test_what_the_first_look_found_stays_if_the_next_one_is_interrupted(
    tmp_path: Path, work: str, before: str, after: str
) -> None:
    cluster = played(tmp_path, lambda chunk: ended(chunk, "not_attempted", interrupted=True))
    found = HostResult("n1", outcome=before, probed=True, execs=3, notes=["a note"])
    cluster.results["n1"], cluster.stopping = found, True
    cluster.each(Work(work), ["n1"])
    assert cluster.results["n1"] is found
    assert (found.outcome, found.execs) == (after, 3)
    assert found.notes == ["a note", *([NOT_BEGUN] if work == CHANGE else [])]


def test_a_result_that_is_taken_twice_counts_once(tmp_path: Path) -> None:
    """The interrupt came while it was taken."""
    rest = iter([INT])

    def interrupt(result: HostResult) -> None:
        for number in rest:
            raise KeyboardInterrupt(number)

    cluster = played(tmp_path, lambda chunk: Future(result=Run("", [HostResult("n1", outcome="changed", execs=2)])))
    cluster.results["n1"].execs, cluster.ended = 3, interrupt
    cluster.work("apply", lambda run: cluster.each(Work(CHANGE), ["n1"]))
    assert cluster._client.stopped == [INT] and cluster.results["n1"].execs == 5


def test_the_user_is_told_before_the_workers_are(tmp_path: Path) -> None:
    """That waits for all of them."""
    rest, told = iter([INT]), list[object]()

    def interrupt() -> None:
        for number in rest:
            raise KeyboardInterrupt(number)

    cluster = played(tmp_path, ended, interrupt)
    cluster.log = lambda text: told.append((text, [*cluster._client.stopped]))
    cluster.work("apply", lambda run: cluster.each(Work(CHANGE), ["n1", "n2"]))
    assert told == [("interrupted; nothing else begins. Ctrl-C again aborts at once", [])]
    assert still_running({"n1": "apply"}) == (
        "interrupted; nothing else begins. Still running: n1: apply. Ctrl-C again aborts at once"
    )


def test_the_batches_are_planned_for_all_hosts_together(tmp_path: Path) -> None:
    """Not by the workers, which would take a share of each chunk."""
    cluster = played(tmp_path, ended)
    plan(cluster)
    assert {chunk.work.function for chunk in cluster._client.chunks} == {"gpuready.run.converge:compare"}


def test_the_workers_of_dask_get_the_interrupt(tmp_path: Path) -> None:
    """Nobody else reaches what runs here."""
    with connected(Workers(count=1)) as client:
        ports = [each.laddr for each in psutil.Process().net_connections() if each.status == psutil.CONN_LISTEN]
        assert {place.ip for place in ports} == {"127.0.0.1"}
        for place in ports:
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://{place.ip}:{place.port}/health")
        cluster = Cluster(client, (), Access(), lambda host, what: None)
        cluster._stop(signal.SIGTERM)
        limit = scale.Limit(30)
        while cluster._id not in worker._stopped:
            assert not limit.over()
            time.sleep(0.02)


LOOP_FAILS = """
import threading
from gpuready.run.access import Workers
from gpuready.run.cluster import connected
with connected(Workers(count=1)) as client:
    done = threading.Event()
    client.loop.add_callback(lambda: [][0])
    client.loop.add_callback(done.set)
    done.wait()
"""


def test_what_fails_in_the_loop_of_dask_shows_no_traceback() -> None:
    """An interrupt while Dask waits cancels what may not have begun."""
    ran = subprocess.run([sys.executable, "-c", LOOP_FAILS], capture_output=True, text=True, timeout=scale.seconds(60))
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("outcome", ["ok", "would_change", "not_attempted"])
def test_a_chunk_that_was_interrupted_elsewhere_is_no_success(tmp_path: Path, outcome: str) -> None:
    cluster = played(tmp_path, lambda chunk: ended(chunk, outcome, interrupted=True))
    cluster.each(Work(CHANGE), ["n1"])
    assert cluster.results["n1"].outcome == "unreachable"


def test_a_cluster_without_workers_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuready.run.cluster.NO_WORKER", 1)
    monkeypatch.setattr("gpuready.run.cluster.ASK", 0.3)
    cluster = played(tmp_path, lambda chunk: Future("pending"))
    monkeypatch.setattr(cluster._client, "nthreads", dict)
    cluster.each(Work(CHANGE), ["n1"])
    assert cluster.results["n1"].error.message == "the Dask cluster has had no worker for 1 s"


@pytest.mark.parametrize("status", ["cancelled", "lost", "pending"])
def test_the_scheduler_goes(status: str, tmp_path: Path) -> None:
    cluster = played(tmp_path, lambda chunk: Future(status))
    cluster._client.status = "closed"
    cluster.each(Work(CHANGE), ["n1"])
    assert cluster.results["n1"].error.message == "the connection to the Dask scheduler broke"


def test_a_terminal_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    def gone() -> None:
        raise OSError(5, "Input/output error")

    cluster = played(tmp_path, ended, gone)
    cluster.each(Work(CHANGE), ["n1"])
    assert cluster.results["n1"].outcome == "ok"


def test_an_address_that_is_none() -> None:
    with pytest.raises(UsageError, match="Invalid IPv6 URL"):
        check_address("[::1")
