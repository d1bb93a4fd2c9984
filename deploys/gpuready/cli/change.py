"""Change nodes: show the plan and ask, on a terminal; elsewhere --yes is needed. For apply, remove and rdma."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import click

from gpuready.base.errors import LockedError, UsageError
from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.cli.output import use_color
from gpuready.cli.sink import say
from gpuready.result.text import grouped

if TYPE_CHECKING:
    from gpuready.cli.request import Request
    from gpuready.inventory.hosts import HostEntry
    from gpuready.result.model import Run

DECLINED = "you answered no"
#: Seconds between two looks at nodes that other runs change.
_PAUSE = 5
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask. Required without a terminal.")


class Act(Protocol):
    """Run a request. With the verb ``plan`` nothing changes."""

    def __call__(self, wanted: Request, *, verb: str = "") -> Run: ...


def change(wanted: Request, *, yes: bool, act: Act) -> int:
    """Show the plan and ask, unless ``yes``; then act. Return the exit code.

    With ``--wait-lock``, hosts that another run took first are done again when it has ended, unless anything else went
    wrong.
    """
    from gpuready.result.model import HostResult, Run

    if wanted.wait_lock and wanted.workers:
        raise UsageError("--wait-lock is for one process, not for --workers or --scheduler",
                         remedy="leave it out: a worker waits a minute for the lock")  # fmt: skip
    end = time.monotonic() + wanted.wait_lock
    run = Run(wanted.verb, [HostResult(entry.name) for entry in wanted.entries])
    try:
        _wait(wanted, wanted.entries, end)
        run = act(wanted) if yes else _ask_first(wanted, act)
        while time.monotonic() < end and (late := _late(wanted, run)):
            time.sleep(_PAUSE)
            _wait(wanted, late, end)
            again = replace(wanted, entries=late)
            run.take(act(again) if yes else _ask_first(again, act))
    except KeyboardInterrupt:  # while it waited
        run.interrupt()
        wanted.complete(run)
    return wanted.deliver(run)


def consent(verb: str, yes: bool) -> None:
    """Raise UsageError if nobody can be asked."""
    if not yes and not _terminal():
        shows = "gpuready plan" if verb == "apply" else f"gpuready {verb} --dry-run"
        raise UsageError(f"{verb} without a terminal needs --yes", remedy=f"to see what it would do: {shows}")


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _late(wanted: Request, run: Run) -> tuple[HostEntry, ...]:
    """Return the hosts that another run was changing, and those that were not attempted for that reason.

    None if anything else went wrong: that may have stopped the run. None with a --state-dir: ``--resume`` does them.
    """
    locked = {
        host.name
        for host in run.hosts
        if host.error and host.error.kind == LockedError.kind and not any(item.changed for item in host.components)
    }
    rest = {host.name for host in run.hosts if host.outcome == "not_attempted"}
    fine = {host.name for host in run.hosts if host.outcome in ("ok", "changed", "pending", "skipped")}
    if not locked or run.error is not None or wanted.journal is not None or len(locked | rest | fine) < len(run.hosts):
        return ()
    return tuple(entry for entry in wanted.entries if entry.name in locked | rest)


def _wait(wanted: Request, entries: tuple[HostEntry, ...], end: float) -> None:
    """Wait until no other run changes one of these hosts, or the time is up: then the run itself names the owner.

    Nothing is locked meanwhile, so runs that wait do not block each other; and the run reads each node anew.
    """
    from gpuready.cli.online import online

    told = ""
    while entries and time.monotonic() < end:
        looked = online(replace(wanted, verb="record", entries=entries, journal=None), passive=True)
        if looked.interrupted:
            raise KeyboardInterrupt
        states = {host.name: host.only_read() for host in looked.hosts}
        owners = {name: state.lock_owner for name, state in states.items() if state and state.lock}
        entries = tuple(entry for entry in entries if entry.name in owners)
        text = "; ".join(
            f"{hostlist(names)}: wait for another run ({owner})"
            for owner, names in grouped((owner, name) for name, owner in owners.items()).items()
        )
        if text and text != told:
            say(text, err=True)
        told = text
        if entries:
            time.sleep(_PAUSE)


def _ask_first(wanted: Request, act: Act) -> Run:
    """Plan, show, ask; then converge, which probes and compares anew."""
    planned = act(wanted, verb="plan")
    changing = [host for host in planned.hosts if host.outcome == "would_change"]
    if planned.interrupted or not changing:
        planned.verb = wanted.verb
        planned.conclude()
        return planned
    from gpuready.result.human import preview

    say(preview(planned, color=use_color(wanted.color, sys.stderr)), err=True)
    what = "Remove gpuready's changes from" if planned.removing else "Change"
    try:
        if click.confirm(f"{what} {count(len(changing), 'host')}?", err=True):
            run = act(wanted)
            run.diff_shown = sys.stdout.isatty()
            return run
    except click.Abort:
        planned.interrupt()
    planned.verb, planned.refused_by_user = wanted.verb, not planned.interrupted
    planned.diff_shown = sys.stdout.isatty()  # in a file or a pipe the result stands alone, and stands whole
    for host in changing:
        host.outcome, host.checks = "pending", []
        for item in host.components:
            if item.diff and item.error is None:
                item.pending, item.pending_reason = True, DECLINED
    return planned
