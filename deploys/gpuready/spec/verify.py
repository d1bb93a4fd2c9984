"""How deep verify goes, and the limits that GPUs and the tests of the fabric (``gpuready fabric``) are held against.

Verify looks at one node at a time; what takes two is no level of it. Bandwidth is held against the line rate of the
*netdev*, because RDMA's own ``rate`` is wrong with some drivers. The defaults leave room for headers: healthy links are
seen to do 23.1 of 25 Gbit/s with an MTU of 1024, and 92 to 95 of 100 and more with 4096.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gpuready.core.fields import Allowed
from gpuready.core.section import Section


def _no_pairs(value: object) -> object:
    if value == "fabric":
        raise ValueError(
            "verify looks at one node at a time; pairs of hosts are tested by: gpuready fabric -i INVENTORY"
        )
    return value


Level = Annotated[Literal["effective", "config", "smoke"], BeforeValidator(_no_pairs)]
Fraction = Annotated[float, Field(gt=0, le=1), Allowed("a fraction above 0 and up to 1, such as 0.85")]
Microseconds = Annotated[float, Field(gt=0, le=1e6), Allowed("microseconds, such as 5.5")]
Errors = Annotated[int, Field(ge=0, le=10**12), Allowed("a number from 0")]
Degrees = Annotated[int, Field(ge=0, le=60), Allowed("degrees Celsius from 0 to 60")]


class Thresholds(Section):
    """Limits of the fabric tests and of GPUs; those of GPUs are by model (checks/data/thresholds.yaml) unless given."""

    write_bw: Fraction = 0.85
    """The least that ib_write_bw must reach, as a fraction of the netdev's line rate."""
    nccl: Fraction = 0.8
    """The least bus bandwidth of an all-reduce, as a fraction of what ib_write_bw reached on the same link."""
    read_lat: Microseconds | None = None
    """The most that ib_read_lat may take, typically."""
    temperature_margin: Degrees | None = None
    """How far below the temperature at which it slows down a GPU must be, in degrees Celsius."""
    sram_corrected: Errors | None = None
    """The most corrected errors of a GPU's SRAM over its life."""
    dram_corrected: Errors | None = None
    """The most corrected errors of a GPU's memory over its life."""
    retired_pages: Errors | None = None
    """From how many retired pages on a GPU (before Ampere) fails."""
    nvlink_errors: Errors | None = None
    """The most errors that each counter of each NVLink may show since the driver was loaded."""
