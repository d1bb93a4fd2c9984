"""Commands of gpuready for your own Python code: ``from gpuready.api import read, run``.

A command runs in a process of its own, because gevent, which connects to the hosts, patches a whole process. Its result
is the result document as objects: :class:`~gpuready.result.model.Summary`, and a
:class:`~gpuready.result.model.Host` by name.
"""

import json
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuready.base import child
from gpuready.cli.documents import read_json
from gpuready.cli.parts import parts
from gpuready.result import document
from gpuready.result.document import DocumentError
from gpuready.result.facts import NodeFacts
from gpuready.result.model import (
    AfterBatch,
    CheckResult,
    ComponentResult,
    Difference,
    Error,
    Host,
    Reboot,
    Scope,
    Shard,
    Summary,
    UnknownValue,
    XidEvent,
    Xids,
)

__all__ = [
    "AfterBatch", "CheckResult", "ComponentResult", "Difference", "DocumentError", "Error", "Host", "NodeFacts",
    "Reboot", "Result", "RunError", "Scope", "Shard", "Summary", "UnknownValue", "XidEvent", "Xids", "read", "run",
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
    document: dict[str, Any] = field(repr=False)
    """The document itself, also with what only some commands add."""


class RunError(Exception):
    """The command could not be done at all, or was interrupted. ``str()`` is the message with its fix."""

    def __init__(self, error: Error, result: Result) -> None:
        super().__init__(f"{error.message}\nfix: {error.remedy}" if error.remedy else error.message)
        self.error, self.result = error, result


def run(*arguments: str | Path) -> Result:
    """Run a command, such as ``run("verify", "-i", "hosts.yaml")``, and return its result whatever became of the hosts.

    Progress and errors go to stderr. Raises :class:`RunError`, or :class:`DocumentError` if there is no result.
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
    with tempfile.TemporaryFile() as output:
        code = _exit_code(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output))
        output.seek(0)
        try:
            return json.load(output)
        except ValueError:
            words = " ".join(map(str, arguments))
            raise DocumentError(f"gpuready {words}: exit code {code}, and no result document") from None


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Wait for the process, also after an interrupt: it finishes what has begun on nodes. A second one kills it."""
    try:
        return process.wait()
    except BaseException as e:
        if not isinstance(e, KeyboardInterrupt):  # Ctrl-C reached it, too
            process.send_signal(signal.SIGINT)
        try:
            process.wait()
        except BaseException:
            process.kill()
            raise
        raise


def _result(value: Any) -> Result:
    found, code = document.read(value, parts())
    return Result(code, found, {host.name: host for host in found.everyone}, value)
