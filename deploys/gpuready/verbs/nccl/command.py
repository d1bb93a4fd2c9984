"""``gpuready nccl``: print NCCL settings. Nothing changes."""

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, nccl_options
from gpuready.cli.request import request
from gpuready.cli.workload import nccl_settings
from gpuready.verbs.nccl.part import Nccl

_HELP = """Print the NCCL settings of each host: ports, GIDs and interface, or why they are unknown.

If no host has RDMA, or with nccl: {transport: tcp}, the settings are for TCP. They name the interface whose network all
hosts share.

\b
  gpuready nccl -i hosts.yaml
  gpuready nccl -i hosts.yaml --output docker          arguments for docker run
  gpuready nccl -i hosts.yaml --output env:nccl.sh     export lines, into a file
  gpuready nccl -i hosts.yaml --state states.json

gpuready launch prints the lines that start a training with these settings.
"""


@click.command("nccl", cls=HostVerb, help=_HELP)
@nccl_options
@STATE
def command(state: str | None, **given: Any) -> int:
    """The exit code."""
    wanted = request("nccl", **given)
    run, found = nccl_settings(wanted, state)
    for host in run.hosts:
        if host.name in found:
            host.parts["nccl"] = Nccl.of(found[host.name])
    return wanted.deliver(run)
