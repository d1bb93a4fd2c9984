"""``gpuready docker-args``: print the docker run options for each host, with reasons. Nothing changes."""

from __future__ import annotations

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, probe_options
from gpuready.core.errors import GpureadyError

_HELP = """Print the docker run options that give a container GPUs, shared memory and RDMA on each host.

\b
  gpuready docker-args -i hosts.yaml                    the options, and why each
  gpuready docker-args -i hosts.yaml --output json
  gpuready docker-args -i hosts.yaml --state states.json

It reads the current state of the host. If Docker provides no GPUs yet (exit 3), run gpuready apply first.
"""


class NoGpusError(GpureadyError):
    """No container gets GPUs on a host."""

    kind = "docker-args"
    exit_code = 3


@click.command("docker-args", cls=HostVerb, help=_HELP)
@probe_options
@STATE
def command(state: str | None, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.offline import offline
    from gpuready.cli.online import online
    from gpuready.cli.output import deliver
    from gpuready.cli.request import request
    from gpuready.tools.run_args.arguments import NoGpus, arguments

    wanted = request("docker-args", **given)
    run = offline(wanted, state) if state is not None else online(wanted, verb="probe", passive=True)
    run.verb, run.batches = "docker-args", []
    specs = {entry.name: entry.spec for entry in wanted.entries}
    for host in run.hosts:  # it reads and never judges
        host.components, host.checks = [], []
        if host.state is None or host.error is not None:
            continue
        host.outcome = "ok"
        try:
            host.docker_args = arguments(specs[host.name], host.state)
        except NoGpus as e:
            host.outcome, host.error = "failed", NoGpusError(str(e), remedy="gpuready apply, or plan to see why not")
    return deliver(run, wanted.outputs, color=wanted.color)
