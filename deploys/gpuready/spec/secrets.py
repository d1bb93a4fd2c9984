"""Secrets by reference: ``env:NAME``, ``file:PATH`` or ``cmd:COMMAND``; never shown.

The spec holds only the reference. The secret itself is read once per process, when the inventory is loaded. A missing
secret is therefore an error with file and line, before anything is executed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from gpuready.core.errors import SpecError, Where
from gpuready.core.files import read_file, reason
from gpuready.spec.source_values import Refused

_MAX_BYTES = 64 * 1024
_TIMEOUT = 30
_resolved: dict[str, Secret] = {}


class Secret:
    """A string that only :meth:`reveal` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret in clear text; only for stdin of a command, never for argv, logs or results."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __copy__(self) -> Secret:
        """The same: it never changes, and pyinfra copies a host's data."""
        return self

    def __reduce__(self) -> str:
        raise TypeError("a Secret cannot be serialized")


def is_reference(value: str) -> bool:
    return value.startswith(("env:", "file:", "cmd:"))


def resolve(ref: str, *, allow_exec: bool = False, where: Where | None = None) -> Secret:
    """The secret that ``ref`` refers to, or ``ref`` itself if it is not a reference.

    ``cmd:`` runs only with ``allow_exec``, or if this process has run it before. Raises :class:`SpecError` at
    ``where``; its message contains the reference, never the secret.
    """
    if not is_reference(ref):
        return Secret(ref)
    if ref not in _resolved:
        try:
            _resolved[ref] = Secret(_one_line(_read(ref, allow_exec=allow_exec)))
        except Refused as e:
            raise SpecError(str(e), where=where or Where(ref), given=ref, allowed=e.allowed) from None
    return _resolved[ref]


def _read(ref: str, *, allow_exec: bool) -> str:
    kind, _, rest = ref.partition(":")
    if kind == "env":
        return _from_environment(rest)
    if kind == "file":
        return _from_file(rest)
    if not allow_exec:
        raise Refused("cmd: runs only with --allow-exec", "env:, file:, or --allow-exec")
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
