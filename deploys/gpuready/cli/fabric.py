"""``gpuready fabric``: RDMA between hosts, measured pair by pair, with the proof that RDMA carried it."""

from __future__ import annotations

import difflib
import random
from typing import TYPE_CHECKING, Any

import click

from gpuready.cli.options import HostVerb, fabric_options
from gpuready.cli.output import deliver
from gpuready.core.errors import UsageError
from gpuready.report.render import FABRIC_FORMATS
from gpuready.tools.fabric.commands import TESTS
from gpuready.tools.fabric.run import Wanted
from gpuready.tools.fabric.schedule import pairing

if TYPE_CHECKING:
    from gpuready.cli.online import Execute

_HELP = """Test RDMA between the hosts: pair by pair, no host in two pairs at once, port against port.

It loads the links at full speed for some seconds each: not beside a training job. Nothing is installed and
nothing stays behind; a tool that a host has not got is a skip that names its package.

\b
  gpuready fabric -i hosts.yaml                          each host with the next one
  gpuready fabric -i hosts.yaml --pairs all --output human --output svg:fabric.svg
  gpuready fabric -i hosts.yaml --pairs random:3 --seed 7 --tests write_bw
"""


@click.command("fabric", cls=HostVerb, help=_HELP)
@fabric_options
@click.option(
    "--pairs",
    default="ring",
    metavar="ring|all|random:N",
    show_default=True,
    help="Each with the next, each with each, or each with N others.",
)
@click.option("--tests", default=",".join(TESTS), metavar="NAME,...", show_default=True, help="Which, in this order.")
@click.option(
    "--seconds",
    type=click.IntRange(1, 600),
    default=5,
    show_default=True,
    help="How long write_bw measures, in each direction.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of random:N; printed, so that a run can be repeated.")
def command(pairs: str, tests: str, seconds: int, seed: int | None, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.online import online
    from gpuready.cli.request import request

    way = pairing(pairs, random.SystemRandom().randrange(2**32) if seed is None else seed)
    names = tuple(dict.fromkeys(name.strip() for name in tests.split(",")))
    for name in names:
        if name not in TESTS:
            near = difflib.get_close_matches(name, TESTS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"--tests: no test {name!r}{hint}", remedy=f"there are: {', '.join(TESTS)}")
    wanted = request("fabric", forms=FABRIC_FORMATS, **given)
    if len(wanted.entries) < 2:
        raise UsageError("fabric tests pairs, and there is one host", remedy="name two hosts, or a wider --limit")
    what = Wanted(way, names, seconds)
    return deliver(online(wanted, using=lambda: _pairwise(what)), wanted.outputs, color=wanted.color)


def _pairwise(wanted: Wanted) -> Execute:
    from gpuready.fabric_engine import Pairwise

    return lambda entries, options, progress: Pairwise(entries, options, progress).tests(wanted)
