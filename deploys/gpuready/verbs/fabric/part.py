"""The part of fabric: the tests between hosts, as matrices, failed links with their fix, JUnit cases, CSV and SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gpuready.base.host_list import hostlist
from gpuready.base.part import OPTIONAL, Count, Part
from gpuready.base.words import count
from gpuready.fabric.collective import Measured, Search, size_text
from gpuready.fabric.commands import TESTS, Test
from gpuready.fabric.named import Named
from gpuready.fabric.verdict import Finding
from gpuready.result.cases import Suite, case_of
from gpuready.result.formats import MATRIX_FORMATS
from gpuready.result.mask import mask_text
from gpuready.result.model import Run, VerbPart
from gpuready.result.page import labelled
from gpuready.result.text import Painter, columns, grouped, lines, printable
from gpuready.verbs.fabric.matrix import Matrix, matrices, shown

#: A matrix of more hosts, or a list of more ports that pass, does not fit a terminal: a summary is shown instead.
_MOST = 12
#: What is wrong comes first.
_ORDER = ("fail", "unknown", "warn", "pass", "skip")
_STYLES = {"fail": "red", "unknown": "yellow", "warn": "yellow", "skip": "dim", "pass": "green"}
_COLUMNS = (
    "round", "test", "client_host", "client_device", "client_port", "client_address", "server_host", "server_device",
    "server_port", "server_address", "status", "value", "unit", "limit", "summary", "proof", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Unpaired(Part):
    """fabric: a port without a partner."""

    host: str
    """Its host."""
    device: str
    """Its RDMA device."""
    port: Count
    """Its number."""
    other: str
    """The host that has no port for it."""
    reason: str
    """Why it has no partner."""

    def __str__(self) -> str:
        return f"{self.host} {self.device}:{self.port}" if self.port else f"{self.host} {self.device}"


@dataclass(frozen=True)
class NotAttempted(Part):
    """fabric: a pair of hosts that was not tested."""

    server: str
    """One host."""
    client: str
    """The other host."""
    reason: str
    """Why it was not tested."""


@dataclass(frozen=True)
class Fabric(Part):
    """fabric: the tests between hosts."""

    pairs: str
    """How hosts were paired."""
    seed: int | None
    """The seed of random:N; null: the pairs are not random."""
    rounds: Count
    """The planned number of rounds."""
    tests: tuple[str, ...]
    """The tests, in order."""
    findings: tuple[Finding, ...]
    """What they found, in the order of the tests."""
    unpaired: tuple[Unpaired, ...]
    """The ports without a partner."""
    not_attempted: tuple[NotAttempted, ...]
    """The pairs that were not tested."""
    collectives: tuple[Measured, ...] | None = field(default=None, metadata=OPTIONAL)
    """fabric --tests collective: the figures by size, over all hosts; absent: there are none."""
    search: Search | None = field(default=None, metadata=OPTIONAL)
    """fabric --tests collective: the search for the host that is bad; absent: there was none."""
    named: tuple[Named, ...] | None = field(default=None, metadata=OPTIONAL)
    """The ports that the bad links share; absent: none is singled out."""

    @property
    def without_pairs(self) -> str:
        """What was tested instead, if no pairs were."""
        tests = [TESTS[name] for name in self.tests]
        if any(each.of_pairs for each in tests):
            return ""
        return "all at once" if any(each.together for each in tests) else "each port by itself"


def fabric(run: Run) -> Fabric | None:
    """The tests between hosts; None: the run is of another command."""
    found: Fabric | None = run.parts.get("fabric")
    return found


class FabricPart(VerbPart):
    """One value of the run; each host also has checks, which are made of it."""

    def headline(self, run: Run) -> str:
        of = fabric(run)
        return _headline(run, of) if of else ""

    def blocks(self, run: Run, paint: Painter) -> Iterable[list[str]]:
        of = fabric(run)
        return _blocks(run, of, paint) if of else ()

    def proof(self, run: Run) -> str:
        of = fabric(run)
        return _proof(of) if of else ""

    def suites(self, run: Run) -> Iterator[Suite]:
        """A case for each test over each link and direction."""
        if of := fabric(run):
            cases = [
                case_of(
                    f"fabric.{each.test}",
                    str(each),
                    each,
                    counted=each.status in ("fail", "unknown"),
                    output=f"{each.summary}\n{each.proof}".strip(),
                    seconds=each.seconds,
                )
                for each in of.findings
            ]
            cases += [
                case_of("fabric.named", f"{each.test}: {each}", each, counted=each.status == "fail")
                for each in of.named or ()
            ]
            yield Suite("fabric", sum(each.seconds for each in of.findings), cases)

    def picture(self, run: Run) -> str:
        return _svg(run) if fabric(run) else ""

    def rendered(self, run: Run, form: str) -> str:
        return _csv(fabric(run)) if form == "csv" else _svg(run)


PART = FabricPart(
    verb="fabric",
    of_run={"fabric": (Fabric, "fabric: the tests between hosts.")},
    formats=MATRIX_FORMATS,
    title="Fabric",
    own_verdicts=True,
    least=2,
)


def _csv(of: Fabric | None) -> str:
    """One line a finding, under a header; only the header where nothing was tested."""
    import csv  # like statistics, only where it is asked for
    import io

    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_COLUMNS)
    for each in of.findings if of else ():
        ends = [x for end in (each.client, each.server) for x in (end.host, end.device, end.port, end.address)]
        limit = "" if each.limit is None else f"{each.limit:g}"
        value = "" if each.value is None else f"{each.value:g}"
        texts = [each.summary.replace("\n", "; "), each.proof]
        row = [each.round, each.test, *ends, each.status, value, each.unit, limit, *texts, f"{each.seconds:.1f}"]
        table.writerow([printable(mask_text(str(field))) for field in row])
    return out.getvalue()


def _matrices(run: Run, of: Fabric) -> list[Matrix]:
    return matrices(of.tests, of.findings, [host.name for host in run.hosts])


def _svg(run: Run) -> str:
    from gpuready.verbs.fabric.heatmap import curves, svg

    of = fabric(run)
    made = _matrices(run, of) if of else []
    if of and of.collectives and not made:
        return curves(of.collectives)
    return svg(made, [host.name for host in run.hosts])


def _headline(run: Run, of: Fabric) -> str:
    """``fabric: 4 hosts of hosts.yaml, ring: 4 pairs in 2 rounds, 31.2 s``."""
    seed = "" if of.seed is None else f" (seed {of.seed})"
    met = {frozenset((each.server.host, each.client.host)) for each in of.findings if each.has_link}
    source = f" of {run.shown_source}" if run.source else ""
    if of.without_pairs:
        return f"fabric: {count(len(run.hosts), 'host')}{source}, {of.without_pairs}, {run.seconds:.1f} s"
    rounds = f"{count(len(met), 'pair')} in {count(of.rounds, 'round')}"
    return f"fabric: {count(len(run.hosts), 'host')}{source}, {of.pairs}{seed}: {rounds}, {run.seconds:.1f} s"


def _blocks(run: Run, of: Fabric, paint: Painter) -> Iterator[list[str]]:
    """Matrices, then the port at fault and what is wrong, each with its fix, then what was not tested."""
    for matrix in _matrices(run, of):
        yield list(_matrix(matrix, paint) if len(matrix.hosts) <= _MOST else _extremes(matrix))
    for one in of.named or ():
        said = f"{paint(_STYLES[one.status], 'NAMED')}  {paint('bold', one.test)}  {one}: {one.summary}"
        yield [said, *labelled("fix", one.remedy, "  ")]
    told: dict[tuple[str, str, str, str], list[Finding]] = {}
    alone = [each for each in of.findings if TESTS[each.test].itself]
    good = sum(each.status == "pass" for each in alone)
    if good > _MOST:
        figures = sorted(each.value for each in alone if each.value is not None)
        yield [_spread(TESTS[alone[0].test], good, len(alone), figures), "  each port: --output csv:PATH"]
    for each in of.findings:
        if good > _MOST and each.status == "pass" and TESTS[each.test].itself:
            continue
        if each.status != "pass" or not each.has_link:
            where = str(each) if (each.has_link or TESTS[each.test].itself) and each.status != "skip" else ""
            told.setdefault((each.status, where, each.summary, each.remedy), []).append(each)
    for (status, where, summary, remedy), found in sorted(told.items(), key=lambda item: _ORDER.index(item[0][0])):
        yield list(_told(status, where, summary, remedy, found, paint))
    yield list(_collectives(of.collectives or ()))
    if of.search:
        yield list(_search(of.search))
    unpaired = grouped((f"{port}: {port.reason}", port.other) for port in of.unpaired)
    left = [f"{what} ({hostlist(others)})" for what, others in unpaired.items()]
    whys = Counter(pair.reason for pair in of.not_attempted)
    left += [f"{count(number, 'pair')}: {why}" for why, number in whys.items()]
    yield [f"not tested  {line}" for line in left]


def _collectives(figures: Sequence[Measured]) -> Iterator[str]:
    """The bus bandwidth by size; and the time of the smallest one, which is the latency."""
    if not figures:
        return
    names = list(dict.fromkeys(each.collective for each in figures))
    yield f"bus bandwidth by size, GB/s, {count(figures[0].ranks, 'rank')}"
    rows = [("", *(name.replace("_", "-") for name in names))]
    found = {(each.size, each.collective): f"{each.busbw:.3g}" for each in figures}
    for size in sorted({each.size for each in figures}):
        rows.append((size_text(size), *(found.get((size, name), "") for name in names)))
    yield from columns(rows, ">")


def _search(found: Search) -> Iterator[str]:
    yield f"search  {found.summary}"
    for each in found.tried:
        gpus = f" GPU {', '.join(map(str, each.gpus))}" if each.gpus else ""
        yield f"  round {each.round}: {hostlist(each.hosts)}{gpus}: {each.status}: {each.summary}"


def _matrix(matrix: Matrix, paint: Painter) -> Iterator[str]:
    test = TESTS[matrix.test]
    yield f"{paint('bold', test.title)}, {test.unit}; from row to column"
    rows = [("", *matrix.hosts)]
    for name in matrix.hosts:
        cells = ("-" if to == name else _cell(matrix.cells.get((name, to)), paint) for to in matrix.hosts)
        rows.append((name, *cells))
    yield from columns(rows, ">")


def _cell(found: Finding | None, paint: Painter) -> str:
    if found is None:
        return ""
    return paint("" if found.status == "pass" else _STYLES[found.status], shown(found))


def _extremes(matrix: Matrix) -> Iterator[str]:
    passed = sum(each.status == "pass" for each in matrix.cells.values())
    yield _spread(TESTS[matrix.test], passed, len(matrix.cells), matrix.figures)
    yield "  the whole matrix: --output svg:PATH, or csv:PATH"


def _spread(test: Test, passed: int, number: int, figures: Sequence[float]) -> str:
    from statistics import median

    told = f"{test.title}: {passed} of {number} passed"
    if figures and test.name != "rping":
        told += f"; least {figures[0]:.4g}, median {median(figures):.4g}, most {figures[-1]:.4g} {test.unit}"
    return told


def _told(status: str, where: str, summary: str, remedy: str, found: list[Finding], paint: Painter) -> Iterator[str]:
    tests = ", ".join(dict.fromkeys(each.test for each in found))
    at = where or hostlist(dict.fromkeys(end.host for each in found for end in (each.server, each.client)))
    first, *rest = lines(summary, "      ")
    yield f"{paint(_STYLES[status], status.upper())}  {paint('bold', tests)}  {at}: {first}"
    yield from rest
    proofs = dict.fromkeys(each.proof for each in found if each.proof and status != "pass")
    yield from labelled("seen", "; ".join(proofs), "  ")
    yield from labelled("fix", remedy, "  ")


def _proof(of: Fabric) -> str:
    """How many tests over how many links passed, in a few words."""
    found = of.findings
    statuses = ("pass", "warn", "fail", "unknown", "skip")
    tally = {status: sum(each.status == status for each in found) for status in statuses}
    links = {frozenset((str(each.server), str(each.client))) for each in found if each.has_link}
    words = ", ".join(f"{number} {word}" for word, number in tally.items() if number)
    over = f" over {count(len(links), 'link')}" if links or not found else ""
    return f"{count(len(found), 'test')}{over}" + (f": {words}" if words else "")
