"""A step: one script for the node and its reply. Components yield steps while they converge."""

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import dataclass_transform

from gpuready.base import resources


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Script:
    """A script of ``templates/`` with its arguments: each field of a subclass is a name that the template uses.

    Every subclass becomes a frozen dataclass and names its ``template``, unless it is a base of others. Every value is
    quoted for the shell; True is ``1`` there, False and None are empty words.
    """

    template: ClassVar[str]

    def __init_subclass__(cls, template: str = "") -> None:
        cls.template = template
        dataclass(frozen=True)(cls)

    def render(self) -> str:
        return resources.script(self.template, **vars(self))


_FREE = r"free space there (df -h \1; df -i \1), then run again"
_FIND = r"find the cause with df -h \1; df -i \1; findmnt -T \1; lsattr -d \1; remove it, then run again"
_ENGINE = "see systemctl status {0} and journalctl -u {0}; mend that, then run again"
#: What to do about messages that any step may print, by what they begin with. The path that a message names becomes a
#: part of a command that a user may paste, so it has no character that is special to a shell.
_FIXES = (
    (r"cannot .*\(is (/tmp|/var) full", _FREE),
    (r"(/[\w./@+-]{0,200}) has \d{1,20} (?:MiB|inodes) free", _FREE),
    (r"no room for 2 MB", "free space in /run or /tmp (df -h /run /tmp), then run again"),
    (r"cannot write(?: in| to)? (/[\w./@+-]{0,200})", _FIND),
    (r"(/[\w./@+-]{0,200}) cannot be written", _FIND),
    (r"apt-get (?:\w{1,20} failed|could not remove)",
     "mend it on the node (/var/log/apt/term.log; dpkg --audit; apt-get --fix-broken install), then run again"),
    (r"dnf (?:\w{1,20} failed|could not remove)", "mend it on the node (dnf check; dnf history), then run again"),
    (r"Docker (?:rejected|did not|does not|could not|gave no)", _ENGINE.format("docker")),
    (r"containerd (?:rejected|does not|was restarted)", _ENGINE.format("containerd")),
    (r"CRI-O (?:rejected|could not|was restarted)", _ENGINE.format("crio")),
    (r"there is no ([\w.-]{1,80}) on (?:this node|root's PATH)", r"install \1 on the node, or put it on root's PATH"),
    (r".{1,1000}[;,] run again$", "run again"),
    (r"the step did not end on its own",
     "run again: gpuready repairs what is left. If it ends again, find out who ends it: journalctl -b"),
)  # fmt: skip


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
        """Return what to do about a failure with this message; empty if nobody knows."""
        own = (fix for begin, fix in self.fixes if message.startswith(begin))
        common = (match.expand(fix) for pattern, fix in _FIXES if (match := re.match(pattern, message)))
        return next(own, "") or next(common, "")


PENDING_EXIT = 77


@dataclass(frozen=True)
class Reply:
    """The exit status and the output of a step (UTF-8 with surrogateescape)."""

    rc: int
    out: str
    err: str = ""


Steps = Generator[Step, Reply, None]
