"""``gpuready docker-args``: print the docker run options for each host, with reasons. Nothing changes."""

from typing import Any

import click

from gpuready.cli.options import STATE, HostVerb, each_options

_HELP = """Print the docker run options that give a container GPUs, shared memory and RDMA on each host.

\b
  gpuready docker-args -i hosts.yaml                    the options, and why each
  gpuready docker-args -i hosts.yaml --output json
  gpuready docker-args -i hosts.yaml --state states.json

It reads the current state of the host. If Docker provides no GPUs yet (exit 3), run gpuready apply first.
"""


@click.command("docker-args", cls=HostVerb, help=_HELP)
@each_options
@STATE
def command(state: str | None, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.online import only_read
    from gpuready.cli.request import request
    from gpuready.verbs.docker_args.arguments import NoGpusError, arguments

    wanted = request("docker-args", **given)
    run = only_read(wanted, state)
    specs = {entry.name: entry.spec for entry in wanted.entries}
    for host in run.hosts:
        if host.state is None or host.error is not None:
            continue
        try:
            host.parts["docker_args"] = arguments(specs[host.name], host.state)
        except NoGpusError as e:
            host.fail(e)
    return wanted.deliver(run)
