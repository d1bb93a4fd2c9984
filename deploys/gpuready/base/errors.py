"""All errors that a user can see: what went wrong, where, and what to do.

Each class has its exit code. ``kind`` is the error's name in the result document.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

#: The exit codes of a run, the worst first. What they mean: gpuready.result.exitcode.MEANING.
EXIT_CODES = (70, 130, 64, 5, 1, 4, 6, 3, 7, 2, 74, 0)


def brief(text: str, most: int = 320) -> str:
    """Shorten another program's message to one line of at most ``most`` characters.

    The middle of a long message is cut, because nested errors have the cause at their end.
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most // 4]} ... {line[5 - most + most // 4 :]}"


def did_you_mean(word: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """Return a hint at the nearest of these names, for the end of a message; nothing if none is near."""
    import difflib

    near = difflib.get_close_matches(word, list(names), 1, likeness)
    return f"; did you mean {near[0]!r}?" if near else ""


class GpureadyError(Exception):
    """Base of all errors. ``str()`` is one clear message; ``remedy`` says what to do and may be empty."""

    kind: ClassVar[str] = "bug"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class Where:
    """A place in a user's file. Lines count from 1; 0 means the whole file."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class SpecError(GpureadyError):
    """An invalid value in an inventory."""

    kind = "spec"
    exit_code = 5

    def __init__(self, message: str, *, where: Where, given: object = None, allowed: str = "", near: str = "") -> None:
        super().__init__(message)
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
    """All :class:`SpecError` of one inventory, in order of file and line."""

    kind = "spec"
    exit_code = 5

    def __init__(self, errors: list[SpecError]) -> None:
        super().__init__("\n".join(str(e) for e in errors))
        self.errors = errors


class InventoryError(GpureadyError):
    """The inventory cannot be read, or no host matches."""

    kind = "inventory"
    exit_code = 5


class UsageError(GpureadyError):
    """The command line is invalid."""

    kind = "usage"
    exit_code = 64


class OutputError(GpureadyError):
    """The result cannot be written."""

    kind = "output"
    exit_code = 74


class UnreachableError(GpureadyError):
    """gpuready got no root shell on the host. The cause is the network, SSH, a host key, the login or sudo."""

    kind = "unreachable"
    exit_code = 4


class ConvergeError(GpureadyError):
    """gpuready could not change the node: a step failed, or could not begin. The message says what was rolled back."""

    kind = "converge"
    exit_code = 1


class RefusedError(ConvergeError):
    """gpuready refused the request: on this node it is harmful or impossible. Nothing was changed."""

    kind = "refused"


class LockedError(ConvergeError):
    """Another run is changing the node. Nothing was changed."""

    kind = "locked"


class BugError(GpureadyError):
    """A bug in gpuready. Only this error may show a traceback."""
