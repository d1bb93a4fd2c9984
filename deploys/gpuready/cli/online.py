"""A run over real hosts. The engine (pyinfra, gevent: half a second) is imported here and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuready.cli.become import with_password
from gpuready.cli.main import held, loaded
from gpuready.cli.progress import reporting
from gpuready.cli.request import Request
from gpuready.report.run import HostRun, Run

if TYPE_CHECKING:
    from gpuready.engine import Options, Progress
    from gpuready.inventory.hosts import HostEntry

    Execute = Callable[[Sequence[HostEntry], Options, Progress], Run]


def _engine() -> Execute:
    from gpuready import engine

    return engine.execute


def online(wanted: Request, *, verb: str = "", passive: bool = False, using: Callable[[], Execute] = _engine) -> Run:
    """Connect and do ``verb`` (default: the one asked for), with progress on stderr; ``using`` loads what does it."""
    verb, names, entries = verb or wanted.verb, [entry.name for entry in wanted.entries], wanted.entries
    try:
        if wanted.ask_become_pass:
            entries = with_password(entries)
        with held():
            execute = using()
            from gpuready import engine

        loaded()
        _quiet_interrupts()
        logging.basicConfig(level=logging.ERROR, format="%(message)s")
        with reporting(names, wanted.color, wanted.verbose) as (reporter, observer):
            options = engine.Options(
                verb=verb,
                selected=wanted.selected,
                passive=passive,
                host_keys=wanted.host_keys,
                allowed=wanted.allowed,
                parallel=wanted.parallel,
                probe_timeout=wanted.probe_timeout,
                batch=wanted.batch,
                max_fail=wanted.max_fail,
                back=wanted.verb == "remove",
                observer=observer,
            )
            run = execute(entries, options, reporter.report)
    except KeyboardInterrupt:  # before the engine had begun
        run = Run(verb, [HostRun(name) for name in names], interrupted=True)
    run.leave_alone(wanted.skipped)
    run.probed, run.back, run.selected = ", ".join(wanted.sources), wanted.verb == "remove", wanted.selected
    return run


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
    run = recorded_or_online(replace(wanted, verb="probe"), state, passive=True)
    run.verb, run.batches = wanted.verb, []
    for host in run.hosts:
        host.only_read()
    return run


def _quiet_interrupts() -> None:
    """A signal may arrive in gevent's hub, which would print a traceback before it passes the interrupt on."""
    import gevent

    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
