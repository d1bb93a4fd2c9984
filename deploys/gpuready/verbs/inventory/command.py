"""``gpuready inventory``: hosts, groups and merged specs, without a connection."""

from typing import Any

import click

from gpuready.cli.options import HostVerb, inventory_options
from gpuready.cli.request import request
from gpuready.result.model import HostResult, Run

_HELP = """Show the hosts of an inventory: address, groups, and where each value of their specs comes from.

Does not connect. Skipped hosts are listed with the reason. JSON has the complete spec of each host, with defaults.

\b
  gpuready inventory -i hosts.yaml
  gpuready inventory -i hosts.yaml --limit train --output json
"""


@click.command("inventory", cls=HostVerb, help=_HELP)
@inventory_options
def command(**given: Any) -> int:
    from gpuready.inventory import own_ssh_config
    from gpuready.inventory.listing import listed

    wanted = request("inventory", secrets=False, **given)
    names = {entry.name: entry.connection.address for entry in wanted.entries if entry.connection.config is None}
    there = own_ssh_config.addresses(set(names.values()))
    run = Run("inventory")
    for entry in wanted.entries:
        part = listed(entry, there.get(names.get(entry.name, "")))
        run.hosts.append(HostResult(entry.name, {"inventory": part}, outcome="ok", notes=list(entry.notes)))
    return wanted.deliver(wanted.complete(run))
