"""One answer to "will this image run here?": the image, what is predicted, and the ways out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuready.cuda.facts import Host, Image, ImageFacts
from gpuready.cuda.predict import RUNS, VERDICTS, Prediction, predict
from gpuready.tools.compat.fixes import Fix, fixes

NAME_IT = "name its CUDA with --image-cuda, or give it as an archive: --image image.tar"
DESCRIBE_IT = "say what the host shall have instead of asking it: --driver, --gpu and --toolkit, without -i"


@dataclass(frozen=True)
class Answer:
    """``image`` is its name, empty where only facts were given; ``unknown`` says why there is no prediction.

    ``remedy`` is what to do about that. ``notes`` are about the image itself.
    """

    image: str
    found: Prediction | None
    fixes: tuple[Fix, ...] = ()
    unknown: str = ""
    notes: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def word(self) -> str:
        """The verdict, with a question mark where it is not certain; UNKNOWN where there is none."""
        if self.found is None:
            return "UNKNOWN"
        return self.found.verdict + ("" if self.found.certain else "?")

    @property
    def runs(self) -> bool:
        """Will it run, as far as can be told?"""
        return self.found is not None and self.found.verdict in RUNS


def answers(hosts: Sequence[Host], why: str, images: Mapping[str, ImageFacts]) -> list[Answer]:
    """A node and every image, by name; ``why`` there are no ``hosts``."""
    found = []
    for name, facts in images.items():
        if facts.image is None:
            found.append(Answer(name, None, (), facts.unknown, facts.notes, NAME_IT))
        elif not hosts:
            found.append(Answer(name, None, (), why, facts.notes, DESCRIBE_IT))
        else:
            told = replace(answer(hosts, facts.image, name), notes=facts.notes)
            if told.found is not None and not facts.sure:
                told = replace(told, found=replace(told.found, certain=False))
            found.append(told)
    return found


def answer(hosts: Sequence[Host], image: Image, name: str = "") -> Answer:
    """The worst of a node's GPUs counts: a container gets them all. ``hosts`` is the node once for each GPU model."""
    worst = max(hosts, key=lambda host: _badness(predict(host, image)))
    found = predict(worst, image)
    ways = [fix for fix in fixes(worst, image, found) if _helps(fix, hosts)]
    return Answer(name, found, tuple(ways))


def _badness(found: Prediction) -> tuple[bool, bool, int]:
    return (not found.runs, found.certain is not found.runs, VERDICTS.index(found.verdict))


def _helps(fix: Fix, hosts: Sequence[Host]) -> bool:
    """Does it run on the node's other GPUs, too?"""
    return all(predict(replace(fix.host, gpu=host.gpu), fix.image).runs for host in hosts)
