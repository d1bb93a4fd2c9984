"""``gpuready fabric``: measure RDMA between hosts pair by pair, and prove by counters that RDMA carried it."""

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

_HELP = """Test RDMA between hosts, pair by pair. No host is in two pairs at the same time.

Each test loads its links at full speed for some seconds: do not run it beside a training job. Nothing is installed and
nothing is left behind. If a host lacks a tool, the test is skipped and names the package.

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
    help="Pair each host with the next one, with all others, or with N random others.",
)
@click.option(
    "--tests", default=",".join(TESTS), metavar="NAME,...", show_default=True, help="Tests to run, in this order."
)
@click.option(
    "--seconds",
    type=click.IntRange(1, 600),
    default=5,
    show_default=True,
    help="Duration of write_bw in each direction.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Seed for random:N. The report prints it, so a run can be repeated.",
)
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
        raise UsageError("fabric needs two hosts, and one is chosen", remedy="name two hosts, or a wider --limit")
    what = Wanted(way, names, seconds)
    return deliver(online(wanted, using=lambda: _pairwise(what)), wanted.outputs, color=wanted.color)


def _pairwise(wanted: Wanted) -> Execute:
    from gpuready.fabric_engine import FabricEngine

    return lambda entries, options, progress: FabricEngine(entries, options, progress).tests(wanted)
