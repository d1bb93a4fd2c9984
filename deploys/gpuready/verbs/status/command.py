"""``gpuready status``: show the state of each node, from the record that the last apply left there. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpuready.cli.options import STATE, HostVerb, status_options

if TYPE_CHECKING:
    from gpuready.inventory.hosts import HostEntry
    from gpuready.result.model import HostResult

_HELP = """Show the state of each node: when apply last changed it, with which release and spec, and what changed since.

Nothing changes. One probe reads the node's record, and compares the node with its spec. A second table has the GPUs,
driver, kernel, OS, toolkit and engines of the nodes.

\b
  gpuready status -i hosts.yaml
  gpuready status -i hosts.yaml --limit train --output json
  gpuready status -i hosts.yaml --state states.json
"""


@click.command("status", cls=HostVerb, help=_HELP)
@status_options
@STATE
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if a node differs from its spec.")
def command(state: str | None, detailed_exitcode: bool, **given: Any) -> int:
    from gpuready.cli.online import recorded_or_online
    from gpuready.cli.request import request

    wanted = request("status", **given)
    run = recorded_or_online(wanted, state)
    entries = {entry.name: entry for entry in wanted.entries}
    for host in run.hosts:
        _reduce(host, entries[host.name])
    run.batches = []
    return wanted.deliver(run, detailed=detailed_exitcode)


def _reduce(host: HostResult, entry: HostEntry) -> None:
    """Keep only the status: it names the differences, and no component or check judges them."""
    from gpuready import __version__
    from gpuready.result.model import NOT_COMPARED
    from gpuready.verbs.status.status import status_of

    differs = [item.name for item in host.components if item.diff and not item.blocked]
    blocked = [item.name for item in host.components if item.blocked]
    if state := host.only_read():
        status = status_of(
            entry.spec, state, release=__version__, differs=differs, blocked=blocked, undecided=host.reason
        )
        host.parts["status"] = status
        if differs or blocked:
            host.outcome = "would_change"
        host.notes += [text for text in (status.problem, host.reason and f"{NOT_COMPARED}: {host.reason}") if text]
