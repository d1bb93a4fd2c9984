"""The part of verify, at level stress: the GPUs that were loaded, and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gpuready.gpu.stress_figures import Gpu, margin
from gpuready.result.cases import Changed
from gpuready.result.formats import EVIDENCE_FORMATS
from gpuready.result.model import CheckResult, HostResult, Run, VerbPart

if TYPE_CHECKING:
    from gpuready.model.spec import NodeSpec


class VerifyPart(VerbPart):
    """A value of each host, at level stress."""

    def changes(self, before: HostResult, after: HostResult) -> Iterator[Changed]:
        """The figures of one GPU that differ by more than half of what may be between two GPUs of a model."""
        from gpuready.gpu.stress import WORDS

        known = {gpu.uuid: gpu for gpu in _loaded(before)}
        for gpu in _loaded(after):
            old = known[gpu.uuid].figures if gpu.uuid in known else {}
            for metric, now in gpu.figures.items():
                share = now.median / old[metric].median - 1 if metric in old and old[metric].median else 0.0
                if abs(share) > margin(metric) / 2:
                    name, detail = f"{gpu}: {WORDS[metric]}", f"{share * 100:+.0f} %"
                    yield Changed("figure", name, str(old[metric]), str(now), detail, worse=share < 0)

    def joined(self, run: Run) -> None:
        """Compare the GPUs under load again: each shard could compare only its own."""
        under_load = [host for host in run.hosts if _loaded(host)]
        if not under_load:
            return
        from gpuready.gpu.stress import RUN, Node, Nodes

        together = Nodes({host.name: Node(gpus=list(_loaded(host))) for host in under_load})
        for host in under_load:
            judged = (each for each in together.judge(host.name, _spec(host), date.today()) if each.check is not RUN)
            again = {each.check.id: CheckResult.of(each) for each in judged}
            host.checks = [again.get(check.id, check) for check in host.checks]


PART = VerifyPart(
    verb="verify",
    of_host={
        "stress": (tuple[Gpu, ...], "verify --level stress: the GPUs that were loaded."),
        "verify": (dict[str, Any], "verify --level stress: what verify in the spec says, without defaults."),
    },
    compares={"figure": "GPUs under load"},
    formats=EVIDENCE_FORMATS,
)


def _loaded(host: HostResult) -> tuple[Gpu, ...]:
    found: tuple[Gpu, ...] = host.parts.get("stress", ())
    return found


def _spec(host: HostResult) -> NodeSpec:
    """Return what the spec of a host says of its GPUs."""
    from gpuready.model.spec import NodeSpec
    from gpuready.result.document import DocumentError

    try:
        return NodeSpec.model_validate({"verify": host.parts.get("verify", {})})
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DocumentError(f"hosts.{host.name}.{place}: {first['msg']}; another release wrote it") from None
