"""The part of compat, answers to "will this image run here?": one alone, or a matrix of hosts and images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from gpuready.base.host_list import hostlist
from gpuready.base.part import OPTIONAL, OneOf, Part
from gpuready.base.versions import driver
from gpuready.base.words import count
from gpuready.compat.trace import Trace
from gpuready.cuda.predict import MINOR_LIMITS, RUNS, VERDICTS
from gpuready.result.cases import Case, Changed, Note, Seen, Suite, differing
from gpuready.result.model import VerbPart
from gpuready.result.text import Painter, columns, grouped

if TYPE_CHECKING:
    from gpuready.compat.answer import Answer
    from gpuready.result.model import HostResult, Run

_STYLE = {True: "green", False: "red"}
_VERDICT = OneOf(VERDICTS)


@dataclass(frozen=True)
class Fix(Part):
    """What makes an image run."""

    fix: str
    """What to do."""
    verdict: Annotated[str, _VERDICT]
    """The verdict after it."""
    certain: bool
    """That verdict is certain."""
    doubt: str | None = field(default=None, metadata=OPTIONAL)
    """Why it is not; omitted: it is."""


@dataclass(frozen=True)
class JudgedImage(Part):
    """compat: one image on one host."""

    image: str
    """Its name; empty: only facts were given."""
    verdict: Annotated[str, _VERDICT] | None
    """Whether it runs there; null: no prediction is possible."""
    certain: bool
    """The verdict depends on nothing unknown or undocumented."""
    reason: str
    """Why it has this verdict, or none."""
    remedy: str = ""
    """What to do if there is no verdict."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""
    libcuda: str | None = None
    """The version of the image's libcuda, if that one is loaded."""
    fixes: tuple[Fix, ...] = ()
    """What makes it run, best first."""
    trace: Trace | None = field(default=None, metadata=OPTIONAL)
    """compat --trace: what a container really got."""

    @classmethod
    def of(cls, answer: Answer) -> JudgedImage:
        found = answer.prediction
        return cls(
            answer.image,
            found.verdict if found else None,
            bool(found and found.certain),
            found.reason if found else answer.unknown,
            answer.remedy,
            (*(found.notes if found else ()), *answer.notes),
            driver(found.library.version) if found and found.library else None,
            tuple(Fix(each.do, each.then.verdict, each.then.certain, each.then.doubt or None) for each in answer.fixes),
            answer.trace,
        )

    @property
    def word(self) -> str:
        """The verdict, with a question mark if it is uncertain; UNKNOWN without one."""
        return "UNKNOWN" if self.verdict is None else self.verdict + ("" if self.certain else "?")

    @property
    def runs(self) -> bool:
        """Whether the image runs, according to the prediction."""
        return self.verdict in RUNS

    @property
    def good(self) -> bool:
        """Whether the image runs, and a container got what was predicted, if one was traced."""
        return self.runs and (self.trace is None or self.trace.agrees)


def images(host: HostResult) -> tuple[JudgedImage, ...]:
    """The images that were judged on a host."""
    found: tuple[JudgedImage, ...] = host.parts.get("images", ())
    return found


class CompatPart(VerbPart):
    """Values of each host, or one of the run: the answer for the facts that were given."""

    def whole(self, run: Run, paint: Painter) -> list[list[str]] | None:
        return [told(run.parts["image"], paint)] if "image" in run.parts else None

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """The answer; or the table, then every distinct answer that is worth reading, with its hosts."""
        if "image" in run.parts:
            yield told(run.parts["image"], paint)
        else:
            yield from _matrix(run, paint)

    def tally(self, run: Run) -> str:
        """``4 of 6 images on hosts will run, 1 is UNKNOWN``."""
        judged = [image for host in run.hosts for image in images(host)]
        runs = sum(image.runs for image in judged)
        unknown = sum(image.verdict is None for image in judged)
        blind = f", {unknown} UNKNOWN" if unknown else ""
        traced = [image.trace for image in judged if image.trace is not None]
        odd = sum(not each.agrees for each in traced)
        shown = f"; {len(traced)} traced, {odd} of them not as predicted or unknown" if traced else ""
        return f"{runs} of {count(len(judged), 'image on a host', 'images on hosts')} will run{blind}{shown}"

    def failing(self, host: HostResult) -> str:
        if refused := [image for image in images(host) if not image.runs]:
            return "WILL NOT RUN" if any(image.verdict for image in refused) else "UNKNOWN"
        if odd := [image.trace for image in images(host) if image.trace and not image.trace.agrees]:
            return "NOT AS PREDICTED" if any(each.differs for each in odd) else "NOT TRACED"
        return ""

    def fails(self, run: Run) -> bool:
        return super().fails(run) or ("image" in run.parts and not run.parts["image"].good)

    def suites(self, run: Run) -> Iterator[Suite]:
        if "image" in run.parts:
            yield Suite("gpuready", 0.0, [_case("gpuready", run.parts["image"])])

    def cases(self, host: HostResult) -> list[Case]:
        return [_case(host.name, image) for image in images(host)]

    def notes(self, run: Run) -> Iterator[Note]:
        if "image" in run.parts and not run.parts["image"].runs:
            yield Note("error", "compat", _text(run.parts["image"]))
        for host in run.hosts:
            for image in images(host):
                if not image.good:
                    yield Note("error", f"compat {image.image}", _text(image), (host.name,))

    def distinct(self, host: HostResult) -> object:
        return images(host)

    def changes(self, before: HostResult, after: HostResult) -> Iterator[Changed]:
        if images(before) and images(after):
            yield from differing("image", _words(before), _words(after))


