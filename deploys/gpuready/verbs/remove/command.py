"""``gpuready remove``: undo what gpuready changed, and restore what was there before (contract/removal.py)."""

from typing import Any

import click

from gpuready.cli.change import YES, change, consent
from gpuready.cli.options import HostVerb, change_options, run_options

_HELP = """Remove what gpuready added: keys in the engines' configuration, files, package holds and packages.

Originals come back from /var/lib/gpuready/backup. Your own later changes stay. Packages that were installed before
gpuready stay at their current version. A node that gpuready never changed is not touched.

\b
  gpuready remove -i hosts.yaml --dry-run
  gpuready remove -i hosts.yaml --limit gpu13
  gpuready remove -i hosts.yaml --only docker --yes
"""


@click.command("remove", cls=HostVerb, help=_HELP)
@run_options
@change_options
@YES
@click.option("--dry-run", is_flag=True, help="Show what would be removed; change nothing.")
def command(yes: bool, dry_run: bool, **given: Any) -> int:
    from gpuready.cli.online import online
    from gpuready.cli.request import request

    if dry_run:
        wanted = request("remove", **given)
        return wanted.deliver(online(wanted, verb="plan"))
    consent("remove", yes)
    return change(request("remove", **given), yes=yes, act=online)
