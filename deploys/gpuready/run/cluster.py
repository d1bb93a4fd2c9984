"""A run on a Dask cluster: chunks of hosts are tasks of its workers; this process decides and collects.

On a node, all is as in one process: a worker runs a function of :mod:`gpuready.run.converge` over a fleet of its chunk.
Batches and ``--max-fail`` are followed here (run/follow.py). If a worker dies, Dask gives its chunk to another one. The
node's lock ends with the connection of the dead worker, so no node is changed by two. Nothing here imports pyinfra or
gevent. Source: the documentation of Dask.distributed (client, resilience, TLS, limitations).
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import pickle
import pkgutil
import queue
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpuready import __version__
from gpuready.base.documents import read_json
from gpuready.base.errors import UnreachableError, UsageError, Where
from gpuready.base.host_list import hostlist
from gpuready.contract.rollout import Rollout
from gpuready.inventory.secrets import used_references
from gpuready.inventory.source_values import Located
from gpuready.operations.events import Event
from gpuready.result.model import FINISHED, HostResult, Run, ended, shared
from gpuready.run.access import Access, Chunk, Work, Workers
from gpuready.run.evaluate import plan_batches
from gpuready.run.follow import NOT_BEGUN, follow, still_running

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Client, Future

    from gpuready.inventory.hosts import HostEntry
    from gpuready.operations.events import Observer, Progress
    from gpuready.run.journal import Journal

INSTALL = "pip install distributed beside gpuready, or pipx inject gpuready distributed"
#: The most hosts of a chunk: what one process works on side by side.
CHUNK = 64
#: How often a chunk is tried again after a worker died, or its process.
RETRIES = 2
#: Seconds without any worker after which the run ends; seconds that an interrupted run waits for its workers.
NO_WORKER, ENDING = 60, 120
#: Seconds between two questions whether there still is a worker.
ASK = 5
#: Seconds to wait for the lock of a node: a dead worker may hold it until its heartbeat is overdue.
PATIENCE = 60
_TICK = 0.25
#: What is done to a batch.
CHANGE = "gpuready.run.converge:change"
#: What a host may be whose work was interrupted.
_UNFINISHED = ("ok", "would_change", "not_attempted")
BROKEN = "the connection to the Dask scheduler broke"
_ENCRYPTED = ("tls", "wss", "inproc")


def check_address(address: str, *, plain: bool = False) -> None:
    """Refuse a scheduler without TLS on another machine: who changes its traffic can run programs on the workers."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
    except ValueError as e:
        raise UsageError(f"--scheduler {address}: {e}", remedy="tls://HOST:PORT") from None
    if parts.scheme in _ENCRYPTED or plain:
        return
    host = parts.hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise UsageError(
            f"--scheduler {address}: without TLS, anyone on the network can run programs on the workers",
            remedy="use a tls:// address and Dask's distributed.comm.tls settings; or --plain-scheduler, on a network "
            "that you trust",
        )


