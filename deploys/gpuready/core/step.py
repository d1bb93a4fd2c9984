"""A step: one script for the node and its reply. Components yield steps while they converge."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import dataclass_transform

from gpuready.core import resources


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Script:
    """A script of ``templates/`` with its arguments: each field of a subclass is a name that the template uses.

    Every subclass becomes a frozen dataclass and names its ``template``. Every value is quoted for the shell; True is
    ``1`` there, False and None are empty words.
    """

    template: ClassVar[str]

    def __init_subclass__(cls, template: str) -> None:
        cls.template = template
        dataclass(frozen=True)(cls)

    def render(self) -> str:
        return resources.script(self.template, **vars(self))


@dataclass(frozen=True)
class Step:
    """A script to run on the node as root, with its arguments in ``args``.

    ``survives``: once begun, it must end, so it runs as a transient unit that outlives the connection. A step that does
    not survive changes nothing, unless it ``alters``. ``timeout`` is in seconds. Exit 0 means done, and
    :data:`PENDING_EXIT` that it found work that it may not disturb. ``sends``: a file of the controller. The script
    prints the byte to start from, then reads the file from its stdin. Such a step cannot survive. ``fixes``: what to do
    about a failure, by how the script's message begins.
    """

    name: str
    args: Script
    timeout: int = 60
    survives: bool = True
    alters: bool = False
    summary: str = ""
    sends: str = ""
    fixes: tuple[tuple[str, str], ...] = ()

    @property
    def script(self) -> str:
        return self.args.render()

    def fix(self, message: str) -> str:
        """Return what to do about a failure with this message; empty if the step does not know."""
        return next((fix for begin, fix in self.fixes if message.startswith(begin)), "")


PENDING_EXIT = 77


@dataclass(frozen=True)
class Reply:
    """The exit status and the output of a step (UTF-8 with surrogateescape)."""

    rc: int
    out: str
    err: str = ""


Steps = Generator[Step, Reply, None]
