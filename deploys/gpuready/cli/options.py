"""Options that several verbs share, and the request that they amount to."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from gpuready.cli.app import write_exit_codes
from gpuready.cli.output import Target, targets
from gpuready.components.base import Disruption
from gpuready.errors import UsageError
from gpuready.node import NODE
from gpuready.report.render import FABRIC_FORMATS, FORMATS
from gpuready.rollout import MAX_FAIL
from gpuready.spec.fields import BATCH
from gpuready.spec.inventory import HostEntry, Skipped, load
from gpuready.state import probe

F = TypeVar("F", bound=Callable[..., Any])
COMPONENTS = tuple(item.name for item in NODE)


class Verb(click.Command):
    """A verb's help ends in the exit codes."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_exit_codes(formatter)


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


_HOSTS = (
    click.option("-i", "--inventory", multiple=True, metavar="INVENTORY",
                 help="Ansible YAML or JSON, an executable that prints it, hosts: admin@10.0.0.7,  or @local "
                 "(this machine). Repeatable."),
    click.option("--limit", multiple=True, metavar="PATTERN",
                 help="Only these: name, group, glob, !without. Repeatable."),
    click.option("--allow-exec", is_flag=True, help="Run executable inventories, cmd: secrets and ProxyCommand."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto",
                 help="Default auto: on a terminal, unless NO_COLOR is set."),
)  # fmt: skip


def _output(forms: Sequence[str]) -> Callable[[F], F]:
    return click.option("--output", multiple=True, metavar="FORMAT[:PATH]",
                        help=f"{', '.join(forms)}; to stdout or into a file. Repeatable.")  # fmt: skip


_OUTPUT = _output(FORMATS)
_COMPONENTS = (
    click.option("--only", multiple=True, metavar="COMPONENT", help=f"One of {', '.join(COMPONENTS)}. Repeatable."),
    click.option("--skip", multiple=True, metavar="COMPONENT", help="All but this one. Repeatable."),
)
_REACH = (
    click.option("--host-keys", type=click.Choice(["strict", "accept-new"]), default="strict",
                 help="accept-new stores the key of a host that is not known yet; for CI."),
    click.option("--parallel", type=click.IntRange(1, 1024), default=64, show_default=True,
                 help="Hosts at a time."),
    click.option("--probe-timeout", type=click.IntRange(1, 3600), default=probe.TIMEOUT, show_default=True,
                 metavar="SECONDS", envvar="GPUREADY_PROBE_TIMEOUT", show_envvar=True,
                 help="How long a node may take to answer. Raise it for overloaded nodes."),
)  # fmt: skip
_CONSENT = (
    click.option("--allow-disruption", type=click.Choice([item.name for item in Disruption]), default="restart",
                 show_default=True, help="The most that may happen; the spec's maintenance may allow less."),
    click.option("--batch", default="", metavar="N|N%|N,N%",
                 help="Hosts at a time, batch after batch. Default: 1,25% where work could be hit, else all."),
)  # fmt: skip
_MAX_FAIL = click.option(
    "--max-fail",
    default="0",
    metavar="N|N%",
    show_default=True,
    help="Hosts that may go wrong; after one more, no further batch begins.",
)  # fmt: skip
STATE = click.option(
    "--state", metavar="FILE", help="Judge recorded states (gpuready probe; - is stdin) instead of connecting."
)


def hosts(function: F) -> F:
    """``-i``, ``--limit``, ``--allow-exec``, ``--color``."""
    return _apply(function, _HOSTS)


def run_options(function: F) -> F:
    """All that verbs which connect and compare have in common."""
    return _apply(function, (*_HOSTS, _OUTPUT, *_COMPONENTS, *_REACH))


def consent_options(function: F) -> F:
    """What may happen, and to how many at once."""
    return _apply(function, _CONSENT)


def change_options(function: F) -> F:
    """As :func:`consent_options`, and when to stop."""
    return _apply(function, (*_CONSENT, _MAX_FAIL))


def probe_options(function: F) -> F:
    """As :func:`run_options`, without components."""
    return _apply(function, (*_HOSTS, _OUTPUT, *_REACH))


def fabric_options(function: F) -> F:
    """As :func:`probe_options`, with the formats of the tests between hosts."""
    return _apply(function, (*_HOSTS, _output(FABRIC_FORMATS), *_REACH))


def _apply(function: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


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
        raise UsageError(f"--batch {batch}: no batch size", remedy="a number from 1, a percentage, or several: 1,25%")
    if not MAX_FAIL.fullmatch(max_fail):
        raise UsageError(f"--max-fail {max_fail}: no number of hosts", remedy="a number from 0, or a percentage: 10%")
    outputs = targets(output, default_output, forms)
    selected = selection(only, skip)
    from gpuready.checks import BY_ID

    found = load(inventory, limit=limit, allow_exec=allow_exec, check_ids=BY_ID)
    return Request(
        verb, tuple(inventory), found.chosen, found.skipped, selected, outputs, color, host_keys, parallel,
        probe_timeout, Disruption[allow_disruption], batch, max_fail,
    )  # fmt: skip


def selection(only: Sequence[str], skip: Sequence[str]) -> frozenset[str] | None:
    """The chosen components; None is all of them. UsageError for a name that is none, or when nothing is left."""
    for name in (*only, *skip):
        if name not in COMPONENTS:
            near = difflib.get_close_matches(name, COMPONENTS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no component {name!r}{hint}", remedy=f"there are: {', '.join(COMPONENTS)}")
    if not only and not skip:
        return None
    chosen = frozenset(only or COMPONENTS) - frozenset(skip)
    if not chosen:
        raise UsageError("--only and --skip leave no component")
    return chosen
