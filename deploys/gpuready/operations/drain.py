"""Work is moved away before a node is disturbed, and let back after it, whatever became of the disturbance.

Slurm and the user's own commands run on the node, kubectl where gpuready runs. Who drained the node before us keeps it
drained: ours are told by Slurm's reason and by an annotation, so a run that was cut off is taken up by the next one.
Sources: scontrol(1), squeue(1), ``kubectl drain --help``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.host import Host

from gpuready.core.errors import GpureadyError
from gpuready.core.step import Script, Step
from gpuready.operations.step import PROGRESS, Pending, StepCommand
from gpuready.spec.model import DrainCommands, Maintenance

#: Seconds for which work may take to go away.
LIMIT = 1800
_KEY = "gpuready.drained"
_MARK = "gpuready"

Commands = Generator[PyinfraCommand, None, str]
Result = Generator[PyinfraCommand, None, GpureadyError | Pending | None]


class Kubectl(PyinfraCommand):
    """kubectl's part, on the controller; ``trouble`` says what went wrong."""

    def __init__(self, node: str, *, away: bool) -> None:
        super().__init__()
        self.node, self.away, self.trouble = node, away, ""

    def __repr__(self) -> str:
        return f"Kubectl({self.node})"

    def execute(self, state: Any, host: Host, connector_arguments: Any) -> bool:
        """pyinfra's entry; trouble is kept for the operation, which judges it."""
        what = "kubectl drain" if self.away else "kubectl uncordon"
        host.connector_data.get(PROGRESS, lambda name, what: None)(host.name, what)
        try:
            self._drain() if self.away else self._let_back()
        except Pending as e:
            self.trouble = str(e)
        return True

    def _drain(self) -> None:
        if self._get("{.spec.unschedulable}") != "true":
            self._call("annotate", "node", self.node, f"{_MARK}=drained", "--overwrite")
            self._call("cordon", self.node)
        try:
            self._call("drain", self.node, "--ignore-daemonsets", f"--timeout={LIMIT}s", seconds=LIMIT + 60)
        except Pending:
            self._let_back()
            raise

    def _let_back(self) -> None:
        if self._is_ours():
            self._call("uncordon", self.node)
            self._call("annotate", "node", self.node, f"{_MARK}-")

    def _is_ours(self) -> bool:
        return self._get(f"{{.metadata.annotations.{_MARK}}}") == "drained"

    def _get(self, path: str) -> str:
        return self._call("get", "node", self.node, "-o", f"jsonpath={path}").strip()

    def _call(self, *words: str, seconds: int = 60) -> str:
        said = f"kubectl {words[0]}"
        try:
            done = subprocess.run(
                ["kubectl", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
            )
        except FileNotFoundError:
            raise Pending("there is no kubectl on this machine") from None
        except subprocess.TimeoutExpired:
            raise Pending(f"{said} gave no answer within {seconds} s") from None
        if done.returncode:
            told = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise Pending(f"{said} failed: {'; '.join(told[-3:]) or f'exit {done.returncode}'}")
        return done.stdout


def is_drained(host: Host) -> bool:
    """Has this run moved the work away?"""
    return bool(host.connector_data.get(_KEY))


def begin(host: Host, maintenance: Maintenance) -> Commands:
    """Move the work away, unless this run has; what stands in the way, or nothing."""
    if is_drained(host):
        return ""
    trouble = yield from _run(host, maintenance, "before")
    host.connector_data[_KEY] = not trouble
    return f"until drained: {trouble}" if trouble else ""


def end(host: Host, maintenance: Maintenance) -> Commands:
    """Let the work back, if this run moved it away; what stands in the way, or nothing."""
    if not host.connector_data.pop(_KEY, False):
        return ""
    trouble = yield from _run(host, maintenance, "after")
    return f"the node is still drained: {trouble}" if trouble else ""


@dataclass(frozen=True)
class DrainByCommand(Script):
    """Run the user's command for a phase (before or after), for at most ``limit`` seconds."""

    template = "lib/drain"
    phase: str
    command: str
    limit: int = LIMIT


@dataclass(frozen=True)
class DrainSlurm(Script):
    """Drain the node in Slurm (phase before) or resume it (after); an empty ``node`` is this host by its own name."""

    template = "lib/drain-slurm"
    phase: str
    node: str
    limit: int = LIMIT


def _run(host: Host, maintenance: Maintenance, phase: str) -> Commands:
    drain = maintenance.drain
    if drain == "kubectl":
        kubectl = Kubectl(maintenance.node or host.name, away=phase == "before")
        yield kubectl
        return kubectl.trouble
    if isinstance(drain, DrainCommands):
        script: Script = DrainByCommand(phase, getattr(drain, phase))
    else:
        script = DrainSlurm(phase, maintenance.node or "")
    command = StepCommand(Step(f"drain-{phase}", script, timeout=LIMIT + 120, summary=f"drain: {phase}"))
    yield command
    return str(command.error) if command.error is not None else ""
