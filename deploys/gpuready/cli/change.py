"""Change nodes: show the plan and ask, on a terminal; elsewhere --yes is needed. For apply, remove and rdma."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import click

from gpuready.base.errors import UsageError, brief
from gpuready.base.host_list import hostlist
from gpuready.cli.output import use_color
from gpuready.cli.sink import say
from gpuready.result.text import count, grouped

if TYPE_CHECKING:
    from gpuready.cli.request import Request
    from gpuready.result.model import Run

DECLINED = "you answered no"
#: Seconds between two looks at nodes that other runs change.
_PAUSE = 5
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask. Required without a terminal.")


class Act(Protocol):
    """Run a request. With the verb ``plan`` nothing changes."""

    def __call__(self, wanted: Request, *, verb: str = "") -> Run: ...


def change(wanted: Request, *, yes: bool, act: Act) -> int:
    """Show the plan and ask, unless ``yes``; then act. Return the exit code."""
    if wanted.wait_lock:
        _wait(wanted)
    run = act(wanted) if yes else _ask_first(wanted, act)
    return wanted.deliver(run)


def consent(verb: str, yes: bool) -> None:
    """Raise UsageError if nobody can be asked."""
    if not yes and not _terminal():
        shows = "gpuready plan" if verb == "apply" else f"gpuready {verb} --dry-run"
        raise UsageError(f"{verb} without a terminal needs --yes", remedy=f"{shows} shows what it would do")


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _wait(wanted: Request) -> None:
    """Wait until no other run changes a chosen node, or the time is up: then the run itself names the owner.

    Nothing is locked meanwhile, so runs that wait do not block each other; and the run reads each node anew.
    """
    from gpuready.cli.online import online

    end, entries, told = time.monotonic() + wanted.wait_lock, wanted.entries, ""
    while entries:
        looked = online(replace(wanted, verb="record", entries=entries, journal=None), passive=True)
        if looked.interrupted:
            raise click.Abort
        states = {host.name: host.only_read() for host in looked.hosts}
        owners = {
            name: brief(state.lock.partition(" run=")[0]) for name, state in states.items() if state and state.lock
        }
        if not owners or time.monotonic() > end:
            return
        text = "; ".join(
            f"{hostlist(names)}: wait for another run ({owner})"
            for owner, names in grouped((owner, name) for name, owner in owners.items()).items()
        )
        if text != told:
            say(text, err=True)
        told, entries = text, tuple(entry for entry in entries if entry.name in owners)
        time.sleep(_PAUSE)


def _ask_first(wanted: Request, act: Act) -> Run:
    """Plan, show, ask; then converge, which probes and compares anew."""
    planned = act(wanted, verb="plan")
    changing = [host for host in planned.hosts if host.outcome == "would_change"]
    if planned.interrupted or not changing:
        planned.verb = wanted.verb
        planned.conclude()
        return planned
    from gpuready.result.human import human

    say(human(planned, 0, color=use_color(wanted.color, sys.stderr)), err=True)
    try:
        if click.confirm(f"Change {count(len(changing), 'host')}?", err=True):
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
