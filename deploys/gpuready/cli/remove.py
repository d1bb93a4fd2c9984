"""``gpuready remove``: the way back. What gpuready put in goes, what was there before returns, all else stays."""

from __future__ import annotations

from typing import Any

import click

from gpuready.cli.apply import YES, change, consent
from gpuready.cli.options import HostVerb, change_options, run_options

_HELP = """Take out what gpuready put in, in reverse: its keys in the engines' files, its files, holds and packages.

What was there before comes back from the copies in /var/lib/gpuready/backup; what you changed since stays. Packages
that were there before stay, at the version that they have. A node that gpuready never changed is left alone.

\b
  gpuready remove -i hosts.yaml --dry-run
  gpuready remove -i hosts.yaml --limit gpu13
  gpuready remove -i hosts.yaml --only docker --yes
"""


@click.command("remove", cls=HostVerb, help=_HELP)
@run_options
@change_options
@YES
@click.option("--dry-run", is_flag=True, help="Only show it.")
def command(yes: bool, dry_run: bool, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.online import online
    from gpuready.cli.output import deliver
    from gpuready.cli.request import request

    if dry_run:
        wanted = request("remove", **given)
        return deliver(online(wanted, verb="plan"), wanted.outputs, color=wanted.color)
    consent("remove", yes)
    return change(request("remove", **given), yes=yes, act=online)
