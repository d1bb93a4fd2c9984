"""``gpuready plan``: show what would change, and what it affects. Reads only."""

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, consent_options, run_options

_HELP = """Show what apply would change, key by key, and what it affects. Nothing changes.

\b
  gpuready plan -i hosts.yaml
  gpuready plan -i hosts.yaml --limit gpu13 --only docker
  gpuready plan -i hosts.yaml --detailed-exitcode --output json:plan.json
  gpuready plan -i hosts.yaml --state states.json
"""


@click.command("plan", cls=HostVerb, help=_HELP)
@run_options
@consent_options
@STATE
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if there are changes.")
def command(state: str | None, detailed_exitcode: bool, **given: Any) -> int:
    from gpuready.cli.online import recorded_or_online
    from gpuready.cli.request import request

    wanted = request("plan", **given)
    run = recorded_or_online(wanted, state)
    return wanted.deliver(run, detailed=detailed_exitcode)
