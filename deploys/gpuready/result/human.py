"""The result for people: what differs and why it matters first, one line a host, and one last line that decides.

What many hosts share is shown once. Passed checks are only counted. Every colour repeats a word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.result.blocks import (
    CLASSES,
    ByText,
    DiffBlock,
    consequence_lines,
    diff_blocks,
    effects,
    error_blocks,
    note_lines,
    skipped_lines,
    verdict_blocks,
)
from gpuready.result.brief import MOST_HOSTS, summary_lines
from gpuready.result.ending import ending, host_lines, next_lines
from gpuready.result.model import EARLIER_RUN, CheckResult, Run
from gpuready.result.page import labelled, page, problem
from gpuready.result.text import Painter, lines

_COLORS = {"changed": "green", "failed": "red", "blocked": "red", "not changed": "red"}
_MOST_BATCHES = 8
_STATUS = {"fail": "red", "unknown": "yellow", "warn": "yellow"}


def human(run: Run, code: int, *, color: bool = False) -> str:
    """The whole report, ending in a newline; it is for :func:`gpuready.result.text.printable`."""
    paint = Painter(color)
    if run.refused_by_user and run.diff_shown:  # the user has just read the rest
        return page([[ending(run, code, paint)]])
    hosts, following = _host_lines(run, paint), next_lines(run)
    few = len(run.hosts) <= MOST_HOSTS  # the summary of many fills the screen to its end
    return page([
        *_findings(run, paint), *([hosts, following] if few else [following, hosts]), [ending(run, code, paint)]
    ])  # fmt: skip


def preview(run: Run, *, color: bool = False) -> str:
    """A plan above the question whether to do it: the report without its last lines."""
    paint = Painter(color)
    return page([*_findings(run, paint), _host_lines(run, paint)])


def _host_lines(run: Run, paint: Painter) -> list[str]:
    return host_lines(run, paint) if len(run.hosts) <= MOST_HOSTS else summary_lines(run, paint)


def _findings(run: Run, paint: Painter) -> Iterator[Iterable[str]]:
    yield [run.part.headline(run) or _headline(run)]
    yield _errors(run, paint)
    yield from _diffs(run, paint)
    yield _batches(run)
    if not run.part.own_verdicts:
        caused = effects(run)
        for check, hosts in verdict_blocks(run).items():
            yield _verdict(check, hosts, caused.get(check, {}), paint)
        yield consequence_lines(run, paint)
    yield from run.part.blocks(run, paint)
    yield note_lines(run)
    yield skipped_lines(run, paint)


def _headline(run: Run) -> str:
    source = f" of {run.shown_source}" if run.source else ""
    looked = sum(host.probed and host.earlier is None for host in run.hosts)
    before = sum(host.earlier is not None for host in run.hosts)
    earlier = f", {before} from an earlier run" if before else ""
    verb = "plan of remove" if run.removing and run.verb == "plan" else run.verb
    return f"{verb}: {count(len(run.hosts), 'host')}{source}, {looked} probed{earlier}, {run.seconds:.1f} s"


def _errors(run: Run, paint: Painter) -> list[str]:
    found: list[str] = []
    if run.error is not None:
        resumes = run.interrupted and run.for_the_rest
        remedy = f"run {run.for_the_rest}: it does only what is left" if resumes else run.error.remedy
        found += problem(run.error.message, remedy).rstrip().split("\n")
    for (outcome, message, remedy), hosts in error_blocks(run).items():
        first, *rest = lines(message, "    ")
        found += [f"{paint('red', outcome.upper())}  {hostlist(hosts)}: {first}", *rest]
        found += labelled("fix", remedy, "  ")
    return found


def _diffs(run: Run, paint: Painter) -> Iterator[list[str]]:
    for block in diff_blocks(run):
        short = run.diff_shown or run.verb == "verify"
        status = paint(_COLORS.get(block.status_text.removesuffix(f" {EARLIER_RUN}"), "yellow"), block.status_text)
        yield [
            f"{paint('bold', block.component)}: {status} on {hostlist(block.hosts)}",
            *(_classes(block) if run.part.of_spec and not short else ()),
            *(f"    {key}" for key in block.keys if not run.diff_shown),
            *(_shared("affects", block.affected, block.hosts) if not short else ()),
            *_shared("waiting", block.waiting, block.hosts),
            *_shared("note", block.notes, block.hosts),
            *_component_errors(block),
        ]


def _batches(run: Run) -> list[str]:
    budgets = run.shard.budgets if run.shard is not None else ()
    budget = labelled("budget", f"{run.shard} has {'; '.join(budgets)}" if budgets else "", "  ")
    if len(run.batches) < 2 or run.diff_shown:
        return budget
    shown = [f"{number}: {hostlist(batch)}" for number, batch in enumerate(run.batches[:_MOST_BATCHES], 1)]
    more = len(run.batches) - _MOST_BATCHES
    hosts = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    return [
        f"in {len(run.batches)} batches, one after another{_when(run)}",
        *labelled("hosts", hosts, "  "),
        *labelled("why", "; ".join(run.why_batches), "  "),
        *budget,
    ]


def _when(run: Run) -> str:
    """Say that batches are those of a maintenance window, which is closed now."""
    from gpuready.contract.permission import FOR_WINDOW  # a plan has it already

    waits = [
        any(FOR_WINDOW in each.pending_reason for each in host.components)
        for host in run.hosts
        if any(host.name in batch for batch in run.batches)
    ]
    if any(waits) and not all(waits):
        return "; some wait until their maintenance window opens"
    return ", when the maintenance window opens" if any(waits) else ""


def _classes(block: DiffBlock) -> list[str]:
    if not block.keys or block.status_text == "blocked":
        return []
    shown = {name: "" if on == block.hosts else f" ({hostlist(on)})" for name, on in block.classes.items()}
    return [f"  impact:  {name}: {CLASSES[name]}{where}" for name, where in shown.items()]


def _shared(label: str, texts: Mapping[tuple[str, ...], Sequence[str]], on: Sequence[str]) -> list[str]:
    found: list[str] = []
    for items, hosts in texts.items():
        where = "" if hosts == on else f"{hostlist(hosts)}: "
        separator, head = ("; ", 6) if label in ("note", "causes") else (", ", 8)
        more = f" and {len(items) - head} more" if len(items) > head else ""
        found += labelled(label, where + separator.join(items[:head]) + more, "  ")
    return found


def _component_errors(block: DiffBlock) -> list[str]:
    found: list[str] = []
    for (message, remedy), hosts in block.errors.items():
        where = "" if list(hosts) == block.hosts else f"{hostlist(hosts)}: "
        found += labelled("reason", where + message, "  ") + labelled("fix", remedy, "  ")
    return found


def _verdict(check: CheckResult, hosts: Sequence[str], caused: ByText, paint: Painter) -> list[str]:
    word = paint(_STATUS[check.status], check.status.upper())
    first, *rest = lines(check.summary, "       ")
    return [
        f"{word}  {paint('bold', check.id)} on {hostlist(hosts)}: {first}",
        *rest,
        *labelled("seen", check.evidence, "  "),
        *_shared("causes", caused, hosts),
        *labelled("fix", check.remedy, "  "),
    ]