@contextmanager
def connected(where: Workers) -> Iterator[Client]:
    """Give a client of the cluster. Raises UsageError without Dask, UnreachableError without a cluster."""
    if where.scheduler:
        check_address(where.scheduler, plain=where.plain)
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError:
        option = "--scheduler" if where.scheduler else "--workers"
        raise UsageError(f"{option} needs Dask, which is not installed", remedy=INSTALL) from None
    # What matters becomes the error of a host. tornado's would tell of each Ctrl-C that comes while Dask waits.
    dasks = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    for name in ("distributed", *dasks, "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if not where.scheduler:
        # Threads are enough: each chunk is a process of its own. Dask always opens two ports for HTTP; here only this
        # machine reaches them, and they have no pages.
        nowhere = "127.0.0.1:0"
        with (
            config.set({"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}),
            LocalCluster(
                n_workers=1,
                threads_per_worker=where.count,
                processes=False,
                protocol="inproc",
                dashboard_address=nowhere,
                worker_dashboard_address=nowhere,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(where.scheduler, timeout=20, name="gpuready")
    except (OSError, TimeoutError, ValueError, TypeError) as e:
        raise UnreachableError(
            f"the Dask scheduler {where.scheduler} does not answer: {e}",
            remedy="check that the scheduler runs, and that both sides have matching TLS settings",
        ) from None
    with client:
        same_version(client)
        yield client


def same_version(client: Client) -> None:
    """Refuse workers with another gpuready: what is sent to them is made for this version."""
    found = client.run(metadata.version, "gpuready", on_error="return")
    if not found:
        raise UnreachableError("the Dask cluster has no worker", remedy="start workers, for example: dask worker")
    for address, version in found.items():
        if version != __version__:
            shown = "no gpuready" if isinstance(version, BaseException) else f"gpuready {version}"
            raise UsageError(
                f"worker {address} has {shown}, and this is gpuready {__version__}",
                remedy="install the same version on all workers",
            )


class Cluster:
    """The hosts of one run, on the workers of a Dask cluster. ``took`` is called with the result of each chunk."""

    def __init__(
        self,
        client: Client,
        entries: Sequence[HostEntry],
        access: Access,
        progress: Progress,
        observer: Observer | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self.progress, self._observer, self._tick = client, progress, observer, tick
        self.ended: Callable[[HostResult], None] = lambda result: None
        self.log: Callable[[str], None] = lambda text: None
        self.stopping = False
        self._doing: dict[str, str] = {}
        self._before: dict[str, HostResult] = {}
        self.took: Callable[[Run], None] = lambda run: None
        nowhere = Located(None, Where(""))
        self.entries = {entry.name: replace(entry, given=nowhere) for entry in entries}
        self.results = {entry.name: HostResult(entry.name, notes=list(entry.notes)) for entry in entries}
        self._access, self.share = replace(access, patience=PATIENCE), access.share
        self._id = f"gpuready-{secrets.token_hex(8)}"
        self._news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        client.subscribe_topic(self._id, lambda event: self._news.put(read_json(event[1])))

    def work(self, verb: str, what: Callable[[Run], None]) -> Run:
        """Do ``what``, and return the result. An interrupt ends the work; the result then has what was done."""
        run, began = Run(verb), time.monotonic()
        run.hosts = list(self.results.values())
        try:
            what(run)
            if self.stopping:
                run.interrupt(FINISHED)
        except KeyboardInterrupt:
            run.interrupt()
        run.hosts, run.seconds = list(self.results.values()), time.monotonic() - began
        return run

    def each(self, work: Work, names: Sequence[str], *, together: int = 1) -> None:
        """Do ``work`` on these hosts, and replace their results. ``together``: so many, in a row, are never divided.

        After an interrupt, the chunks that change hosts end by themselves; others, and after a second one all, are cut.
        """
        waiting: dict[Future, Sequence[str]] = {}
        self._doing.clear()
        self._before = {name: self.results[name] for name in names}
        try:
            for chunk in chunks(names, self._threads(), together):
                try:
                    waiting[self._submit(work, chunk)] = chunk
                except OSError:
                    self._lose(chunk, BROKEN)
            self._collect(waiting)
        except KeyboardInterrupt as e:
            try:
                if work.function != CHANGE or e.args == (signal.SIGTERM,):
                    raise
                self._finish(waiting)
            except KeyboardInterrupt:
                self._stop(signal.SIGTERM)
                self._collect(waiting, ENDING)
                raise
        for name in names:
            if self.stopping and self.results[name].outcome == "would_change":
                self.results[name].leave_out(NOT_BEGUN)

    def _threads(self) -> int:
        """Return how many chunks the workers do at once; 0 if they cannot be asked."""
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            return 0

    def _finish(self, waiting: dict[Future, Sequence[str]]) -> None:
        """Let the chunks finish what has begun on nodes."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # operations/interrupts.py says why
        doing = {name: self._doing[name] for chunk in waiting.values() for name in chunk if name in self._doing}
        self.log(still_running({name: what for name, what in doing.items() if not ended(what)}))
        self._stop(signal.SIGINT)  # it waits for each worker
        self._collect(waiting)

    def _stop(self, number: int) -> None:
        """Send a signal to the chunks on all workers. They give what they have."""
        from gpuready.run import worker

        self.stopping = True
        with contextlib.suppress(OSError):
            self._client.run(worker.stop, self._id, number, on_error="ignore")

    def _submit(self, work: Work, names: Sequence[str]) -> Future:
        access = self._access
        if work.function == CHANGE:  # Dask may begin it twice, and the first time may have left a node drained
            access = replace(access, again=access.again | {*names})
        from gpuready.run import worker

        chunk = Chunk(
            work,
            tuple(names),
            pickle.dumps([self.entries[name] for name in names]),
            access,
            used_references(),
            self._observer is not None,
        )
        return self._client.submit(
            worker.work,
            self._id,
            pickle.dumps(chunk),
            key=f"{work.function.rpartition(':')[2]} {hostlist(names)}-{secrets.token_hex(8)}",
            retries=RETRIES,
            pure=False,
        )

    def _collect(self, waiting: dict[Future, Sequence[str]], limit: float = float("inf")) -> None:
        """Take the results as they come. ``waiting`` keeps what is still to come, also if this is interrupted."""
        seen = asked = time.monotonic()
        end = seen + limit
        while waiting and time.monotonic() < end:
            self._tell()
            for future in [future for future in waiting if future.done()]:
                self._take(future, waiting[future])
                del waiting[future]
            if self._client.status != "running":
                why = BROKEN
            elif time.monotonic() - asked < ASK:
                continue
            else:
                asked = time.monotonic()
                if self._threads():
                    seen = asked
                if asked - seen < NO_WORKER:
                    continue
                why = f"the Dask cluster has had no worker for {NO_WORKER} s"
            for names in waiting.values():
                self._lose(names, why)
            return
        self._tell(wait=False)

    def _tell(self, *, wait: bool = True) -> None:
        """Report what the workers do, for a moment."""
        with contextlib.suppress(OSError):  # the terminal may be gone
            self._tick()
        end = time.monotonic() + (_TICK if wait else 0)
        while True:
            try:
                news = self._news.get(timeout=max(0.0, end - time.monotonic())) if wait else self._news.get_nowait()
            except queue.Empty:
                return
            if "event" not in news:
                self._doing[news["host"]] = news["what"]
                self.progress(news["host"], news["what"])
            elif self._observer is not None:
                self._observer(Event(*news["event"]))

    def _take(self, future: Future, names: Sequence[str]) -> None:
        if future.status != "finished":
            gone = future.status in ("cancelled", "lost")
            self._lose(names, BROKEN if gone else f"its worker failed: {future.exception()}")
            return
        data = future.result()
        if data is None:  # the run was stopped before this chunk began, or before it began again
            looked = "would_change"
            begun = [name for name in names if self.results[name].outcome == looked != self._doing.get(name, looked)]
            self._lose(begun, "its worker died, and the run was interrupted")
            return
        done: Run = pickle.loads(data)  # workers run code of this process, and are trusted as it is
        self.took(done)
        for host in done.hosts:
            before = self._before[host.name]  # after an interrupt, a result may be taken once more
            if self.stopping and host.outcome == "not_attempted" and not host.probed:
                before.execs, before.seconds = host.execs + before.execs, host.seconds + before.seconds
                if before.outcome == "would_change":
                    before.leave_out(NOT_BEGUN)
                continue
            host.execs, host.seconds = host.execs + before.execs, host.seconds + before.seconds
            host.checks = list(map(shared, host.checks))
            self.results[host.name] = host
            if done.error is not None and not self.stopping and host.outcome in _UNFINISHED:
                self._lose([host.name], f"its worker was interrupted: {done.error}")
            else:
                self.ended(host)

    def _lose(self, names: Sequence[str], why: str) -> None:
        for name in names:
            error = UnreachableError(why, remedy="run again: gpuready then reads the node's current state")
            self.results[name].fail(error, "unreachable")
            self.ended(self.results[name])


def chunks(names: Sequence[str], threads: int, together: int = 1) -> list[Sequence[str]]:
    """Divide the hosts in parts of about equal size, if possible one for each thread of the workers."""
    units = len(names) // together
    count = min(units, max(-(-len(names) // CHUNK), threads, 1))
    return [names[units * n // count * together : units * (n + 1) // count * together] for n in range(count)]


def do(cluster: Cluster, verb: str, work: Work) -> Run:
    """Do ``work`` on the workers."""
    if work.divided:
        done: Run = pkgutil.resolve_name(work.divided)(cluster, **work.options)
        return done
    return cluster.work(verb, lambda run: cluster.each(work, list(cluster.entries)))


def plan(cluster: Cluster, *, verb: str = "plan", batch: str = "", removing: bool = False) -> Run:
    """As :func:`gpuready.run.converge.plan`, on the workers."""

    def work(run: Run) -> None:
        look = Work("gpuready.run.converge:compare", {"verb": verb, "removing": removing})
        cluster.each(look, list(cluster.entries))
        run.hosts = list(cluster.results.values())
        plan_batches(run, cluster.entries, batch, cluster.share)

    return cluster.work(verb, work)


def apply(
    cluster: Cluster,
    *,
    batch: str = "",
    max_fail: str = "0",
    removing: bool = False,
    hook: str = "",
    journal: Journal | None = None,
) -> Run:
    """As :func:`gpuready.run.converge.apply`: the workers look first; then they change one batch after the other."""
    if journal is not None:
        cluster.ended = journal.end

    def change(names: Sequence[str]) -> None:
        cluster.each(Work(CHANGE, {"removing": removing}), names)

    def work(run: Run) -> None:
        cluster.each(Work("gpuready.run.converge:look_first", {"removing": removing}), list(cluster.entries))
        run.hosts = list(cluster.results.values())
        members = plan_batches(run, cluster.entries, batch, cluster.share)
        follow(Rollout(members, batch, max_fail, cluster.share), run, cluster, change, hook=hook, journal=journal)

    return cluster.work("remove" if removing else "apply", work)