PART = CompatPart(
    verb="compat",
    of_host={"images": (tuple[JudgedImage, ...], "compat: the images.")},
    of_run={"image": (JudgedImage, "compat without an inventory: the image.")},
    judges=False,
    compares={"image": "images"},
)


def _case(host: str, image: JudgedImage) -> Case:
    """JUnit: one image on one host."""
    case, lines = Case(f"{host}.compat", image.image or "image", output=_text(image)), _text(image)
    if image.good:
        return case
    wrong = image.verdict and not (image.runs and image.trace and image.trace.unknown)
    message = f"{image.word}: {lines.partition(chr(10))[0]}"
    return replace(case, kind="failure" if wrong else "error", message=message, text=lines)


def _words(host: HostResult) -> Seen:
    return {image.image: (image.word, image.reason) for image in images(host)}


def _text(image: JudgedImage) -> str:
    return "\n".join(told(image, Painter(False)))


def told(image: JudgedImage, paint: Painter, where: str = "") -> list[str]:
    """One answer in lines: the verdict and its reason, then the ways out."""
    lines = [f"{paint(_STYLE[image.runs], image.word)}  {where}{image.reason}"]
    lines += [f"  note:    {note}" for note in image.notes]
    lines += [
        f"  {'fix:' if number == 1 else '    '}     {number}. {each.fix} -> {each.verdict}"
        + ("" if each.certain else f"? ({each.doubt})")
        for number, each in enumerate(image.fixes, 1)
    ]
    if image.verdict is None:
        lines.append(f"  fix:     {image.remedy}")
    elif not image.runs and not image.fixes:
        lines.append("  fix:     none is known")
    return lines + ([] if image.trace is None else _traced(image.trace, paint))


def _traced(trace: Trace, paint: Painter) -> list[str]:
    """What a container got, why, and the lines that show it; a difference first."""
    lines = [f"  trace:   {paint('red', f'DIFFERS  {trace.differs}')}"] if trace.differs else []
    word = f"{paint('red', 'UNKNOWN')}  " if trace.unknown else ""
    lines.append(f"  {'        ' if lines else 'trace:  '} {word}{trace.summary}")
    lines += [f"           why: {trace.why}"] if trace.why else []
    return [*lines, *(f"           {line}" for line in trace.proof)]


def _matrix(run: Run, paint: Painter) -> Iterator[list[str]]:
    names = list(dict.fromkeys(each.image for host in run.hosts for each in images(host)))
    if not names:
        return
    words = {host.name: {each.image: each.word for each in images(host)} for host in run.hosts}
    lines = grouped((tuple(of.get(name, "-") for name in names), host) for host, of in words.items())
    rows = ((hostlist(hosts), *(_cell(cell, paint) for cell in cells)) for cells, hosts in lines.items())
    yield columns([("", *names), *rows])
    alike: dict[tuple[str, ...], tuple[JudgedImage, list[str]]] = {}
    for host in run.hosts:
        for each in images(host):
            alike.setdefault((each.image, *told(each, paint)), (each, []))[1].append(host.name)
    for image, on in alike.values():
        notable = [note for note in image.notes if note != MINOR_LIMITS]
        if notable or image.trace or not image.runs or not image.certain:
            yield told(image, paint, f"{image.image} on {hostlist(on)}: ")


def _cell(text: str, paint: Painter) -> str:
    style = "green" if text.rstrip("?") in ("NATIVE", "MINOR", "FORWARD") else "dim" if text == "-" else "red"
    return paint(style, text)
