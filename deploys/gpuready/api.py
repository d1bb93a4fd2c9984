"""Commands of gpuready for your own Python code: ``from gpuready.api import read, run``.

A command runs in a process of its own, because gevent, which connects to the hosts, patches a whole process. Its result
is the result document as objects: :class:`~gpuready.result.model.Summary`, and a
:class:`~gpuready.result.model.Host` by name.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuready.base import child
from gpuready.cli.documents import read_json
from gpuready.cli.parts import parts
from gpuready.result import document
from gpuready.result.document import DocumentError
from gpuready.result.model import CheckResult, ComponentResult, Difference, Error, Host, Summary

__all__ = [
    "CheckResult", "ComponentResult", "Difference", "DocumentError", "Error", "Host", "Result", "RunError", "Summary",
    "read", "run",
]  # fmt: skip


@dataclass(frozen=True)
class Result:
    """A result document."""

    exit_code: int
    """The exit code of the command."""
    summary: Summary
    """All that is not about a single host."""
    hosts: dict[str, Host]
    """The hosts by name; unmanaged ones last."""


class RunError(Exception):
    """The command could not be done at all, or was interrupted. ``str()`` is the message with its fix."""

    def __init__(self, error: Error, result: Result) -> None:
        super().__init__(f"{error.message}\nfix: {error.remedy}" if error.remedy else error.message)
        self.error, self.result = error, result


def run(*arguments: str | Path) -> Result:
    """Run a command, such as ``run("verify", "-i", "hosts.yaml")``, and return its result whatever became of the hosts.

    Progress goes to stderr. Raises :class:`RunError`.
    """
    result = _result(document_of(*arguments))
    if result.summary.error is not None:
        raise RunError(result.summary.error, result)
    return result


def read(path: str | Path) -> Result:
    """Return the result in a file that ``--output json:PATH`` wrote. Raises :class:`DocumentError`."""
    return _result(read_json(str(path), DocumentError, "a result document is what --output json:PATH writes"))


def document_of(*arguments: str | Path) -> Any:
    """Run a command, and return its result document as JSON values."""
    command = [*child.command("gpuready"), *map(str, arguments), "--output", "json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        words = " ".join(map(str, arguments))
        raise DocumentError(f"gpuready {words}: exit code {done.returncode}, and no result document") from None


def _result(value: object) -> Result:
    found, code = document.read(value, parts())
    return Result(code, found, {host.name: host for host in found.everyone})
