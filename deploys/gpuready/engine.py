"""The engine: connect, probe, compare, and run pyinfra's operations only on hosts with a difference.

Only this module uses pyinfra's State, Inventory, run_ops and pyinfra_cli. Success is read from each component's outcome
and not from pyinfra, which with no_wait exits 0 even if an operation failed. Components and checks are imported once a
host answers. A signal does not cut these imports in two: it waits for the event loop (operations/interrupts.py).
"""

import gpuready.operations.startup  # noqa: F401

# isort: split
import contextlib
import logging
import os
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

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

from gpuready import __version__
from gpuready.base.errors import EngineError, GpureadyError, UnreachableError
from gpuready.contract.compare import Plan
from gpuready.contract.component import Disruption
from gpuready.contract.rollout import Member, Rollout
from gpuready.evaluate import compared, failing, judged, look_back, plan_batches, went_wrong
from gpuready.inventory.hosts import HostEntry
from gpuready.model import probe
from gpuready.operations import lock, ssh
from gpuready.operations.connection import explain, host_data
from gpuready.operations.interrupts import signals_to_main
from gpuready.operations.node_state import (
    ALLOWED,
    PROBE_TIMEOUT,
    SELECTED,
    SPEC,
    forget,
    host_plan,
    node_state,
    probed,
    settled_state,
)
from gpuready.operations.observer import Observer, observe, timed
from gpuready.operations.outcome import outcomes, rebooted
from gpuready.operations.step import PROGRESS
from gpuready.operations.transport import EXECS, hang_up, is_up
from gpuready.operations.watchdog import holding, working
from gpuready.report.run import ComponentRun, HostRun, Run
from gpuready.tools.status.record import outcome, record

#: Called with a host's name and its current activity ("connect", "probe", "apply toolkit", ...).
Progress = Callable[[str, str], None]
CONNECT_TIMEOUT = 10
CONNECT_LIMIT = 45
#: Descriptors reserved for files, pipes and the terminal; and descriptors per connection (its socket, the agent's
#: socket, a ProxyCommand's pipes).
_RESERVED, _EACH = 64, 4


@dataclass(frozen=True)
class Options:
    """The options of a run. ``selected``: names of components (None: all). ``passive``: no second exec."""

    verb: str
    selected: frozenset[str] | None = None
    passive: bool = False
    host_keys: str = "strict"
    allowed: Disruption = Disruption.restart
    parallel: int = 64
    probe_timeout: int = probe.TIMEOUT
    batch: str = ""
    max_fail: str = "0"
    """``batch`` and ``max_fail`` have the form of the command line (:mod:`gpuready.contract.rollout`)."""
    back: bool = False
    """Restore the state before gpuready instead of applying the spec (``remove``)."""
    observer: Observer | None = None


#: Verbs that never change a node: each host's connection is closed as soon as the host is done.
_READING = ("plan", "probe", "verify", "compat", "status")


