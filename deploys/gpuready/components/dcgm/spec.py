"""The spec of NVIDIA's Data Center GPU Manager (DCGM): whether to install it, and which diagnostic to run."""

from typing import Annotated

from pydantic import Field

from gpuready.base.fields import Allowed
from gpuready.base.section import Section

DiagLevel = Annotated[int, Field(ge=1, le=4), Allowed("1 (seconds), 2 (minutes), 3 (half an hour) or 4 (hours)")]


class Dcgm(Section):
    """NVIDIA's Data Center GPU Manager (DCGM)."""

    install: bool = False
    """Install DCGM 4 from NVIDIA's CUDA repository, and run its service nvidia-dcgm."""
    diag: DiagLevel | None = None
    """The level of dcgmi diag that verify --level stress runs on idle nodes: 1 takes seconds, 4 hours."""
