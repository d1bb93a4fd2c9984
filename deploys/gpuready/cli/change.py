"""Change nodes: show the plan and ask, on a terminal; elsewhere --yes is needed. For apply, remove and rdma."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import click

from gpuready.base.errors import UsageError
from gpuready.cli.output import use_color
from gpuready.cli.sink import say
from gpuready.result.text import count

if TYPE_CHECKING:
    from gpuready.cli.request import Request
    from gpuready.result.model import Run

DECLINED = "you answered no"
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask. Required without a terminal.")


class Act(Protocol):
    """Run a request. With the verb ``plan`` nothing changes."""

    def __call__(self, wanted: Request, *, verb: str = "") -> Run: ...


def change(wanted: Request, *, yes: bool, act: Act) -> int:
    """Show the plan and ask, unless ``yes``; then act. Return the exit code."""
    run = act(wanted) if yes else _ask_first(wanted, act)
    return wanted.deliver(run)


def consent(verb: str, yes: bool) -> None:
    """Raise UsageError if nobody can be asked."""
    if not yes and not _terminal():
        shows = "gpuready plan" if verb == "apply" else f"gpuready {verb} --dry-run"
        raise UsageError(f"{verb} without a terminal needs --yes", remedy=f"{shows} shows what it would do")


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


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
