"""``gpuready docker-args``: the options that a container needs on each host, each explained. Nothing changes."""

from __future__ import annotations

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, probe_options
from gpuready.core.errors import GpureadyError

_HELP = """The options of docker run with which a container gets the GPUs of a host, shared memory, and RDMA.

\b
  gpuready docker-args -i hosts.yaml                    the options, and why each
  gpuready docker-args -i hosts.yaml --output json
  gpuready docker-args -i hosts.yaml --state states.json

It asks the host as it is now: where Docker gives no GPUs yet, apply first (exit 3).
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
