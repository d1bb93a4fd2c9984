"""Every error that a user can meet: what went wrong, where, and what to do instead.

Each class carries its exit code, so that the command line needs no table. ``kind`` is the word that stands
in the result document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


def brief(text: str, most: int = 320) -> str:
    """What another program said, in one line of at most ``most`` characters: nested errors have the cause at their end.

    So of a long one the middle is left out.
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most // 4]} ... {line[5 - most + most // 4 :]}"


class GpureadyError(Exception):
    """Base of all: ``str()`` is one clear message, ``remedy`` is what to do (may be empty)."""

    kind: ClassVar[str] = "engine"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def to_json(self) -> dict[str, str]:
        """The error as it stands in the result document."""
        return {"kind": self.kind, "message": str(self), "remedy": self.remedy}


@dataclass(frozen=True)
class Where:
    """A place in a user's file; ``line`` counts from 1, 0 means the file as a whole."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class SpecError(GpureadyError):
    """A value in an inventory that cannot be accepted."""

    kind = "spec"
    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        where: Where,
        given: object = None,
        allowed: str = "",
        near: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.where, self.given, self.allowed, self.near = where, given, allowed, near

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}"
        if self.given is not None:
            given = repr(self.given)
            text += f"; given {given if len(given) <= 80 else given[:47] + ' ... ' + given[-28:]}"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        if self.near:
            text += f"; did you mean {self.near!r}?"
        return text


class SpecErrors(GpureadyError):
    """Several :class:`SpecError` of one inventory, all shown at once (ordered by file and line)."""

    kind = "spec"
    exit_code = 5

    def __init__(self, errors: list[SpecError]) -> None:
        super().__init__("\n".join(str(e) for e in errors))
        self.errors = errors


class InventoryError(GpureadyError):
    """The inventory cannot be read, or nothing in it matches."""

    kind = "inventory"
    exit_code = 5


class UsageError(GpureadyError):
    """The command line asks for something that cannot be."""

    kind = "usage"
    exit_code = 64


class UnreachableError(GpureadyError):
    """No usable root shell on the host: network, SSH, host key, login or sudo."""

    kind = "unreachable"
    exit_code = 4


class UnsupportedNodeError(GpureadyError):
    """The host answers, but is nothing that gpuready can converge."""

    kind = "unsupported"
    exit_code = 1


class ConvergeError(GpureadyError):
    """A step failed on the node; the message names the component and what was put back."""

    kind = "converge"
    exit_code = 1


class RefusedError(ConvergeError):
    """What was asked for would do harm or cannot be, as the node is; nothing was touched."""

    kind = "refused"


class EngineError(GpureadyError):
    """Our bug: the only error whose traceback a user may see."""
