"""``gpuready history``: since when hosts and checks are as they are, from the results in a place. Does not connect."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from gpuready.base.errors import UsageError, Where, did_you_mean
from gpuready.base.files import reason
from gpuready.cli.complete import files
from gpuready.cli.options import COLOR, Verb, output, period
from gpuready.cli.output import targets, use_color, write
from gpuready.cli.sink import say

if TYPE_CHECKING:
    from gpuready.verbs.history.timeline import Timeline

_HELP = """Show since when each host and check has its current status, from the results that --history DIR_OR_URL kept.

Does not connect. It shows what is wrong now and since when, how often it was wrong, what changes back and forth (3
times or more within --since), what drifted after the last apply, and the mean time between Xids. Any result document in
the place counts, such as one of --output json:PATH. Other files are skipped and named. Times are UTC.

\b
  gpuready verify -i hosts.yaml --history results
  gpuready history results
  gpuready history results --limit gpu13 --check 'gpu.*' --since 90d
  gpuready history s3://bucket/results --output html:history.html
"""
_FORMS = ("human", "json", "html")
#: From so many new files on, stderr says what takes time.
_MANY = 200


@click.command("history", cls=Verb, help=_HELP)
@click.argument("place", metavar="DIR_OR_URL", shell_complete=files)
@click.option(
    "-l", "--limit", multiple=True, metavar="PATTERN", help="Only these hosts: name, range, glob, !exclude. Repeatable."
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="PATTERN",
    help="Only these checks and components, and whatever their status is: gpu.xid, 'gpu.*'. Repeatable.",
)
@click.option(
    "--since",
    callback=period,
    default="30d",
    show_default=True,
    metavar="TIME",
    help="The period in which results and changes are counted, such as 12h, 30d, 8w.",
)
@output(_FORMS)
@COLOR
def command(
    place: str, limit: tuple[str, ...], checks: tuple[str, ...], since: int, output: tuple[str, ...], color: str
) -> int:
    from gpuready.base.places import place as place_of
    from gpuready.result.document import DocumentError
    from gpuready.verbs.history import show
    from gpuready.verbs.history.html import page
    from gpuready.verbs.history.index import read
    from gpuready.verbs.history.timeline import fold

    wanted = targets(output, forms=_FORMS)
    where, now = place_of(place, "history"), time.time()
    try:
        found, skipped = read(where, _tell, lambda results: fold(results, since, now))
    except OSError as e:
        raise DocumentError(
            f"{where}: cannot be read: {reason(e)}", remedy="name the directory or URL of --history"
        ) from None
    _choose(found, limit, checks)
    on, rendered = use_color(color, sys.stdout), []
    for each in wanted:
        if each.form == "human":
            text = show.human(found, place, skipped, chosen=bool(checks), color=on and each.path is None)
        else:
            made = show.document(found, place, skipped)
            text = json.dumps(made, indent=2) + "\n" if each.form == "json" else page(made)
        rendered.append((each, text))
    return write(rendered, 0)


def _tell(number: int) -> None:
    if number >= _MANY:
        say(f"note: reading {number} new files", err=True)


def _choose(found: Timeline, limit: Sequence[str], checks: Sequence[str]) -> None:
    """Leave only the hosts and checks that were asked for. Raises UsageError, or InventoryError, if there are none."""
    from gpuready.inventory.groups import Graph
    from gpuready.inventory.patterns import select

    if limit:
        graph = Graph()
        for host in found.hosts:
            graph.add_host(host.name, graph.groups["ungrouped"], Where("the history"))
        names = set(select(graph, limit, []))
        found.hosts = [each for each in found.hosts if each.name in names]
        found.tracks = [each for each in found.tracks if each.host in names]
        found.drifts = [each for each in found.drifts if each.host in names]
        found.xids = [each for each in found.xids if each.host in names]
    if checks:
        known = {each.name for each in found.tracks if each.kind != "host"}
        for pattern in checks:
            if not any(fnmatchcase(name, pattern) for name in known):
                hint = did_you_mean(pattern, known)
                raise UsageError(f"--check {pattern}: no result has such a check or component{hint}")
        found.tracks = [each for each in found.tracks if any(fnmatchcase(each.name, pattern) for pattern in checks)]
        found.drifts = [
            each for each in found.drifts if any(fnmatchcase(each.component, pattern) for pattern in checks)
        ]
        found.xids = [each for each in found.xids if any(fnmatchcase("gpu.xid", pattern) for pattern in checks)]
