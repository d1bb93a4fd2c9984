"""Secrets by reference: ``env:NAME``, ``file:PATH`` or ``cmd:COMMAND``; never shown.

The spec holds only the reference. The secret itself is read once per process, when the inventory is loaded. A missing
secret is therefore an error with file and line, before anything is executed.

A secret is sent to hosts that the inventory names. So the author of an inventory may refer only to variables that were
made for gpuready, and to what the command line allows.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

from gpuready.base.errors import SpecError, Where
from gpuready.base.files import read_file, reason
from gpuready.inventory.source_values import Refused

#: Every inventory may refer to the variables with this prefix.
PREFIX = "GPUREADY_"
_MAX_BYTES = 64 * 1024
_TIMEOUT = 30
_resolved: dict[str, Secret] = {}


class Secret:
    """A string that only :meth:`reveal` shows. ``reference``: where it was read; empty if a person entered it."""

    __slots__ = ("_value", "reference")

    def __init__(self, value: str, reference: str = "") -> None:
        self._value, self.reference = value, reference

    def reveal(self) -> str:
        """The secret in clear text; only for stdin of a command, never for argv, logs or results."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __copy__(self) -> Secret:
        """The same: it never changes, and pyinfra copies a host's data."""
        return self

    def __reduce__(self) -> tuple[Callable[[str], Secret], tuple[str]]:
        """Only the reference travels; it is read again where it arrives, if that is permitted there."""
        if not self.reference:
            raise TypeError("a Secret cannot be serialized")
        return resolve, (self.reference,)


def is_reference(value: str) -> bool:
    return value.startswith(("env:", "file:", "cmd:"))


def normal(ref: str) -> str:
    """The reference with an absolute path."""
    kind, _, path = ref.partition(":")
    return f"file:{os.path.abspath(os.path.expanduser(path))}" if kind == "file" else ref  # noqa: PTH100, PTH111


def resolve(
    ref: str, *, allow_exec: bool = False, allow_read: Collection[str] = (), where: Where | None = None
) -> Secret:
    """The secret that ``ref`` refers to, or ``ref`` itself if it is not a reference.

    It is read with ``allow_exec``, if it is one of ``allow_read``, if it is a variable with our prefix, or if this
    process has read it before. Raises :class:`SpecError` at ``where``; its message contains the reference, never the
    secret.
    """
    if not is_reference(ref):
        return Secret(ref)
    if ref not in _resolved:
        try:
            if not allow_exec:
                _refuse_others(ref, allow_read)
            _resolved[ref] = Secret(_one_line(_read(ref)), ref)
        except Refused as e:
            raise SpecError(str(e), where=where or Where(ref), given=ref, allowed=e.allowed) from None
    return _resolved[ref]


def used_references() -> tuple[str, ...]:
    """The references that this process has read."""
    return tuple(_resolved)


def _refuse_others(ref: str, allowed: Collection[str]) -> None:
    if ref.startswith("cmd:"):
        raise Refused("cmd: runs only with --allow-exec", "env:, file:, or --allow-exec")
    if not ref.startswith(f"env:{PREFIX}") and normal(ref) not in map(normal, allowed):
        problem = "the command line does not allow the inventory to read this secret"
        raise Refused(problem, f"env:{PREFIX}NAME, or --allow-read {shlex.quote(ref)}")


def _read(ref: str) -> str:
    kind, _, rest = ref.partition(":")
    if kind == "env":
        return _from_environment(rest)
    if kind == "file":
        return _from_file(rest)
    return _from_command(rest)


def _from_environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        problem = "is not set" if value is None else "is empty"
        raise Refused(f"the secret's environment variable {problem}", "a variable that is set")
    return value


def _from_file(path: str) -> str:
    try:
        data = read_file(Path(path).expanduser(), _MAX_BYTES)
    except (OSError, RuntimeError, ValueError) as e:
        raise Refused(f"the secret's file cannot be read: {reason(e)}", "a readable file") from None
    return data.decode("utf-8", "replace")


def _from_command(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, ValueError, IndexError) as e:
        raise Refused(f"the secret's command cannot run: {e}") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"the secret's command took longer than {_TIMEOUT} s") from None
    if done.returncode:
        raise Refused(f"the secret's command exited with {done.returncode}")
    return done.stdout[: _MAX_BYTES + 1].decode("utf-8", "replace")


def _one_line(value: str) -> str:
    line = value.rstrip("\r\n")
    if not line or len(line) > _MAX_BYTES or not line.isprintable():
        raise Refused("the secret is empty, or not one printable line", "one printable line")
    return line
