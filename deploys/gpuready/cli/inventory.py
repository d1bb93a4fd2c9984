"""``gpuready inventory``: hosts, groups and merged specs, without a connection; and ``--list-hosts`` of all verbs."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from gpuready.base.errors import UsageError
from gpuready.cli.options import HostVerb, inventory_options
from gpuready.cli.request import request
from gpuready.cli.sink import say
from gpuready.result.model import HostResult, Run
from gpuready.result.render import LISTING_FORMATS

_HELP = """Show the hosts of an inventory: address, groups, and where each value of their specs comes from.

Does not connect. Skipped hosts are listed with the reason. JSON has the complete spec of each host, with defaults.

\b
  gpuready inventory -i hosts.yaml
  gpuready inventory -i hosts.yaml --limit train --output json
"""


@click.command("inventory", cls=HostVerb, help=_HELP)
@inventory_options
def command(**given: Any) -> int:
    from gpuready.inventory.listing import listed

    wanted = request("inventory", forms=LISTING_FORMATS, secrets=False, **given)
    run = Run("inventory", [
        HostResult(entry.name, {"inventory": listed(entry)}, outcome="ok", notes=list(entry.notes))
        for entry in wanted.entries
    ])  # fmt: skip
    run.leave_alone(wanted.skipped)
    return wanted.deliver(run)


def list_hosts(verb: str, given: Mapping[str, Any]) -> int:
    """``--list-hosts`` of a verb: the names on stdout, one a line; on stderr the notes, and who is skipped."""
    asked = click.get_current_context().get_parameter_source("output")
    if given.get("output") and asked is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--list-hosts prints only names, without --output", remedy="use gpuready inventory --output json"
        )
    shared = ("inventory", "limit", "ansible", "allow_exec", "allow_read", "color", "extra_vars")
    found = request(verb, host=given.get("host"), secrets=False, **{name: given[name] for name in shared})
    found.tell_skipped()
    for note in dict.fromkeys(note for entry in found.entries for note in entry.notes):
        say(f"note: {note}", err=True)
    for entry in found.entries:
        say(entry.name)
    return 0
