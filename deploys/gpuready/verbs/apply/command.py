"""``gpuready apply``: change nodes. On a terminal it shows the plan and asks; elsewhere it needs --yes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gpuready.base.errors import UsageError
from gpuready.cli import complete
from gpuready.cli.change import YES, change, consent
from gpuready.cli.options import NO_STATE, HostVerb, change_options, run_options

_HELP = """Change every node to match its spec, then verify it. What already matches is not touched.

\b
  gpuready apply -i hosts.yaml
  gpuready apply -i hosts.yaml --yes --output junit:report.xml
  gpuready apply -i hosts.yaml --yes --allow-disruption reload
  gpuready apply -i hosts.yaml --yes --batch 1,10% --max-fail 2
  gpuready apply -i hosts.yaml --yes --state-dir rollout --resume
  gpuready apply -i node.yaml -i @local --limit @local --image --yes
"""


@click.command("apply", cls=HostVerb, help=_HELP)
@run_options
@change_options
@click.option(
    "--state-dir",
    metavar="DIR",
    shell_complete=complete.files,
    help="Store the result of each host in this directory during the run, for --resume.",
)
@click.option("--resume", is_flag=True, help="Skip hosts that ended well in an earlier run with this --state-dir.")
@click.option("--failed-only", is_flag=True, help="Like --resume, but only hosts that failed or were unreachable.")
@click.option(
    "--image",
    is_flag=True,
    help="Prepare an image from inside (-i @local): start nothing; remove the SSH host keys and the machine-id. "
    "The first boot does the rest.",
)
@NO_STATE
@YES
def command(
    state: str | None, yes: bool, image: bool, state_dir: str | None, resume: bool, failed_only: bool, **given: Any
) -> int:
    from gpuready.cli.online import online
    from gpuready.cli.request import request

    if state is not None:
        raise UsageError("apply does not accept --state: it must read the nodes that it changes",
                         remedy="gpuready plan --state FILE shows what a recorded node would need")  # fmt: skip
    if resume and failed_only:
        raise UsageError("--resume and --failed-only contradict each other", remedy="--resume does what both would do")
    if (resume or failed_only) and not state_dir:
        option = "--resume" if resume else "--failed-only"
        raise UsageError(f"{option} needs --state-dir", remedy="name the --state-dir of the earlier run")
    consent("apply", yes)
    if image:
        from gpuready.verbs.apply.image import enter

        enter(yes=yes, state_dir=state_dir)
    wanted = request("apply", **given)
    if image:
        from gpuready.verbs.apply.image import make

        return change(wanted, yes=yes, act=make(wanted))
    if state_dir:
        from gpuready.run.journal import Journal

        journal = Journal(Path(state_dir), wanted.entries, wanted.selected, resume=resume, failed_only=failed_only)
        wanted = replace(wanted, entries=journal.entries, journal=journal)
    return change(wanted, yes=yes, act=online)
