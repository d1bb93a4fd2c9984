"""A fleet connects to hosts on demand, runs a function on each in parallel, and always closes the connections.

It fills in the hosts' results, and knows no terminal and no verb. Only this module uses pyinfra's State, Inventory,
run_ops and pyinfra_cli. With no_wait, pyinfra exits 0 even if an operation failed, so success is read from each host's
context. A signal does not cut the imports here in two: it waits for the event loop (operations/interrupts.py).
"""

import gpuready.operations.startup  # noqa: F401

# isort: split
import contextlib
import logging
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import gevent
import pyinfra
from pyinfra.api.config import Config
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.operations import run_ops
from pyinfra.api.state import State, StateStage
from pyinfra.context import ctx_config, ctx_inventory, ctx_state
from pyinfra_cli.util import load_func

from gpuready.base.errors import BugError, GpureadyError, UnreachableError
from gpuready.inventory.hosts import HostEntry
from gpuready.operations import lock, ssh
from gpuready.operations.connection import explain, host_data
from gpuready.operations.context import Context, begin, context
from gpuready.operations.events import Progress
from gpuready.operations.interrupts import Stop, signals_to_main
from gpuready.operations.observer import timed
from gpuready.operations.transport import hang_up, is_up
from gpuready.operations.watchdog import working
from gpuready.result.model import FINISHED, HostResult, Run
from gpuready.run.access import Access
from gpuready.run.follow import still_running

CONNECT_TIMEOUT = 10
CONNECT_LIMIT = 45
#: Descriptors reserved for files, pipes and the terminal; and descriptors per connection (its socket, the agent's
#: socket, a ProxyCommand's pipes).
_RESERVED, _EACH = 64, 4


