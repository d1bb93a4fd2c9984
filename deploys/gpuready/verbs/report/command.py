"""``gpuready report``: show a result document, compare two, or join several. Does not connect."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gpuready.base.errors import UsageError
from gpuready.base.files import reason
from gpuready.cli.complete import files, inventories
from gpuready.cli.options import COLOR, Verb, output, period
from gpuready.cli.output import Target, targets, use_color, write
from gpuready.cli.sink import complain
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.render import render
from gpuready.result.text import one_line

if TYPE_CHECKING:
    from gpuready.result.model import Run

_HELP = """Show a result document in any format, compare two, or join those of shards or nodes.

Any command writes a result document with --output json:PATH. A file named - is stdin. Does not connect. The formats csv
and svg are for results of fabric. Two documents must come from the same command. The exit code is 0 if the documents
can be read, even if they report failures; with --merge it is that of the whole run.

A directory or a URL has the results of nodes that pull their spec (gpuready render pull). report shows them as one
result, with the exit code of one run. A node that has not reported for --max-age is unreachable.

\b
  gpuready report result.json
  gpuready report result.json --output html:report.html
  gpuready report before.json after.json
  gpuready report before.json after.json --output json:changes.json
  gpuready report --merge shard-*.json --output junit:report.xml
  gpuready report s3://bucket/fleet -i hosts.yaml --max-age 2h
"""
_BOTH = ("human", "json")
#: The most files without a node's name that the notes list.
_NAMED = 20


@click.command("report", cls=Verb, help=_HELP)
@click.argument("documents", metavar="RESULT.json...|DIR_OR_URL", nargs=-1, required=True, shell_complete=files)
@click.option("--merge", is_flag=True, help="Join the results of all shards of one run (--shard) into its result.")
@click.option("-i", "--inventory", multiple=True, metavar="INVENTORY", shell_complete=inventories,
              help="With DIR_OR_URL: the nodes that should report, by hostname. Repeatable.")  # fmt: skip
@click.option("--max-age", callback=period, default="3h", show_default=True, metavar="TIME",
              help="With DIR_OR_URL: a node without a newer result is unreachable.")  # fmt: skip
@output(MATRIX_FORMATS)
@COLOR
def command(
    documents: tuple[str, ...],
    merge: bool,
    inventory: tuple[str, ...],
    max_age: int,
    output: tuple[str, ...],
    color: str,
) -> int:
    here = any(map(_is_place, documents))
    if here and merge:
        raise UsageError("--merge joins documents; a directory or URL is one result anyway", remedy="leave out --merge")
    asked = click.get_current_context().get_parameter_source("max_age")
    if not here and asked is ParameterSource.COMMANDLINE:
        raise UsageError("--max-age is for a directory or URL with the results of nodes")
    if here:
        return _gather(documents, inventory, max_age, output, color)
    if inventory:
        raise UsageError("-i needs a directory or a URL with the results of nodes")
    if documents.count("-") > 1:
        raise UsageError("only one of the documents can be stdin")
    if len(documents) > 2 and not merge:
        raise UsageError(
            f"report compares two documents; {len(documents)} are given",
            remedy="--merge joins the results of the shards of one run",
        )
    wanted = targets(output, forms=MATRIX_FORMATS if merge or len(documents) == 1 else _BOTH)
    on = use_color(color, sys.stdout)
    found = [_read(document) for document in documents]
    if len(found) == 2 and not merge:
        return _compare(documents, found, wanted, color=on)
    (run, code), *_ = found
    if merge:
        from gpuready.verbs.report.merge import Document, merged

        run, code = merged([Document(path, *each) for path, each in zip(documents, found, strict=True)])
    return _show(documents[0], run, code, wanted, color=on, ends=code if merge else 0)


def _is_place(text: str) -> bool:
    return "://" in text or Path(text).is_dir()


def _gather(documents: Sequence[str], inventory: Sequence[str], most: int, output: Sequence[str], color: str) -> int:
    """Show the results of a place as one."""
    from gpuready.base.places import place
    from gpuready.inventory.hosts import load
    from gpuready.result.document import DocumentError
    from gpuready.result.exitcode import exit_code
    from gpuready.verbs.report.place import gathered

    if len(documents) > 1:
        raise UsageError("a directory or URL of results must be the only argument")
    wanted, where = targets(output), place(documents[0], "report")
    expected = [entry.name for entry in load(inventory, secrets=False).chosen] if inventory else None
    try:
        run, skipped = gathered(where, expected, most)
    except OSError as e:
        raise DocumentError(
            f"{where}: cannot be read: {reason(e)}", remedy="give the --results of render pull"
        ) from None
    for name, why in sorted(skipped.items())[:_NAMED]:
        complain(f"note: {one_line(name)}: skipped: {why}\n")
    if len(skipped) > _NAMED:
        complain(f"note: {len(skipped) - _NAMED} more files were skipped\n")
    if not run.hosts:
        raise DocumentError(f"{where}: contains no result of a node")
    code = exit_code(run)
    return _show(documents[0], run, code, wanted, color=use_color(color, sys.stdout), ends=code)


def _show(name: str, run: Run, code: int, wanted: Sequence[Target], *, color: bool, ends: int) -> int:
    """Write the run in each format. ``ends``: the exit code of report."""
    for each in wanted:
        if each.form not in (fitting := run.part.formats):
            raise UsageError(
                f"--output {each.form} does not fit {name}, a result of {run.verb or 'no command'}",
                remedy=f"one of {', '.join(fitting)}",
            )
    return write([(each, render(run, code, each.form, color=color and each.path is None)) for each in wanted], ends)


def _compare(
    documents: Sequence[str], found: Sequence[tuple[Run, int]], wanted: Sequence[Target], *, color: bool
) -> int:
    """Show what changed from the first document to the second."""
    from gpuready.result import changes

    verbs = [run.verb or "no command" for run, _ in found]
    if verbs[0] != verbs[1]:
        raise UsageError(
            f"{documents[0]} is a result of {verbs[0]}, and {documents[1]} of {verbs[1]}: report compares runs of one "
            "command",
            remedy=f"two results of {verbs[0]}, or two of {verbs[1]}",
        )
    both = changes.changes(*found)
    return write([
        (each, changes.human(both, color=color and each.path is None) if each.form == "human"
         else json.dumps(changes.document(both), indent=2) + "\n")
        for each in wanted
    ], 0)  # fmt: skip


def _read(path: str) -> tuple[Run, int]:
    from gpuready.cli.documents import read_json
    from gpuready.cli.parts import parts
    from gpuready.result.document import DocumentError, read

    found = read_json(path, DocumentError, "a result document is what --output json:PATH writes")
    try:
        return read(found, parts())
    except DocumentError as e:
        raise DocumentError(f"{path}: {e}", remedy=e.remedy) from None
