"""``gpuready apply``: change nodes. On a terminal it shows the plan and asks; elsewhere it needs --yes."""

from __future__ import annotations

from typing import Any

import click

from gpuready.base.errors import UsageError
from gpuready.cli.change import YES, change, consent
from gpuready.cli.options import NO_STATE, HostVerb, change_options, run_options

_HELP = """Change every node to match its spec, then verify it. What already matches is not touched.

\b
  gpuready apply -i hosts.yaml
  gpuready apply -i hosts.yaml --yes --output junit:report.xml
  gpuready apply -i hosts.yaml --yes --allow-disruption reload
  gpuready apply -i hosts.yaml --yes --batch 1,10% --max-fail 2
"""


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
