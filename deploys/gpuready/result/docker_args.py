"""What ``gpuready docker-args`` shows to people: the options of docker run, and the reason for each."""

from collections.abc import Iterator

from gpuready.base.host_list import hostlist
from gpuready.result.model import Run
from gpuready.result.text import Painter, grouped
from gpuready.tools.run_args.arguments import Argument


def blocks(run: Run, paint: Painter) -> Iterator[list[str]]:
    """One line for all hosts that share it, and why each option."""
    found: list[tuple[tuple[Argument, ...], str]] = [
        (host.parts["docker_args"], host.name) for host in run.hosts if "docker_args" in host.parts
    ]
    for arguments, names in grouped(found).items():
        yield [
            f"{paint('bold', 'docker run')} on {hostlist(names)}",
            f"    {' '.join(map(str, arguments))}",
            *(f"      {each}: {each.why}" for each in arguments),
        ]
