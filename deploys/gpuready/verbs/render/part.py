"""The part of ``render docker``: the options of docker run, and the reason for each."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.base.host_list import hostlist
from gpuready.base.part import Part
from gpuready.result.model import HostResult, Run, VerbPart
from gpuready.result.text import Painter, grouped


@dataclass(frozen=True)
class Argument(Part):
    """render docker: an option of docker run."""

    words: tuple[str, ...]
    """The words of the command line."""
    why: str
    """The reason for it."""

    def __str__(self) -> str:
        """Return the words as shell code."""
        return shlex.join(self.words)


class DockerPart(VerbPart):
    """A value of each host."""

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """One line for all hosts that share it, and why each option."""
        found: list[tuple[tuple[Argument, ...], str]] = [
            (host.parts["docker_run"], host.name) for host in run.hosts if "docker_run" in host.parts
        ]
        for arguments, names in grouped(found).items():
            yield [
                f"{paint('bold', 'docker run')} on {hostlist(names)}",
                f"    {' '.join(map(str, arguments))}",
                *(f"      {each}: {each.why}" for each in arguments),
            ]

    def distinct(self, host: HostResult) -> object:
        return host.parts.get("docker_run")


PART = DockerPart(
    verb="render",
    of_host={"docker_run": (tuple[Argument, ...], "render docker: the options.")},
    judges=False,
)
