"""What a command line asks for: the options checked, the inventory read, the hosts and components chosen."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from gpuready.catalogue import BY_ID
from gpuready.cli.output import Target, targets
from gpuready.core.component import Disruption
from gpuready.core.errors import UsageError
from gpuready.core.fields import BATCH
from gpuready.core.rollout import MAX_FAIL
from gpuready.inventory.hosts import HostEntry, Skipped, load
from gpuready.report.render import FORMATS
from gpuready.state import probe


@dataclass(frozen=True)
class Request:
    """What was asked for: the hosts, the components (None: all), what may happen, and where the result goes.

    ``skipped``: hosts that were not chosen.
    """

    verb: str
    sources: tuple[str, ...]
    entries: tuple[HostEntry, ...]
    skipped: tuple[Skipped, ...]
    selected: frozenset[str] | None
    outputs: tuple[Target, ...]
    color: str
    host_keys: str = "strict"
    parallel: int = 64
    probe_timeout: int = probe.TIMEOUT
    allowed: Disruption = Disruption.restart
    batch: str = ""
    max_fail: str = "0"


def request(
    verb: str,
    *,
    inventory: Sequence[str],
    limit: Sequence[str],
    allow_exec: bool,
    color: str,
    output: Sequence[str] = (),
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    host_keys: str = "strict",
    parallel: int = 64,
    probe_timeout: int = probe.TIMEOUT,
    allow_disruption: str = "restart",
    batch: str = "",
    max_fail: str = "0",
    default_output: str = "human",
    forms: Sequence[str] = FORMATS,
) -> Request:
    """Check the command line first, then the inventory; nothing is connected yet."""
    if not inventory:
        raise UsageError(
            "no inventory: -i is missing", remedy=f"gpuready {verb} -i hosts.yaml, or -i admin@10.0.0.7, for one host"
        )
    if batch and not BATCH.fullmatch(batch):
        raise UsageError(
            f"--batch {batch}: not a batch size", remedy="a number from 1, a percentage, or several: 1,25%"
        )
    if not MAX_FAIL.fullmatch(max_fail):
        raise UsageError(
            f"--max-fail {max_fail}: not a number of hosts", remedy="a number from 0, or a percentage: 10%"
        )
    outputs = targets(output, default_output, forms)
    selected = selection(only, skip)
    found = load(inventory, limit=limit, allow_exec=allow_exec, check_ids=BY_ID)
    return Request(
        verb, tuple(inventory), found.chosen, found.skipped, selected, outputs, color, host_keys, parallel,
        probe_timeout, Disruption[allow_disruption], batch, max_fail,
    )  # fmt: skip


def selection(only: Sequence[str], skip: Sequence[str]) -> frozenset[str] | None:
    """The chosen components; None is all of them. UsageError for a name that is none, or when nothing is left."""
    if not only and not skip:
        return None
    from gpuready.node import NODE

    names = [item.name for item in NODE]
    for name in (*only, *skip):
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no component {name!r}{hint}", remedy=f"there are: {', '.join(names)}")
    chosen = frozenset(only or names) - frozenset(skip)
    if not chosen:
        raise UsageError("--only and --skip leave no component")
    return chosen
