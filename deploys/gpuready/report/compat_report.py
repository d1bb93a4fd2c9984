"""Answers to "will this image run here?" for people: one alone, or a matrix of hosts and images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuready.base.host_list import hostlist
from gpuready.cuda.predict import MINOR_LIMITS
from gpuready.report.page import page
from gpuready.report.text import Painter, columns, count, grouped

if TYPE_CHECKING:
    from gpuready.report.run import Run
    from gpuready.tools.compat.answer import Answer
    from gpuready.tools.compat.trace import Trace

_STYLE = {True: "green", False: "red"}


def _notes(answer: Answer) -> tuple[str, ...]:
    return (*(answer.found.notes if answer.found else ()), *answer.notes)


def told(answer: Answer, paint: Painter, where: str = "") -> list[str]:
    """One answer in lines: the verdict and its reason, then the ways out."""
    reason = answer.found.reason if answer.found else answer.unknown
    lines = [f"{paint(_STYLE[answer.runs], answer.word)}  {where}{reason}"]
    lines += [f"  note:    {note}" for note in _notes(answer)]
    lines += [
        f"  {'fix:' if number == 1 else '    '}     {number}. {fix.do} -> {fix.then.verdict}"
        f"{'' if fix.then.certain else '?'}"
        for number, fix in enumerate(answer.fixes, 1)
    ]
    if not answer.found:
        lines.append(f"  fix:     {answer.remedy}")
    elif not answer.runs and not answer.fixes:
        lines.append("  fix:     none is known")
    return lines + ([] if answer.trace is None else _traced(answer.trace, paint))


def _traced(trace: Trace, paint: Painter) -> list[str]:
    """What a container got, why, and the lines that show it; a difference first."""
    lines = [f"  trace:   {paint('red', f'DIFFERS  {trace.differs}')}"] if trace.differs else []
    word = f"{paint('red', 'UNKNOWN')}  " if trace.unknown else ""
    lines.append(f"  {'        ' if lines else 'trace:  '} {word}{trace.summary}")
    lines += [f"           why: {trace.why}"] if trace.why else []
    return [*lines, *(f"           {line}" for line in trace.proof)]


def answer_page(answer: Answer, *, color: bool) -> str:
    """The whole report of one answer."""
    return page([told(answer, Painter(color))])


def matrix(run: Run, paint: Painter) -> Iterator[list[str]]:
    """The table, then every distinct answer that is worth reading, with its hosts."""
    names = list(dict.fromkeys(answer.image for host in run.hosts for answer in host.answers))
    if not names:
        return
    words = {host.name: {answer.image: answer.word for answer in host.answers} for host in run.hosts}
    lines = grouped((tuple(of.get(name, "-") for name in names), host) for host, of in words.items())
    rows = ((hostlist(hosts), *(_cell(cell, paint) for cell in cells)) for cells, hosts in lines.items())
    yield columns([("", *names), *rows])
    alike: dict[tuple[str, ...], tuple[Answer, list[str]]] = {}
    for host in run.hosts:
        for answer in host.answers:
            alike.setdefault((answer.image, *told(answer, paint)), (answer, []))[1].append(host.name)
    for answer, on in alike.values():
        said = [note for note in _notes(answer) if note != MINOR_LIMITS]
        if said or answer.trace or not answer.runs or not (answer.found and answer.found.certain):
            yield told(answer, paint, f"{answer.image} on {hostlist(on)}: ")


def _cell(text: str, paint: Painter) -> str:
    style = "green" if text.rstrip("?") in ("NATIVE", "MINOR", "FORWARD") else "dim" if text == "-" else "red"
    return paint(style, text)


def tally(run: Run) -> str:
    """``4 of 6 images on hosts will run, 1 is UNKNOWN``."""
    answers = [answer for host in run.hosts for answer in host.answers]
    runs = sum(answer.runs for answer in answers)
    unknown = sum(answer.found is None for answer in answers)
    blind = f", {unknown} UNKNOWN" if unknown else ""
    traced = [answer.trace for answer in answers if answer.trace is not None]
    odd = sum(not each.agrees for each in traced)
    shown = f"; {len(traced)} traced, {odd} of them not as predicted or unknown" if traced else ""
    return f"{runs} of {count(len(answers), 'image on a host', 'images on hosts')} will run{blind}{shown}"
