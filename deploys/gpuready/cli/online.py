"""A run over real hosts. The engine (pyinfra, gevent: half a second) is imported here and nowhere else."""

from __future__ import annotations

import logging

from gpuready.cli.main import held
from gpuready.cli.options import Request
from gpuready.cli.progress import reporting
from gpuready.report.run import HostRun, Run


def online(wanted: Request, *, verb: str = "", passive: bool = False) -> Run:
    """Connect and do ``verb`` (default: the one asked for), with progress on stderr."""
    verb, names = verb or wanted.verb, [entry.name for entry in wanted.entries]
    try:
        with held():
            from gpuready import engine

        _quiet_interrupts()
        logging.basicConfig(level=logging.ERROR, format="%(message)s")
        options = engine.Options(
            verb=verb,
            selected=wanted.selected,
            passive=passive,
            host_keys=wanted.host_keys,
            allowed=wanted.allowed,
            parallel=wanted.parallel,
            batch=wanted.batch,
            max_fail=wanted.max_fail,
            back=wanted.verb == "remove",
        )
        with reporting(names, wanted.color) as progress:
            run = engine.execute(wanted.entries, options, progress)
    except KeyboardInterrupt:  # before the engine had begun
        run = Run(verb, [HostRun(name) for name in names], interrupted=True)
    run.probed = ", ".join(wanted.sources)
    return run


def _quiet_interrupts() -> None:
    """A signal may arrive in gevent's hub, which would print a traceback before it passes the interrupt on."""
    import gevent

    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
