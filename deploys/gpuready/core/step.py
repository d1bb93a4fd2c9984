"""One script for the node, and what it answered: what a component yields while it converges."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from gpuready.core import resources


@dataclass(frozen=True)
class Script:
    """A script of ``templates/`` with its arguments: each field of a subclass is a name that the template uses.

    The template quotes every value for the shell; True is ``1`` there, False and None are empty words.
    """

    template: ClassVar[str]

    def render(self) -> str:
        """The text for the node."""
        return resources.script(self.template, **vars(self))


@dataclass(frozen=True)
class Step:
    """One script for the node, to be run as root: ``args`` says which, and what it is told.

    ``survives``: it must end once begun, so it runs as a transient unit that outlives the connection; one that does not
    changes nothing, unless it ``alters``. ``timeout`` is in seconds. Exit 0 is done, :data:`PENDING_EXIT` means that it
    found work it may not disturb. ``sends``: a file of the controller's, which the script reads from its stdin once it
    has printed from which byte on; such a step cannot survive.
    """

    name: str
    args: Script | str
    timeout: int = 60
    survives: bool = True
    alters: bool = False
    summary: str = ""
    sends: str = ""

    @property
    def script(self) -> str:
        """Its text."""
        return self.args.render() if isinstance(self.args, Script) else self.args


PENDING_EXIT = 77


@dataclass(frozen=True)
class Reply:
    """What a step answered: its exit status and its output (UTF-8 with surrogateescape)."""

    rc: int
    out: str
    err: str = ""


Steps = Generator[Step, Reply, None]
