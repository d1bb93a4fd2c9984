"""The tests between hosts for people and for machines: the matrix, failed links with their fix, CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuready.core.host_list import hostlist
from gpuready.report.mask import mask_text
from gpuready.report.matrix import Matrix, matrices, shown
from gpuready.report.run import Run
from gpuready.report.text import Painter, count, lines, printable
from gpuready.tools.fabric.commands import TESTS

if TYPE_CHECKING:
    from gpuready.tools.fabric.verdict import Finding

#: Of more hosts a matrix does not fit a terminal; then the extremes are told.
_MOST_HOSTS = 12
_STYLES = {"fail": "red", "unknown": "yellow", "skip": "dim", "pass": "green"}
_COLUMNS = (
    "round", "test", "client_host", "client_device", "client_port", "client_address", "server_host", "server_device",
    "server_port", "server_address", "status", "value", "unit", "limit", "summary", "proof", "seconds",
)  # fmt: skip


def csv_table(run: Run) -> str:
    """One line a finding, under a header; only the header where nothing was tested."""
    import csv  # like statistics, only where it is asked for
    import io

    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_COLUMNS)
    for each in run.fabric.findings if run.fabric else ():
        ends = [x for end in (each.client, each.server) for x in (end.host, end.device, end.port, end.address)]
        limit = "" if each.limit is None else f"{each.limit:g}"
        value = "" if each.value is None else f"{each.value:g}"
        texts = [each.summary.replace("\n", "; "), each.proof]
        row = [each.round, each.test, *ends, each.status, value, each.unit, limit, *texts, f"{each.seconds:.1f}"]
        table.writerow([printable(mask_text(str(field))) for field in row])
    return out.getvalue()


def headline(run: Run) -> str:
    """``fabric: 4 hosts of hosts.yaml, ring: 4 pairs in 2 rounds, 31.2 s``."""
    assert run.fabric is not None
    pairing = run.fabric.wanted.pairing
    seed = "" if pairing.seed is None else f" (seed {pairing.seed})"
    met = {frozenset((each.server.host, each.client.host)) for each in run.fabric.findings}
    source = f" of {run.probed}" if run.probed else ""
    rounds = f"{count(len(met), 'pair')} in {count(run.fabric.rounds, 'round')}"
    return f"fabric: {count(len(run.hosts), 'host')}{source}, {pairing}{seed}: {rounds}, {run.seconds:.1f} s"


def blocks(run: Run, paint: Painter) -> Iterator[list[str]]:
    """Matrices, then what is wrong, each with its fix, then what was not tested."""
    assert run.fabric is not None
    for matrix in matrices(run.fabric, [host.name for host in run.hosts]):
        yield list(_matrix(matrix, paint) if len(matrix.hosts) <= _MOST_HOSTS else _extremes(matrix))
    told: dict[tuple[str, str, str, str], list[Finding]] = {}
    for each in run.fabric.findings:
        if each.status != "pass":
            where = "" if each.status == "skip" else f"{each.client} -> {each.server}"
            told.setdefault((each.status, where, each.summary, each.remedy), []).append(each)
    for (status, where, summary, remedy), found in sorted(told.items(), key=lambda item: item[0][0] == "skip"):
        yield list(_told(status, where, summary, remedy, found, paint))
    alone: dict[str, list[str]] = {}
    for port in run.fabric.unpaired:
        alone.setdefault(f"{port.end}: {port.reason}", []).append(port.other)
    left = [f"{what} ({hostlist(others)})" for what, others in alone.items()]
    whys = Counter(why for _, _, why in run.fabric.not_attempted)
    left += [f"{count(number, 'pair')}: {why}" for why, number in whys.items()]
    yield [f"not tested  {line}" for line in left]


def _matrix(matrix: Matrix, paint: Painter) -> Iterator[str]:
    test = TESTS[matrix.test]
    yield f"{paint('bold', test.title)}, {test.unit}; from row to column"
    names = list(matrix.hosts)
    cells = [[matrix.cells.get((row, column)) for column in matrix.hosts] for row in matrix.hosts]
    texts = [
        ["-" if i == j else "" if cell is None else shown(cell) for j, cell in enumerate(row)]
        for i, row in enumerate(cells)
    ]
    first = max(map(len, names))
    widths = [max(len(name), *(len(row[j]) for row in texts)) for j, name in enumerate(names)]
    yield "  ".join([" " * first, *(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))]).rstrip()
    for name, row, line in zip(names, cells, texts, strict=True):
        painted = [
            paint("" if cell is None or cell.status == "pass" else _STYLES[cell.status], f"{text:>{width}}")
            for cell, text, width in zip(row, line, widths, strict=True)
        ]
        yield "  ".join([f"{name:<{first}}", *painted]).rstrip()


def _extremes(matrix: Matrix) -> Iterator[str]:
    from statistics import median

    test, figures = TESTS[matrix.test], matrix.figures
    passed = sum(each.status == "pass" for each in matrix.cells.values())
    told = f"{test.title}: {passed} of {len(matrix.cells)} passed"
    if figures and matrix.test != "rping":
        told += f"; least {figures[0]:.4g}, median {median(figures):.4g}, most {figures[-1]:.4g} {test.unit}"
    yield told
    yield "  the whole matrix: --output svg:PATH, or csv:PATH"


def _told(status: str, where: str, summary: str, remedy: str, found: list[Finding], paint: Painter) -> Iterator[str]:
    tests = ", ".join(dict.fromkeys(each.test for each in found))
    at = where or hostlist(dict.fromkeys(end.host for each in found for end in (each.server, each.client)))
    first, *rest = lines(summary, "      ")
    yield f"{paint(_STYLES[status], status.upper())}  {paint('bold', tests)}  {at}: {first}"
    yield from rest
    for label, text in (
        ("seen", "; ".join(dict.fromkeys(each.proof for each in found if each.proof))),
        ("fix", remedy),
    ):
        if text:
            head, *more = lines(text, " " * 11)
            yield f"  {label + ':':<9}{head}"
            yield from more


def ending(run: Run) -> str:
    """How many tests over how many links passed, in a few words."""
    assert run.fabric is not None
    found = run.fabric.findings
    tally = {status: sum(each.status == status for each in found) for status in ("pass", "fail", "unknown", "skip")}
    links = {frozenset((str(each.server), str(each.client))) for each in found}
    words = ", ".join(f"{number} {word}" for word, number in tally.items() if number)
    return f"{count(len(found), 'test')} over {count(len(links), 'link')}" + (f": {words}" if words else "")
