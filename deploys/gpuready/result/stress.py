"""The part of ``verify --level stress``: the GPUs that were loaded, and their figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuready.base.part import Count, Part
from gpuready.gpu.stress_figures import Figure

if TYPE_CHECKING:
    from gpuready.gpu.stress_figures import Gpu
    from gpuready.result.model import HostResult


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


def loaded(host: HostResult) -> tuple[LoadedGpu, ...]:
    """The GPUs of a host that were loaded."""
    found: tuple[LoadedGpu, ...] = host.parts.get("stress", ())
    return found
