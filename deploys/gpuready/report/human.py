"""The result for people: what differs and why it matters first, one line a host, and one last line that decides.

What many hosts share is shown once. Passed checks are only counted. Every colour repeats a word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuready.base.host_list import hostlist
from gpuready.contract.check import DECIDE, UNDECIDED, Verdict
from gpuready.inventory.hosts import CHOOSE, THIS_MACHINE
from gpuready.report import compat_report, fabric, facts, nccl, status
from gpuready.report.attached import attached_lines
from gpuready.report.blocks import (
    DiffBlock,
    consequences,
    diff_blocks,
    error_blocks,
    note_blocks,
    skipped_blocks,
    verdict_blocks,
)
from gpuready.report.brief import MOST_HOSTS, summary_lines
from gpuready.report.ending import ending, host_lines
from gpuready.report.page import labelled, page, problem
from gpuready.report.run import Run
from gpuready.report.text import Painter, count, grouped, lines, one_line

CLASSES = {
    "none": "nothing is disturbed",
    "reload": "a service reloads its configuration, nothing stops",
    "recreate": "no service stops, but running containers may lose their GPU or libraries",
    "restart": "a service is restarted",
    "reboot": "the node is rebooted",
}
_COLORS = {"changed": "green", "failed": "red", "blocked": "red", "not changed": "red"}
_MOST_BATCHES = 8
_STATUS = {"fail": "red", "unknown": "yellow", "warn": "yellow"}


def human(run: Run, code: int, *, color: bool = False) -> str:
    """The whole report, ending in a newline; it is for :func:`gpuready.report.text.printable`."""
    paint = Painter(color)
    head = _headline(run) if run.fabric is None else fabric.headline(run)
    parts = [[head], _errors(run, paint), *(() if run.told else _diffs(run, paint)), _batches(run)]
    if run.fabric is None:
        parts += [_verdict(*key, hosts, paint) for key, hosts in verdict_blocks(run).items()]
        parts += [consequence_lines(run, paint)]
    parts += [
        *answer_blocks(run, paint),
        note_lines(run),
        skipped_lines(run, paint),
        host_lines(run, paint) if len(run.hosts) <= MOST_HOSTS else summary_lines(run, paint),
        [ending(run, code, paint)],
    ]
    return page(parts)


def answer_blocks(run: Run, paint: Painter) -> Iterator[Iterable[str]]:
    """What only one verb says."""
    if run.verb == "probe":
        yield from (facts.lines_of(host, paint) for host in run.hosts if host.state is not None)
    elif run.verb == "nccl":
        yield from nccl.lines({host.name: host.nccl for host in run.hosts if host.nccl is not None}, paint)
    elif run.verb == "docker-args":
        yield from _docker_args(run, paint)
    elif run.verb == "status":
        yield status.table(run, paint)
    elif run.verb == "compat":
        yield from compat_report.matrix(run, paint)
    elif run.fabric is not None:
        yield from fabric.blocks(run, paint)
    yield attached_lines(run, paint)


def _docker_args(run: Run, paint: Painter) -> Iterator[list[str]]:
    """One line for all hosts that share it, and why each option."""
    answers = ((host.docker_args, host.name) for host in run.hosts if host.docker_args is not None)
    for arguments, names in grouped(answers).items():
        yield [
            f"{paint('bold', 'docker run')} on {hostlist(names)}",
            f"    {' '.join(map(str, arguments))}",
            *(f"      {each}: {each.why}" for each in arguments),
        ]


def _headline(run: Run) -> str:
    source = f" of {run.shown_source}" if run.probed else ""
    if run.attaching:
        return f"{run.verb}: {count(len(run.hosts), 'host')}{source}, {run.seconds:.1f} s"
    looked = sum(host.probed for host in run.hosts)
    return f"{run.verb}: {count(len(run.hosts), 'host')}{source}, {looked} probed, {run.seconds:.1f} s"


def _errors(run: Run, paint: Painter) -> list[str]:
    found: list[str] = []
    if error := run.problem:
        found += problem(error["message"], error["remedy"]).rstrip().split("\n")
    for (outcome, message, remedy), hosts in error_blocks(run).items():
        first, *rest = lines(message, "    ")
        found += [f"{paint('red', outcome.upper())}  {hostlist(hosts)}: {first}", *rest]
        found += labelled("fix", remedy, "  ")
    return found


def _diffs(run: Run, paint: Painter) -> Iterator[list[str]]:
    for block in diff_blocks(run):
        status = paint(_COLORS.get(block.status_text, "yellow"), block.status_text)
        yield [
            f"{paint('bold', block.component)}: {status} on {hostlist(block.hosts)}",
            *(_classes(block) if run.verb != "verify" and not run.attaching else ()),
            *(f"    {key}" for key in block.keys),
            *(_shared("affects", block.affected, block) if run.verb != "verify" else ()),
            *_shared("waiting", block.waits, block),
            *_shared("note", block.notes, block),
            *_component_errors(block),
        ]


def _batches(run: Run) -> list[str]:
    if len(run.batches) < 2 or run.told:
        return []
    shown = [f"{number}: {hostlist(batch)}" for number, batch in enumerate(run.batches[:_MOST_BATCHES], 1)]
    more = len(run.batches) - _MOST_BATCHES
    told = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    return [f"in {len(run.batches)} batches, one after another", *labelled("hosts", told, "  ")]


def _classes(block: DiffBlock) -> list[str]:
    if not block.keys or block.status_text == "blocked":
        return []
    shown = {name: "" if on == block.hosts else f" ({hostlist(on)})" for name, on in block.classes.items()}
    return [f"  impact:  {name}: {CLASSES[name]}{where}" for name, where in shown.items()]


def _shared(label: str, texts: Mapping[tuple[str, ...], Sequence[str]], block: DiffBlock) -> list[str]:
    found: list[str] = []
    for items, hosts in texts.items():
        where = "" if list(hosts) == block.hosts else f"{hostlist(hosts)}: "
        separator, head = ("; ", 6) if label == "note" else (", ", 8)
        more = f" and {len(items) - head} more" if len(items) > head else ""
        found += labelled(label, where + separator.join(items[:head]) + more, "  ")
    return found


def _component_errors(block: DiffBlock) -> list[str]:
    found: list[str] = []
    for (message, remedy), hosts in block.errors.items():
        where = "" if list(hosts) == block.hosts else f"{hostlist(hosts)}: "
        found += labelled("reason", where + message, "  ") + labelled("fix", remedy, "  ")
    return found


def _verdict(check: str, verdict: Verdict, hosts: Sequence[str], paint: Painter) -> list[str]:
    word = paint(_STATUS[verdict.status], verdict.status.upper())
    first, *rest = lines(verdict.summary, "       ")
    return [
        f"{word}  {paint('bold', check)} on {hostlist(hosts)}: {first}",
        *rest,
        *labelled("seen", verdict.evidence, "  "),
        *labelled("fix", verdict.remedy, "  "),
    ]


def consequence_lines(run: Run, paint: Painter) -> list[str]:
    """The checks that fail because a change was not made, a line for hosts that share them."""
    label = paint("dim", "before apply:" if run.verb == "plan" else "as a result:")
    return [
        f"{label} {count(len(ids), 'check')} failed on {hostlist(hosts)}: " + ", ".join(ids)
        for ids, hosts in consequences(run).items()
    ]


def skipped_lines(run: Run, paint: Painter) -> list[str]:
    """Skipped hosts with the reason, and what to write if that is wrong."""
    found: list[str] = []
    for reason, hosts in skipped_blocks(run).items():
        found += [f"{paint('yellow', 'skipped')}  {hostlist(hosts)}: {one_line(reason)}"]
        fix = "" if reason == THIS_MACHINE else run.choose or CHOOSE
        found += labelled("fix", DECIDE if reason == UNDECIDED else fix, "  ")
    return found


def note_lines(run: Run) -> list[str]:
    """The notes about hosts, once for hosts that share one."""
    return [
        line for note, hosts in note_blocks(run).items() for line in labelled("note", f"{hostlist(hosts)}: {note}", "")
    ]
