"""``gpuready report``: show a result document, compare two, or join several. Does not connect."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gpuready.base.errors import UsageError
from gpuready.base.files import reason
from gpuready.base.words import count
from gpuready.cli.complete import files, inventories
from gpuready.cli.options import COLOR, Verb, output, period
from gpuready.cli.output import Target, targets, use_color, write
from gpuready.cli.sink import complain
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.render import render
from gpuready.result.text import one_line

if TYPE_CHECKING:
    from gpuready.inventory.signatures import Signers
    from gpuready.result.model import Run

_HELP = """Show a result document in any format, compare two, or join those of shards or nodes.

Any command writes a result document with --output json:PATH. A file named - is stdin. Does not connect. The formats csv
and svg are for results of fabric. Two documents must come from the same command. The exit code is 0 if the documents
can be read, even if they report failures; with --merge it is that of the whole run.

A directory or a URL has the results of nodes that pull their spec (gpuready render pull). report shows them as one
result, with the exit code of one run. A node that has not reported for --max-age is unreachable.

--check-signature checks the signature of each file first, FILE.sig as ssh-keygen -Y sign -n gpuready-result writes it.
With -i, every host must have been verified with the spec it has there; with --max-age, the result must not be older.

--where shows only hosts with this fact. 580 finds driver 580.95.05, and != finds the hosts without it. none finds those
that have nothing of the kind. The keys are driver, gpu, gpus, kernel, os, toolkit, engine, and each engine (docker,
containerd, cri-o). The exit code in the result is that of these hosts. It can be 2 (--detailed-exitcode) only if that
of the whole run is 2. Results of fabric are about pairs of hosts, so --where does not fit them.

\b
  gpuready report result.json
  gpuready report result.json --output html:report.html
  gpuready report before.json after.json
  gpuready report before.json after.json --output html:changes.html
  gpuready report --merge shard-*.json --output junit:report.xml
  gpuready report result.json --where driver!=580 --where gpu=H200
  gpuready report s3://bucket/fleet -i hosts.yaml --max-age 2h
  gpuready report evidence.json --check-signature allowed_signers -i hosts.yaml --max-age 1d
