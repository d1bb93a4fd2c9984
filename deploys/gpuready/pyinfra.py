"""Deploys for your own pyinfra code: ``from gpuready.pyinfra import converge, docker, ldso, verify``.

Each component is a deploy of its name; ``converge`` runs them all in order, and ``verify`` fails if a check fails. The
spec is the host's data ``gpuready``: a mapping as in an inventory, from pyinfra's inventory or group data; or that of
gpuready's own inventory (:func:`hosts`). Deploys that follow each other share one exec that
reads the node; after any other operation they read it again. ``verify`` always does.
"""

import sys
from collections.abc import Callable, Generator
from datetime import date
from pathlib import Path
from typing import Any

from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import operation
from pyinfra.context import host
from pyinfra.context import state as run

from gpuready.base.errors import ConvergeError, GpureadyError, SpecErrors, Where
from gpuready.base.words import count
from gpuready.catalogue import BY_ID, CATALOGUE, QUESTIONS
from gpuready.contract.check import concerning, run_checks
from gpuready.contract.component import Component, Disruption
from gpuready.inventory.build import build
from gpuready.inventory.hosts import load
from gpuready.inventory.source_values import located
from gpuready.model.spec import NodeSpec
from gpuready.node import NODE
from gpuready.operations.active import run_active
from gpuready.operations.component import component
from gpuready.operations.connection import host_data
from gpuready.operations.context import Context, begin, context, has_begun
from gpuready.operations.node_state import forget, settled_state
from gpuready.operations.reboot import reboot as _reboot
from gpuready.operations.step import Failed
from gpuready.result.blocks import skipped_lines
from gpuready.result.model import Run
from gpuready.result.text import Painter, printable
from gpuready.run.operations import operations

_BY_NAME = {item.name: item for item in NODE}
__all__ = ["converge", "hosts", "reboot", "verify"]


def hosts(inventory: str | Path) -> list[tuple[str, dict[str, Any]]]:
    """Return pyinfra's (name, data) for every chosen host of a YAML inventory; print the skipped hosts to stderr.

    An error ends the program with its message.
    """
    try:
        found = load([str(inventory)], check_ids=lambda: BY_ID)
    except GpureadyError as e:
        sys.exit(printable(f"{e}"))
    skipped = Run("apply")
    skipped.leave_alone(found.skipped)
    for line in skipped_lines(skipped, Painter(False)):
        print(printable(line), file=sys.stderr)
    return [(entry.name, host_data(entry.connection) | {"gpuready": entry.spec}) for entry in found.chosen]


def converge() -> None:
    """Converge all components of the host. Raises PyinfraError if its spec is invalid, as the others do."""
    _read_spec()
    operations()


def verify() -> None:
    """Probe the host anew and judge it; the operation fails if a check fails or is unknown."""
    _read_spec()
    judge(name="verify")


@operation()
def judge() -> Generator[PyinfraCommand, None, None]:
    """Judge the host by a new probe, with two execs. The error lists each failed or unknown check."""
    if not run.is_executing:  # pyinfra detects changes; this makes none
        return
    spec = context(host).spec
    forget(host)
    try:
        state = settled_state(host)
        concerned = concerning(CATALOGUE, spec, state)
        if any(check.active for check in concerned):
            state = run_active(host, state, spec, QUESTIONS)
    except GpureadyError as e:
        yield Failed(e)
        return
    judged = run_checks(concerned, spec, state, host.name, active=True, today=date.today())
    bad = [j for j in judged if j.verdict.status in ("fail", "unknown")]
    if bad:
        lines = [f"{j.check.id}: {j.verdict.status}: {j.verdict.summary}" for j in bad]
        yield Failed(ConvergeError("; ".join([*lines, f"gpuready explain {bad[0].check.id} has the fix"])))
    else:
        host.noop(f"{count(len(judged), 'check')}, none failed")


def reboot() -> None:
    """Reboot the host if a component before needs it and the spec permits it."""
    _read_spec()
    _reboot(name="reboot")


def __getattr__(name: str) -> Callable[[], None]:
    if name not in _BY_NAME:
        raise AttributeError(f"gpuready has no component {name!r}: {', '.join(_BY_NAME)}")
    return _deploy(_BY_NAME[name])


def __dir__() -> list[str]:
    return sorted([*__all__, *_BY_NAME])


def _deploy(item: Component) -> Callable[[], None]:
    def deploy() -> None:
        _read_spec()
        component(item=item, order=(item,), name=item.name)

    deploy.__name__ = item.name
    deploy.__doc__ = f"Converge the component {item.name}."
    return deploy


def _read_spec() -> None:
    if has_begun(host):
        return
    if not hasattr(host.data, "gpuready"):
        way = "give it a mapping (an empty one will do), or leave the host out with --limit"
        raise PyinfraError(f"{host.name} has no data gpuready: {way}")
    spec = host.data.gpuready
    if not isinstance(spec, NodeSpec):
        given = located(spec, Where(f"host.data.gpuready of {host.name}"))
        try:
            spec = build(given, today=date.today(), allow_exec=True, check_ids=lambda: BY_ID)
        except SpecErrors as e:
            raise PyinfraError(str(e)) from None
    begin(host, Context(spec, allowed=Disruption.reboot))  # the spec alone is the limit