class Fleet:
    """Some hosts, with one result each in ``results``. It owns pyinfra's state.

    ``keeps`` tells of a result whether the host's connection stays open between two calls of :meth:`each`, and
    ``remembers`` whether what was read of the node stays: all states of a large fleet would fill the memory. ``ended``
    is called with a result after each work on its host. ``log`` is given a line for the user.
    """

    def __init__(self, entries: Sequence[HostEntry], access: Access, progress: Progress) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self.results = {entry.name: HostResult(entry.name, notes=list(entry.notes)) for entry in entries}
        self.selected, self.allowed, self.probe_timeout = access.selected, access.allowed, access.probe_timeout
        self.share, self.again = access.share, access.again
        self.progress: Progress = self._report
        self._verb = ""
        self._show = progress
        self._doing: dict[str, str] = {}
        self.log: Callable[[str], None] = lambda text: None
        self.stop = Stop()
        self.keeps: Callable[[HostResult], bool] = lambda result: False
        self.remembers: Callable[[HostResult], bool] = lambda result: True
        self.ended: Callable[[HostResult], None] = lambda result: None
        self.room = _connections(len(entries))
        """How many connections may be open at once."""
        _quiet()
        hosts = [(entry.name, host_data(entry.connection, access.host_keys)) for entry in entries]
        inventory = Inventory((hosts, {}))
        config = Config(PARALLEL=min(access.parallel, self.room), CONNECT_TIMEOUT=CONNECT_TIMEOUT)
        self._state = State()
        ctx_config.set(config)
        ctx_inventory.set(inventory)
        ctx_state.set(self._state)
        self._state.init(inventory, config)
        pyinfra.is_cli = True
        for entry in entries:
            given = Context(
                entry.spec,
                access.selected,
                access.allowed,
                entry.name in self.again,
                access.probe_timeout,
                self.progress,
                access.observer,
                access.patience,
                self.stop,
            )
            begin(self.host(entry.name), given)

    def host(self, name: str) -> Host:
        """Return the host of this name, for operations and scripts."""
        return self._state.inventory.get_host(name)

    def work(self, verb: str, what: Callable[[Run], None]) -> Run:
        """Do ``what`` with the result of a new run of ``verb``; let all hosts go in every ending.

        An interrupt ends the work. The result then has what was done. If changes or drains have begun, they end first.
        """
        run, began, self._verb = Run(verb, list(self.results.values())), time.monotonic(), verb
        with signals_to_main(self.stop, self._tell_what_runs):
            try:
                what(run)
                if self.stop.asked:
                    run.interrupt(FINISHED)
            except KeyboardInterrupt:
                run.interrupt()
                assert self._state.pool is not None
                self._state.pool.kill(block=False)  # so that no host continues, reconnects or takes a lock
            finally:
                run.seconds = time.monotonic() - began
                try:
                    gevent.sleep(0)  # killed greenlets end their programs, such as kubectl
                    for name in self.entries:
                        _let_go(self.host(name))
                except KeyboardInterrupt:  # the result is already complete
                    run.interrupt()
        return run

    @property
    def stopping(self) -> bool:
        """Whether no other host may begin."""
        return self.stop.asked

    def _report(self, name: str, what: str) -> None:
        self._doing[name] = what
        self._show(name, what)

    def _tell_what_runs(self) -> None:
        self.log(still_running({name: self._doing[name] for name in self.entries if name in self.stop.busy}))

    def each(self, work: Callable[[Host], None], names: Iterable[str] | None = None) -> None:
        """Run ``work`` on every host (default: all), side by side. An exception becomes the host's outcome."""
        assert self._state.pool is not None
        self._state.set_stage(max(self._state.current_stage, StateStage.Connect))
        hosts = map(self.host, self.entries if names is None else names)
        gevent.joinall([self._state.pool.spawn(self._guarded, work, host) for host in hosts])

    def _guarded(self, work: Callable[[Host], None], host: Host) -> None:
        """Run ``work``. An exception becomes the outcome of this host and never ends the run."""
        result, began = self.results[host.name], time.monotonic()
        try:
            with working():
                work(host)
        except UnreachableError as e:
            result.fail(e, "unreachable")
        except GpureadyError as e:
            result.fail(e)
        except Exception as e:
            result.fail(BugError(f"{type(e).__name__}: {e}"))
            logging.getLogger("gpuready").exception("%s", host.name)
        finally:
            result.seconds += time.monotonic() - began
            result.execs = context(host).execs
            if not self.keeps(result):
                _let_go(host)
            if not self.remembers(result):
                result.state = context(host).state = context(host).plan = None
            self.progress(host.name, result.word(self._verb))
            self.ended(result)

    @contextlib.contextmanager
    def keeping(self, names: Iterable[str]) -> Iterator[None]:
        """Keep the connections of these hosts open during the body. They must fit in :attr:`room`."""
        kept, before = frozenset(names), self.keeps
        self.keeps = lambda result: result.name in kept or before(result)
        try:
            yield
        finally:
            self.keeps = before

    def connect(self, host: Host) -> None:
        """Open the host's connection. Raises UnreachableError, or why its configuration does not allow one."""
        self.progress(host.name, "connect")
        entry = self.entries[host.name]
        seconds = CONNECT_LIMIT + max(0, (entry.connection.timeout or 0) - CONNECT_TIMEOUT)
        limit = gevent.Timeout(seconds)
        try:
            with limit, timed(host, "connect"):
                ssh.connect(host)
        except gevent.Timeout as e:
            if e is not limit:
                raise
            raise UnreachableError(f"no SSH session within {seconds} s") from None
        except Exception as e:  # a hostile peer can make paramiko raise anything
            raise explain(entry, e) from None
        host.connected = True
        self._state.activate_host(host)

    def reconnect(self, names: Sequence[str]) -> list[str]:
        """Reopen connections that were closed or broke while the host waited; return the hosts with a connection."""
        closed = [name for name in names if not is_up(self.host(name))]
        if closed:
            self.each(self.connect, closed)
        for name in names:
            result = self.results[name]
            if not is_up(self.host(name)) and result.outcome != "unreachable":
                result.fail(UnreachableError("the connection broke before its turn"), "unreachable")
        return [name for name in names if is_up(self.host(name))]

    def prepare(self, names: Iterable[str], deploy: Callable[..., None], *arguments: object) -> None:
        """Register the operations of ``deploy``, which is given the arguments, for all these hosts, once."""
        self._state.active_hosts = set(map(self.host, names))
        self._state.set_stage(StateStage.Prepare)
        load_func(self._state, deploy, *arguments)
        self._state.set_stage(StateStage.Execute)

    def operate(self, names: Sequence[str]) -> None:
        """Run the registered operations on these hosts, which are connected."""
        for name in names:
            self.progress(name, "apply")
        self._state.active_hosts = set(map(self.host, names))
        began = time.monotonic()
        run_ops(self._state, no_wait=True)
        for name in names:
            self.results[name].seconds += time.monotonic() - began


def _let_go(host: Host) -> None:
    lock.release(host)
    hang_up(host)


def _connections(hosts: int) -> int:
    """Return how many connections may be open at once. Raise the soft limit of descriptors if needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hosts * _EACH + _RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, hosts if soft == resource.RLIM_INFINITY else (soft - _RESERVED) // _EACH)


def _quiet() -> None:
    """Silence pyinfra's log and the tracebacks of greenlets. The report shows everything that matters."""
    os.environ["PYINFRA_PROGRESS"] = "off"
    for name in ("pyinfra", "paramiko"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, PyinfraError)
