"""``gpuready report``: show a result document, what changed between two, or all shards as one. Does not connect."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpuready.base.errors import UsageError
from gpuready.cli.complete import files
from gpuready.cli.options import COLOR, Verb, output
from gpuready.cli.output import Target, targets, use_color, write
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.render import render

if TYPE_CHECKING:
    from gpuready.result.model import Run

_HELP = """Show a result document in any format, what changed between two, or the shards of one run as one result.

Any command writes a result document with --output json:PATH. A file named - is stdin. Does not connect. The formats csv
and svg are for results of fabric. Two documents must come from the same command. The exit code is 0 if the documents
can be read, even if they report failures; with --merge it is that of the whole run.

\b
  gpuready report result.json
  gpuready report result.json --output html:report.html
  gpuready report before.json after.json
  gpuready report before.json after.json --output json:changes.json
  gpuready report --merge shard-*.json --output junit:report.xml
"""
_BOTH = ("human", "json")


@click.command("report", cls=Verb, help=_HELP)
@click.argument("documents", metavar="RESULT.json...", nargs=-1, required=True, shell_complete=files)
@click.option("--merge", is_flag=True, help="Join the results of all shards of one run (--shard) into its result.")
@output(MATRIX_FORMATS)
@COLOR
def command(documents: tuple[str, ...], merge: bool, output: tuple[str, ...], color: str) -> int:
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
    for each in wanted:
        if each.form not in (fitting := run.part.formats):
            raise UsageError(
                f"--output {each.form} does not fit {documents[0]}, a result of {run.verb or 'no command'}",
                remedy=f"one of {', '.join(fitting)}",
            )
    rendered = [(each, render(run, code, each.form, color=on and each.path is None)) for each in wanted]
    return write(rendered, code if merge else 0)


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
