"""The answer to "will this image run here?": the image, the prediction, and the fixes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuready.compat.fixes import Fix, fixes
from gpuready.compat.trace import Trace
from gpuready.cuda import tables
from gpuready.cuda.facts import Host, Image, ImageFacts
from gpuready.cuda.predict import VERDICTS, Prediction, predict

NAME_IT = (
    "give its CUDA version with --image-cuda, or the image as an archive with --image image.tar, "
    "or from its registry with --image docker://REF"
)
DESCRIBE_IT = "describe the host instead of probing it: --driver, --gpu and --toolkit, without -i"


@dataclass(frozen=True)
class Answer:
    """``image`` is its name, empty if only facts were given. ``notes`` are about the image itself.

    ``unknown`` says why there is no prediction, ``remedy`` what to do about it. ``trace``: what a container really got.
    """

    image: str
    prediction: Prediction | None
    fixes: tuple[Fix, ...] = ()
    unknown: str = ""
    notes: tuple[str, ...] = ()
    remedy: str = ""
    trace: Trace | None = None

    @property
    def word(self) -> str:
        """The verdict, with a question mark if it is uncertain; UNKNOWN without a prediction."""
        if self.prediction is None:
            return "UNKNOWN"
        return self.prediction.verdict + ("" if self.prediction.certain else "?")

    @property
    def runs(self) -> bool:
        """Whether the image runs, according to the prediction."""
        return self.prediction is not None and self.prediction.runs


def answers(hosts: Sequence[Host], why: str, images: Mapping[str, ImageFacts]) -> list[Answer]:
    """Answer for one node and every image, by name. ``why``: the reason if ``hosts`` is empty."""
    found = []
    for name, facts in images.items():
        if facts.image is None:
            found.append(Answer(name, None, (), facts.unknown, facts.notes, NAME_IT))
        elif not hosts:
            found.append(Answer(name, None, (), why, facts.notes, DESCRIBE_IT))
        else:
            one = replace(answer(hosts, facts.image, name), notes=facts.notes)
            if one.prediction is not None and not facts.sure:
                one = replace(one, prediction=replace(one.prediction, certain=False))
            found.append(one)
    return found


def for_releases(by_driver: Mapping[str, Sequence[Answer]]) -> list[Answer]:
    """Join the answers for several releases of a driver branch: one if they agree, else each with its release."""
    joined: list[Answer] = []
    for same in zip(*by_driver.values(), strict=True):
        first = same[0]
        if len({each.word for each in same}) > 1:
            joined += [
                replace(each, image=", ".join(filter(None, (each.image, f"driver {release}"))))
                for release, each in zip(by_driver, same, strict=True)
            ]
        elif len(same) > 1 and first.prediction is not None:
            text = f"the answer is the same for {' and '.join(by_driver)}, the oldest and the newest known release"
            joined.append(replace(first, notes=(*first.notes, text)))
        else:
            joined.append(first)
    return joined


def answer(hosts: Sequence[Host], image: Image, name: str = "") -> Answer:
    """Answer for the worst of a node's GPU models, because a container gets all of them. ``hosts``: one a model."""
    worst = max(hosts, key=lambda host: _badness(predict(host, image)))
    found = predict(worst, image)
    if not worst.gpu.name and (others := _on_others(worst, image, found)):
        text = f"the GPU is unknown (--gpu NAME), and the answer differs for some: {others}"
        found = replace(found, certain=False, notes=(*found.notes, text))
    return Answer(name, found, tuple(fix for fix in fixes(worst, image, found) if _helps(fix, hosts)))


def _on_others(host: Host, image: Image, found: Prediction) -> str:
    """List the GPUs with another verdict: ``NO_CODE for Volta, Pascal``."""
    verdicts: dict[str, list[str]] = {}
    for name, gpu in tables.possible():
        if tables.no_support(gpu.architecture, host.driver[0]):
            continue  # this driver does not drive it
        verdicts.setdefault(predict(replace(host, gpu=gpu), image).verdict, []).append(name)
    verdicts.pop(found.verdict, None)
    return "; ".join(f"{verdict} for {', '.join(names)}" for verdict, names in verdicts.items())


def _badness(found: Prediction) -> tuple[bool, bool, int]:
    return (not found.runs, found.certain is not found.runs, VERDICTS.index(found.verdict))


def _helps(fix: Fix, hosts: Sequence[Host]) -> bool:
    """Tell whether the fix also works for the node's other GPU models."""
    return all(predict(replace(fix.host, gpu=host.gpu), fix.image).runs for host in hosts)