class Engine:
    """One run over some hosts. It owns pyinfra's state."""

    def __init__(self, entries: Sequence[HostEntry], options: Options, progress: Progress) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self.options, self.progress = options, progress
        self.run = Run(options.verb, [HostRun(entry.name, notes=list(entry.notes)) for entry in entries])
        self._runs = {run.name: run for run in self.run.hosts}
        self._read = probed if options.verb == "status" else node_state
        _quiet()
        shared = {SELECTED: options.selected, PROBE_TIMEOUT: options.probe_timeout, ALLOWED: options.allowed}
        hosts = [
            (entry.name, host_data(entry.connection, options.host_keys) | shared | {SPEC: entry.spec})
            for entry in entries
        ]
        inventory = Inventory((hosts, {}))
        self._room = _connections(len(entries))
        self._turn: frozenset[str] = frozenset()
        """Hosts that are being changed now. Their connections stay open."""
        config = Config(PARALLEL=min(options.parallel, self._room), CONNECT_TIMEOUT=CONNECT_TIMEOUT)
        self.state = State()
        ctx_config.set(config)
        ctx_inventory.set(inventory)
        ctx_state.set(self.state)
        self.state.init(inventory, config)
        pyinfra.is_cli = True

    def plan(self) -> Run:
        """Connect, probe, compare and judge every host. Nothing on a node changes."""

        def work() -> None:
            self._each(self._look, self._hosts(self.entries))
            plan_batches(self.run, self.entries, self.options.batch)

        return self._timed(work)

    def verify(self) -> Run:
        """Like :meth:`plan`, and run the active checks unless ``passive``."""
        return self._timed(lambda: self._each(self._examine, self._hosts(self.entries)))

    def apply(self) -> Run:
        """Converge every host with a difference, then judge it. Other hosts are only compared."""

        def work() -> None:
            self._read = settled_state
            self._each(self._look, self._hosts(self.entries))
            for run in self.run.hosts:
                if run.outcome == "failed" and run.error is None:
                    run.error = next((c.error for c in run.components if c.error is not None), None)
            members = plan_batches(self.run, self.entries, self.options.batch)
            if members:
                self._roll_out(members)

        return self._timed(work)

    # --- phases -------------------------------------------------------------------------------------------

    def _timed(self, work: Callable[[], None]) -> Run:
        began = time.monotonic()
        with signals_to_main():
            try:
                work()
            except KeyboardInterrupt:
                self.run.interrupted = True
                assert self.state.pool is not None
                self.state.pool.kill(block=False)  # so that no host continues, reconnects or takes a lock
            finally:
                self.run.seconds = time.monotonic() - began
                try:
                    for host in self._hosts(self.entries):
                        _let_go(host)
                except KeyboardInterrupt:  # the result is already complete
                    self.run.interrupted = True
        return self.run

    def _hosts(self, names: Iterable[str]) -> list[Host]:
        return [self.state.inventory.get_host(name) for name in names]

    def _each(self, work: Callable[[Host], None], hosts: Sequence[Host]) -> None:
        assert self.state.pool is not None
        self.state.set_stage(max(self.state.current_stage, StateStage.Connect))
        jobs = [self.state.pool.spawn(self._guarded, work, host) for host in hosts]
        gevent.joinall(jobs)

    def _guarded(self, work: Callable[[Host], None], host: Host) -> None:
        """Run ``work``. An exception becomes the outcome of this host and never ends the run."""
        run, began = self._runs[host.name], time.monotonic()
        try:
            with working():
                work(host)
        except UnreachableError as e:
            run.outcome, run.error = "unreachable", e
        except GpureadyError as e:
            run.outcome, run.error = "failed", e
        except Exception as e:
            run.outcome, run.error = "failed", EngineError(f"{type(e).__name__}: {e}")
            logging.getLogger("gpuready").exception("%s", host.name)
        finally:
            run.seconds += time.monotonic() - began
            run.execs = host.connector_data.get(EXECS, 0)
            if not self._stays_open(run):
                _let_go(host)
            self.progress(host.name, run.outcome)

    def _stays_open(self, run: HostRun) -> bool:
        """Tell whether to keep the connection: the host will be changed, and all connections fit at once."""
        waits = self.options.verb not in _READING and run.outcome == "would_change"
        return run.name in self._turn or (waits and len(self.entries) <= self._room)

    def _connect(self, host: Host) -> None:
        self.progress(host.name, "connect")
        observe(host, self.options.observer)
        host.connector_data[PROGRESS] = self.progress
        seconds = CONNECT_LIMIT + max(0, (self.entries[host.name].connection.timeout or 0) - CONNECT_TIMEOUT)
        limit = gevent.Timeout(seconds)
        try:
            with limit, timed(host, "connect"):
                ssh.connect(host)
        except gevent.Timeout as e:
            if e is not limit:
                raise
            raise UnreachableError(f"no SSH session within {seconds} s") from None
        except Exception as e:  # a hostile peer can make paramiko raise anything
            raise explain(self.entries[host.name], e) from None
        host.connected = True
        self.state.activate_host(host)

    def _look(self, host: Host) -> None:
        run = self._runs[host.name]
        self._connect(host)
        self.progress(host.name, "probe")
        plan = self._plan(host)
        run.saw(plan.state, plan.spec)
        with holding("comparing") as pause:
            compared(run, plan, self.options.allowed, verb=self.options.verb, pause=pause)
        _judge(run, plan)

    def _examine(self, host: Host) -> None:
        run = self._runs[host.name]
        self._look(host)
        asked = self.options.verb == "compat" or not run.reason
        if asked and not self.options.passive and run.state is not None:
            from gpuready.operations.active import read_images, run_active

            self.progress(host.name, "check")
            ask = read_images if self.options.verb == "compat" else run_active
            run.state = ask(host, run.state, self.entries[host.name].spec)
            _judge(run, self._plan(host))

    def _plan(self, host: Host) -> Plan:
        """Return the host's plan. It is made from a new probe if the state is not known or was changed."""
        from gpuready.node import BACK, NODE

        back = self.options.back
        return host_plan(host, self._read(host), BACK if back else NODE, original=back)

    def _roll_out(self, members: list[Member]) -> None:
        """Change the hosts batch by batch. A batch starts only if the batches before it went well."""
        before = {m.name: failing(self._runs[m.name]) for m in members}
        rollout = Rollout(members, self.options.batch, self.options.max_fail)
        self._prepare(self._hosts(before))
        try:
            for batch in rollout:
                for first in range(0, len(batch), self._room):
                    self._change(batch[first : first + self._room])
                rollout.record(
                    wrong=[name for name in batch if went_wrong(self._runs[name], before[name])],
                    proved=any(self._runs[name].outcome == "changed" for name in batch),
                )
        finally:
            for name in rollout.left:
                self._runs[name].leave_out(f"not begun: {rollout.why}")

    def _change(self, names: Sequence[str]) -> None:
        """Converge these hosts, then look again. They must all fit in the limit of connections."""
        self._turn = frozenset(names)
        hosts = self._reachable(self._hosts(names))
        self._converge(hosts)
        self._turn = frozenset()
        self._each(self._confirm, hosts)

    def _prepare(self, hosts: list[Host]) -> None:
        """Register the operations of all hosts with pyinfra, once. Each batch then selects its hosts."""
        from gpuready.operations.door import converge, withdraw

        self.state.active_hosts = set(hosts)
        self.state.set_stage(StateStage.Prepare)
        load_func(self.state, withdraw if self.options.back else converge)
        self.state.set_stage(StateStage.Execute)

    def _reachable(self, hosts: list[Host]) -> list[Host]:
        """Reopen connections that were closed or broke while the host waited; return the hosts with a connection."""
        closed = [host for host in hosts if not is_up(host)]
        if closed:
            self._each(self._connect, closed)
        for host in hosts:
            run = self._runs[host.name]
            if not is_up(host) and run.outcome != "unreachable":
                run.outcome, run.error = "unreachable", UnreachableError("the connection broke before its turn")
        return [host for host in hosts if is_up(host)]

    def _converge(self, hosts: list[Host]) -> None:
        for host in hosts:
            self.progress(host.name, "apply")
        self.state.active_hosts = set(hosts)
        began = time.monotonic()
        run_ops(self.state, no_wait=True)
        for host in hosts:
            self._runs[host.name].seconds += time.monotonic() - began

    def _confirm(self, host: Host) -> None:
        """Copy the outcomes of the operations. If something changed, probe again and run the active checks.

        Unless the node was rebooted, its lock is still held: no other run changes it before the record is written.
        """
        run = self._runs[host.name]
        done = outcomes(host)
        for boot in rebooted(host):
            run.saw_reboot(boot.before, boot.after, boot.seconds)
        for number, item in enumerate(run.components):
            item.attempted = item.found.name in done
            if item.attempted:  # its comparison differs from the plan's if the node was probed again meanwhile
                run.components[number] = replace(done[item.found.name], forecast=item.forecast)
        failed = next((c.error for c in run.components if c.error is not None), None)
        touched = [item for item in run.components if item.touched]
        if touched and not isinstance(failed, UnreachableError):
            from gpuready.operations.active import run_active

            self.progress(host.name, "check")
            forget(host)
            try:
                plan = self._plan(host)
                run.state = plan.state
                with holding("comparing"):
                    look_back(plan, touched)
                if not plan.original:
                    run.state = run_active(host, plan.state, plan.spec, self._record(run, plan))
            except GpureadyError as e:  # an earlier failure is the cause
                failed = failed or e
            else:
                _judge(run, plan)
                if "record" in run.state.active:
                    run.notes.append("the record of this apply could not be written: is /var full or read-only?")
            failed = failed or next((c.error for c in run.components if c.error is not None), None)
        elif not done and failed is None:
            failed = EngineError("no operation ran on this host")
        if failed is not None:
            run.outcome, run.error = ("unreachable" if isinstance(failed, UnreachableError) else "failed"), failed
        elif any(c.pending for c in run.components):
            run.outcome = "pending"
        else:
            run.outcome = "changed"

    def _record(self, run: HostRun, plan: Plan) -> str:
        """Return the record that this apply leaves on the node."""
        results = [
            (
                item.found.name,
                outcome(item.found, changed=item.changed, pending=_waits(item), failed=item.error is not None),
            )
            for item in run.components
        ]
        return record(
            plan.spec, plan.state, results, by=lock.controller(), gpuready=__version__,
            partial=self.options.selected is not None,
        )  # fmt: skip


def _judge(run: HostRun, plan: Plan) -> None:
    import gpuready.catalogue  # noqa: F401  # once, before the clock starts

    with holding("judging") as pause:
        judged(run, plan, pause)


def _waits(item: ComponentRun) -> bool:
    """Tell whether a difference stays: it waits, or the operation was dropped after another one failed."""
    return bool(item.pending) or (bool(item.found.diff) and not item.attempted)


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


def execute(entries: Sequence[HostEntry], options: Options, progress: Progress) -> Run:
    """Run ``options.verb`` (plan, apply, verify, probe, status, compat) over the hosts."""
    engine = Engine(entries, options, progress)
    if options.verb in ("plan", "probe", "status"):
        return engine.plan()
    return engine.verify() if options.verb in ("verify", "compat") else engine.apply()
