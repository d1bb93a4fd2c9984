"""``gpuready verify``: is every node as its spec says, does it work? Starts a container if asked, else reads only."""

from __future__ import annotations

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, run_options

_HELP = """Judge every node by its spec: differences, and checks of what really works.

\b
  gpuready verify -i hosts.yaml
  gpuready verify -i hosts.yaml --output human --output junit:report.xml
  gpuready verify -i hosts.yaml --passive
  gpuready verify -i hosts.yaml --state states.json
"""


@click.command("verify", cls=HostVerb, help=_HELP)
@run_options
@STATE
@click.option("--passive", is_flag=True, help="Judge only what the probe read; no second exec.")
def command(state: str | None, passive: bool, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.offline import offline
    from gpuready.cli.online import online
    from gpuready.cli.output import deliver
    from gpuready.cli.request import request

    wanted = request("verify", **given)
    run = offline(wanted, state) if state is not None else online(wanted, passive=passive)
    return deliver(run, wanted.outputs, color=wanted.color)
