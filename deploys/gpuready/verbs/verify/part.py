"""The part of verify, at level stress: the GPUs that were loaded, and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.base.part import Count, Part
from gpuready.gpu.stress_figures import Figure, Gpu, margin
from gpuready.result.findings import Changed
from gpuready.result.model import HostResult, VerbPart


@dataclass(frozen=True)
class LoadedGpu(Part):
    """verify --level stress: one GPU."""

    index: Count
    """Its number on the node, as nvidia-smi has it."""
    uuid: str
    """Its UUID."""
    slot: str
    """Its PCI address."""
    model: str
    """Its name, as nvidia-smi has it."""
    capped: bool
    """Its power limit is below the default."""
    software: str
    """The versions of torch, CUDA and NCCL; empty: torch did not start."""
    figures: dict[str, Figure]
    """By fp32, tf32, bf16, fp16, fp8 (matrix products), memory, to_gpu, from_gpu, peer, reduce."""
    checksums: dict[str, str]
    """The checksum of the product of each format."""
    errors: dict[str, str]
    """What did not run, and why."""
    wrong: dict[str, str]
    """Wrong results other than a product's."""

    @classmethod
    def of(cls, gpu: Gpu) -> LoadedGpu:
        return cls(
            gpu.index, gpu.uuid, gpu.slot, gpu.model, gpu.capped, gpu.software, gpu.figures, gpu.checksums, gpu.errors,
            gpu.wrong,
        )  # fmt: skip

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.uuid}, {self.slot})"


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


PART = VerifyPart(
    verb="verify",
    of_host={"stress": (tuple[LoadedGpu, ...], "verify --level stress: the GPUs that were loaded.")},
    compares={"figure": "GPUs under load"},
)


def _loaded(host: HostResult) -> tuple[LoadedGpu, ...]:
    found: tuple[LoadedGpu, ...] = host.parts.get("stress", ())
    return found