"""
_BOTH = ("human", "json", "html")
#: The most files without a node's name that the notes list.
_NAMED = 20


@click.command("report", cls=Verb, help=_HELP)
@click.argument("documents", metavar="RESULT.json...|DIR_OR_URL", nargs=-1, required=True, shell_complete=files)
@click.option("--merge", is_flag=True, help="Join the results of all shards of one run (--shard) into its result.")
@click.option("-i", "--inventory", multiple=True, metavar="INVENTORY", shell_complete=inventories,
              help="With DIR_OR_URL: the nodes that should report, by hostname. With --check-signature: the specs that "
              "must have been verified. Repeatable.")  # fmt: skip
@click.option("--max-age", callback=period, default="3h", show_default=True, metavar="TIME",
              help="With DIR_OR_URL: a node without a newer result is unreachable. With --check-signature: refuse an "
              "older result, if given.")  # fmt: skip
@click.option("--check-signature", "signers", metavar="ALLOWED_SIGNERS", shell_complete=files,
              help="Refuse a file without a signature by a key in this file, as in ssh-keygen(1).")  # fmt: skip
@click.option("--where", multiple=True, metavar="KEY=VALUE", help="Only hosts with this fact. Repeatable: all apply.")
@output(MATRIX_FORMATS)
@COLOR
def command(
    documents: tuple[str, ...],
    merge: bool,
    inventory: tuple[str, ...],
    max_age: int,
    signers: str | None,
    where: tuple[str, ...],
    output: tuple[str, ...],
    color: str,
) -> int:
    here = any(map(_is_place, documents))
    if signers is not None and (here or "-" in documents):
        raise UsageError("--check-signature needs files: the signature of FILE is in FILE.sig")
    if here and merge:
        raise UsageError("--merge joins documents; a directory or URL is one result anyway", remedy="leave out --merge")
    asked = click.get_current_context().get_parameter_source("max_age")
    if not here and signers is None and asked is ParameterSource.COMMANDLINE:
        raise UsageError("--max-age needs a directory or URL with the results of nodes, or --check-signature")
    if here:
        return _gather(documents, inventory, max_age, where, output, color)
    if inventory and signers is None:
        raise UsageError("-i needs a directory or a URL with the results of nodes, or --check-signature")
    if documents.count("-") > 1:
        raise UsageError("only one of the documents can be stdin")
    if len(documents) > 2 and not merge:
        raise UsageError(
            f"report compares two documents; {len(documents)} are given",
            remedy="--merge joins the results of the shards of one run",
        )
    wanted = targets(output, forms=MATRIX_FORMATS if merge or len(documents) == 1 else _BOTH)
    on = use_color(color, sys.stdout)
    found = _read_all(documents, signers)
    if asked is ParameterSource.COMMANDLINE:
        _refuse_old(documents, found, max_age)
    if merge:
        from gpuready.verbs.report.merge import Document, merged

        found = [merged([Document(path, *each) for path, each in zip(documents, found, strict=True)])]
    if inventory:
        _refuse_other(documents, found, inventory)
    found = _chosen(found, where)
    if len(found) == 2:
        return _compare(documents, found, wanted, color=on)
    ((run, code),) = found
    return _show(documents[0], run, code, wanted, color=on, ends=code if merge else 0)


def _is_place(text: str) -> bool:
    return "://" in text or Path(text).is_dir()


def _chosen(found: list[tuple[Run, int]], where: Sequence[str]) -> list[tuple[Run, int]]:
    """The runs with the hosts that meet all conditions, in one of the runs at least, and their exit codes."""
    from gpuready.result.document import DocumentError
    from gpuready.result.exitcode import exit_code
    from gpuready.result.facts import KEYS, Where, values

    conditions = []
    for text in where:
        if (condition := Where.of(text)) is None:
            raise UsageError(
                f"--where {text}: not a condition",
                remedy=f"write driver=580 or driver!=580; the keys are {', '.join(KEYS)}, and each engine",
            )
        conditions.append(condition)
    if not conditions:
        return found
    if whole := [run.verb for run, _ in found if run.parts]:
        raise UsageError(f"--where does not fit a result of {whole[0]}: it is about its hosts together")
    hosts = [host for run, _ in found for host in run.everyone]
    names = {host.name for host in hosts if all(each.matches(host.facts) for each in conditions)}
    if not names:
        seen = [f"{key}: {', '.join(values(key, (host.facts for host in hosts))) or 'not known'}"
                for key in dict.fromkeys(each.key for each in conditions)]  # fmt: skip
        raise DocumentError(f"no host has {' and '.join(where)}", remedy=f"the hosts have {'; '.join(seen)}")
    chosen = []
    for run, code in found:
        run.hosts = [host for host in run.hosts if host.name in names]
        run.unmanaged = []
        run.batches = [batch for each in run.batches if (batch := tuple(name for name in each if name in names))]
        run.source = f"{run.source or 'hosts'} where {' and '.join(where)}"
        chosen.append((run, exit_code(run, detailed=code == 2)))
    return chosen


def _gather(
    documents: Sequence[str],
    inventory: Sequence[str],
    most: int,
    where: Sequence[str],
    output: Sequence[str],
    color: str,
) -> int:
    """Show the results of a place as one."""
    from gpuready.base.places import place
    from gpuready.inventory.hosts import load
    from gpuready.result.document import DocumentError
    from gpuready.result.exitcode import exit_code
    from gpuready.verbs.report.place import gathered

    if len(documents) > 1:
        raise UsageError("a directory or URL of results must be the only argument")
    wanted, source = targets(output), place(documents[0], "report")
    expected = [entry.name for entry in load(inventory, secrets=False).chosen] if inventory else None
    try:
        run, skipped = gathered(source, expected, most)
    except OSError as e:
        raise DocumentError(
            f"{source}: cannot be read: {reason(e)}", remedy="give the --results of render pull"
        ) from None
    for name, why in sorted(skipped.items())[:_NAMED]:
        complain(f"note: {one_line(name)}: skipped: {why}\n")
    if len(skipped) > _NAMED:
        complain(f"note: {count(len(skipped) - _NAMED, 'more file was', 'more files were')} skipped\n")
    if not run.hosts:
        raise DocumentError(f"{source}: contains no result of a node")
    ((run, code),) = _chosen([(run, exit_code(run))], where)
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
    shown: dict[str, Callable[[Target], str]] = {
        "human": lambda each: changes.human(both, color=color and each.path is None),
        "json": lambda each: json.dumps(changes.document(both), indent=2) + "\n",
        "html": lambda each: changes.html(both),
    }
    return write([(each, shown[each.form](each)) for each in wanted], 0)


def _read_all(documents: Sequence[str], signers: str | None) -> list[tuple[Run, int]]:
    if signers is None:
        return [_read(document, None) for document in documents]
    from gpuready.verbs.report.evidence import allowed

    keys = allowed(signers)
    return [_read(document, keys) for document in documents]


def _read(path: str, signers: Signers | None) -> tuple[Run, int]:
    """Return the run of a document, or of the one in an in-toto statement; with ``signers``, only a signed one."""
    from gpuready.cli.documents import from_json, read_data
    from gpuready.cli.parts import parts
    from gpuready.result.document import DocumentError, read
    from gpuready.result.statement import result_of

    data = read_data(path, DocumentError)
    if signers is not None:
        from gpuready.verbs.report.evidence import signed_by

        complain(f"{one_line(path)}: signed by {one_line(signed_by(path, data, signers))}\n")
    found = from_json(path, data, DocumentError, "a result document is what --output json:PATH writes")
    try:
        return read(result_of(found), parts())
    except DocumentError as e:
        raise DocumentError(f"{path}: {e}", remedy=e.remedy) from None


def _refuse_old(documents: Sequence[str], found: Sequence[tuple[Run, int]], most: int) -> None:
    """Raise DocumentError if a run ended more than ``most`` seconds ago."""
    from gpuready.verbs.report.evidence import refuse_old

    for path, (run, _) in zip(documents, found, strict=True):
        refuse_old(path, run, most)


def _refuse_other(documents: Sequence[str], found: Sequence[tuple[Run, int]], inventory: Sequence[str]) -> None:
    """Raise DocumentError if a run is not of all hosts of the inventory, with their specs."""
    from gpuready.inventory.hosts import load
    from gpuready.verbs.report.evidence import refuse_other

    entries = load(inventory, secrets=False).chosen
    for path, (run, _) in zip(documents, found, strict=False):  # merged documents are one run
        refuse_other(path, run, entries)
