"""``gpuready fabric``: measure RDMA or TCP between pairs of hosts; counters show which link carried the traffic."""

from __future__ import annotations

import random
from typing import Any

import click

from gpuready.base.errors import UsageError, did_you_mean
from gpuready.cli.complete import listed
from gpuready.cli.options import HostVerb, Number, fabric_options
from gpuready.fabric.commands import GROUPS, TESTS, WITH_RDMA
from gpuready.fabric.run import Wanted
from gpuready.fabric.schedule import pairing

_HELP = """Test RDMA or TCP between hosts, pair by pair. No host is in two pairs at the same time.

Each test loads its links at full speed for some seconds: do not run it beside a training job. Nothing is installed and
nothing is left behind. If a host lacks a tool, gpuready skips the test and names the package; a test that --tests names
is then unknown (exit 3).

\b
  gpuready fabric -i hosts.yaml                          each host with the next one
  gpuready fabric -i hosts.yaml --pairs all --output human --output svg:fabric.svg
  gpuready fabric -i hosts.yaml --pairs random:3 --seed 7 --tests write_bw
  gpuready fabric -i hosts.yaml --tests tcp              ports, MTU, latency, throughput
  gpuready fabric -i hosts.yaml --tests train            a DDP training on all hosts at once
  gpuready fabric -i hosts.yaml --tests collective       all-reduce and others on all GPUs; names the bad host
  gpuready fabric -i hosts.yaml --limit gpu13 --tests loopback    each RDMA port of one host, without the network

\b
Tests, in this order by default:
  with RDMA     rping, write_bw, read_lat, nccl
  without RDMA  tcp (tcp_connect, tcp_mtu, tcp_lat, tcp_bw), nccl
  if named      train: the script of gpuready example ddp
                collective: all-reduce, all-gather, reduce-scatter, all-to-all by size
                loopback: ib_write_bw of each port to itself; names the port that is slower than the others
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
    "--tests",
    metavar="NAME,...",
    shell_complete=listed(TESTS),
    help="Tests to run, in this order. Default: the RDMA tests if a host has RDMA, else the TCP tests.",
)
@click.option(
    "--mpirun",
    is_flag=True,
    help="Measure collective with nccl-tests, which mpirun on the first host starts over SSH between the hosts.",
)
@click.option(
    "--seconds",
    type=Number(1, 600),
    default=5,
    show_default=True,
    help="Duration of write_bw and of both parts of tcp_bw, each per direction; also of train, of each collective, and "
    "of loopback for each port.",
)
@click.option(
    "--seed",
    type=Number(0, 2**32 - 1),
    help="Seed for random:N. The report prints it, so a run can be repeated.",
)
def command(pairs: str, tests: str | None, mpirun: bool, seconds: int, seed: int | None, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.online import online
    from gpuready.cli.request import request
    from gpuready.run.access import Work

    way = pairing(pairs, random.SystemRandom().randrange(2**32) if seed is None else seed)
    named = [each for name in tests.split(",") for each in _named(name)] if tests is not None else WITH_RDMA
    wanted = request("fabric", **given)
    what = Wanted(way, tuple(dict.fromkeys(named)), seconds, tests is None, mpirun)
    if mpirun and "collective" not in what.tests:
        raise UsageError("--mpirun measures collective", remedy="add --tests collective")
    if len(wanted.entries) < 2 and what.of_several:
        remedy = "add a host, or widen --limit; one host alone: --tests loopback, or gpuready verify --level stress"
        raise UsageError("fabric needs at least two hosts; one is chosen", remedy=remedy)
    work, divided = (f"gpuready.verbs.fabric.{module}:run_tests" for module in ("work", "divided"))
    return wanted.deliver(online(wanted, using=Work(work, {"wanted": what}, divided)))


def _named(text: str) -> tuple[str, ...]:
    """Return the tests of a name; raises UsageError if there is none."""
    name = text.strip()
    if name in GROUPS:
        return GROUPS[name]
    if name in TESTS:
        return (name,)
    hint, known = did_you_mean(name, TESTS), ", ".join((*GROUPS, *TESTS))
    raise UsageError(f"--tests: no test {name!r}{hint}", remedy=f"there are: {known}")
