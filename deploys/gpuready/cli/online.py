"""A run over real hosts. What connects to them (pyinfra, gevent: half a second) is imported here and nowhere else."""

from __future__ import annotations

import logging
import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuready.cli.become import with_password
from gpuready.cli.main import held, loaded
from gpuready.cli.progress import reporting
from gpuready.cli.request import Request
from gpuready.result.model import INTERRUPTED, HostResult, Run
from gpuready.run.access import Access, Work

if TYPE_CHECKING:
    from gpuready.operations.events import Observer


def online(wanted: Request, *, verb: str = "", passive: bool = False, using: Work | None = None) -> Run:
    """Connect and do ``verb`` (default: the one asked for), with progress on stderr; ``using`` does it."""
    verb, names, entries = verb or wanted.verb, [entry.name for entry in wanted.entries], wanted.entries
    work = using or _work(wanted, verb, passive)
    if not entries:  # an empty shard
        return _finished(Run(verb), wanted)
    try:
        if wanted.workers:
            return _finished(_on_workers(wanted, verb, work), wanted)
        if wanted.ask_become_pass:
            entries = with_password(entries)
        with held():
            from gpuready.run.fleet import Fleet

            function = pkgutil.resolve_name(work.function)
        loaded()
        _quiet_interrupts()
        logging.basicConfig(level=logging.ERROR, format="%(message)s")
        with reporting(names, wanted.color, wanted.verbose) as (reporter, observer):
            fleet = Fleet(entries, _access(wanted, observer), reporter.report)
            fleet.log = reporter.log
            run: Run = function(fleet, **work.options)
    except KeyboardInterrupt:  # before the work had begun
        run = Run(verb, [HostResult(name) for name in names], error=INTERRUPTED)
    return _finished(run, wanted)


def _finished(run: Run, wanted: Request) -> Run:
    if wanted.journal is not None:
        wanted.journal.complete(run)
    run.removing = wanted.verb == "remove"
    return wanted.complete(run)


def _on_workers(wanted: Request, verb: str, work: Work) -> Run:
    """As :func:`online`, on the workers of a cluster."""
    with held():
        from gpuready.run import cluster

    loaded()
    names: list[str] = [entry.name for entry in wanted.entries]
    run: Run | None = None
    try:
        with (
            cluster.connected(wanted.workers) as client,
            reporting(names, wanted.color, wanted.verbose, ticking=False) as (reporter, observer),
        ):
            fleet = cluster.Cluster(client, wanted.entries, _access(wanted), reporter.report, observer, reporter.tick)
            fleet.log = reporter.log
            run = cluster.do(fleet, verb, work)
            wanted.part.joined(run)
    except KeyboardInterrupt:
        if run is None:
            raise
        run.interrupt()  # while the cluster was closed: the result is complete
    return run


def _access(wanted: Request, observer: Observer | None = None) -> Access:
    return Access(
        host_keys=wanted.host_keys,
        parallel=wanted.parallel,
        probe_timeout=wanted.probe_timeout,
        selected=wanted.selected,
        allowed=wanted.allowed,
        share=wanted.share,
        again=wanted.journal.again if wanted.journal is not None else frozenset(),
        observer=observer,
    )


def _work(wanted: Request, verb: str, passive: bool) -> Work:
    removing = wanted.verb == "remove"
    if verb in ("plan", "record", "status"):
        options = {"verb": verb, "batch": wanted.batch, "removing": removing}
        return Work("gpuready.run.converge:plan", options, "gpuready.run.cluster:plan")
    if verb == "verify":
        return Work("gpuready.run.converge:verify", {"passive": passive})
    if verb == "compat":
        return Work("gpuready.run.converge:read_images")
    options = {
        "batch": wanted.batch,
        "max_fail": wanted.max_fail,
        "removing": removing,
        "hook": wanted.after_batch,
        "journal": wanted.journal,
    }
    return Work("gpuready.run.converge:apply", options, "gpuready.run.cluster:apply")


def recorded_or_online(wanted: Request, state: str | None, *, passive: bool = False) -> Run:
    """Compare and judge the recorded states in the file ``state``, or connect if it is None."""
    if state is None:
        return online(wanted, passive=passive)
    with held():
        import gpuready.catalogue  # noqa: F401  (the checks, which evaluate imports when it judges)
        from gpuready.cli.offline import offline

    return offline(wanted, state)


def only_read(wanted: Request, state: str | None) -> Run:
    """As :func:`recorded_or_online`, for a verb that neither compares nor judges."""
    run = recorded_or_online(replace(wanted, verb="record"), state, passive=True)
    run.verb, run.batches = wanted.verb, []
    for host in run.hosts:
        host.only_read()
    return run


def _quiet_interrupts() -> None:
    """A signal may arrive in gevent's hub, which would print a traceback before it passes the interrupt on."""
    import gevent

    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
