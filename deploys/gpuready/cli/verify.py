"""``gpuready verify``: check every node against its spec. Reads only, unless the spec asks for a test container."""

from __future__ import annotations

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, run_options

_HELP = """Check every node against its spec: differences, and tests of what works.

\b
  gpuready verify -i hosts.yaml
  gpuready verify -i hosts.yaml --output human --output junit:report.xml
  gpuready verify -i hosts.yaml --passive
  gpuready verify -i hosts.yaml --state states.json
"""


@click.command("verify", cls=HostVerb, help=_HELP)
@run_options
@STATE
@click.option("--passive", is_flag=True, help="Check only what the probe reads; send no second script.")
def command(state: str | None, passive: bool, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.offline import offline
    from gpuready.cli.online import online
    from gpuready.cli.output import deliver
    from gpuready.cli.request import request

    wanted = request("verify", **given)
    run = offline(wanted, state) if state is not None else online(wanted, passive=passive)
    return deliver(run, wanted.outputs, color=wanted.color)
