"""``gpuready report``: show a result document in any format, or what changed between two. Does not connect."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from gpuready.base.errors import UsageError
from gpuready.cli.complete import files
from gpuready.cli.options import COLOR, Verb, output
from gpuready.cli.output import targets, use_color, write
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.render import render

if TYPE_CHECKING:
    from gpuready.result.model import Run

_HELP = """Show a result document in any format, or what changed between two. Does not connect.

Any command writes a result document with --output json:PATH. A file named - is stdin. The formats csv and svg are for
results of fabric. Two documents must come from the same command. The exit code is 0 if the documents can be read, even
if they report failures.

\b
  gpuready report result.json
  gpuready report result.json --output html:report.html
  gpuready report before.json after.json
  gpuready report before.json after.json --output json:changes.json
"""
_BOTH = ("human", "json")


@click.command("report", cls=Verb, help=_HELP)
@click.argument("document", metavar="RESULT.json", shell_complete=files)
@click.argument("after", metavar="[AFTER.json]", required=False, shell_complete=files)
@output(MATRIX_FORMATS)
@COLOR
def command(document: str, after: str | None, output: tuple[str, ...], color: str) -> int:
    if document == after == "-":
        raise UsageError("only one of the documents can be stdin")
    wanted = targets(output, forms=MATRIX_FORMATS if after is None else _BOTH)
    on = use_color(color, sys.stdout)
    run, code = _read(document)
    if after is None:
        for each in wanted:
            if each.form not in (fitting := run.part.formats):
                raise UsageError(
                    f"--output {each.form} does not fit {document}, a result of {run.verb or 'no command'}",
                    remedy=f"one of {', '.join(fitting)}",
                )
        return write([(each, render(run, code, each.form, color=on and each.path is None)) for each in wanted], 0)
    from gpuready.result import changes

    other, its_code = _read(after)
    if run.verb != other.verb:
        verbs = [each.verb or "no command" for each in (run, other)]
        raise UsageError(
            f"{document} is a result of {verbs[0]}, and {after} of {verbs[1]}: report compares runs of one command",
            remedy=f"two results of {verbs[0]}, or two of {verbs[1]}",
        )
    found = changes.changes((run, code), (other, its_code))
    return write([
        (each, changes.human(found, color=on and each.path is None) if each.form == "human"
         else json.dumps(changes.document(found), indent=2) + "\n")
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
