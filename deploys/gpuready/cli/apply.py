"""``gpuready apply``: change nodes. On a terminal it shows the plan and asks; elsewhere it needs --yes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

import click

from gpuready.base.errors import UsageError
from gpuready.cli.options import NO_STATE, HostVerb, change_options, run_options
from gpuready.cli.output import use_color
from gpuready.cli.sink import say
from gpuready.result.text import count

if TYPE_CHECKING:
    from gpuready.cli.request import Request
    from gpuready.result.model import Run

_HELP = """Change every node to match its spec, then verify it. What already matches is not touched.

\b
  gpuready apply -i hosts.yaml
  gpuready apply -i hosts.yaml --yes --output junit:report.xml
  gpuready apply -i hosts.yaml --yes --allow-disruption reload
  gpuready apply -i hosts.yaml --yes --batch 1,10% --max-fail 2
"""
DECLINED = "you answered no"

YES = click.option("-y", "--yes", is_flag=True, help="Do not ask. Required without a terminal.")


@click.command("apply", cls=HostVerb, help=_HELP)
@run_options
@change_options
@NO_STATE
@YES
def command(state: str | None, yes: bool, **given: Any) -> int:
    from gpuready.cli.online import online
    from gpuready.cli.request import request

    if state is not None:
        raise UsageError("apply does not accept --state: it must read the nodes that it changes",
                         remedy="gpuready plan --state FILE shows what a recorded node would need")  # fmt: skip
    consent("apply", yes)
    return change(request("apply", **given), yes=yes, act=online)


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
            return act(wanted)
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
