"""``gpuready record``: print the state of the nodes, masked. plan and verify read it with --state."""

from typing import Any

import click

from gpuready.cli.options import HostVerb, each_options

_HELP = """Read the nodes and print their states as JSON, with secrets masked. Nothing changes.

\b
  gpuready record -i hosts.yaml > states.json
  gpuready record -i hosts.yaml --output human
  gpuready verify -i hosts.yaml --state states.json
"""


@click.command("record", cls=HostVerb, help=_HELP)
@each_options
def command(**given: Any) -> int:
    from gpuready.cli.online import only_read
    from gpuready.cli.request import request

    wanted = request("record", default_output="json", **given)
    run = only_read(wanted, None)
    for host in run.hosts:
        if host.state is not None:
            host.parts["state"] = host.state
    return wanted.deliver(run)
