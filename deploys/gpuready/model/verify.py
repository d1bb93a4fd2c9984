"""The level of verify, and the limits for GPUs and for the tests of ``gpuready fabric``.

Verify tests one node at a time; ``gpuready fabric`` tests pairs. Bandwidth is compared with the line rate of the
*netdev*, because RDMA's own ``rate`` is wrong with some drivers. The defaults leave room for headers: healthy links
reach 23.1 of 25 Gbit/s with an MTU of 1024, and 92 to 95 of 100 Gbit/s with 4096.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gpuready.base.fields import Allowed
from gpuready.base.section import Section


def _named_elsewhere(value: object) -> object:
    if value == "fabric":
        raise ValueError("verify tests one node at a time; to test pairs of hosts, run: gpuready fabric -i INVENTORY")
    if value == "stress":
        raise ValueError("no inventory loads GPUs at each run; ask for it: gpuready verify -i INVENTORY --level stress")
    return value


Level = Annotated[Literal["effective", "config", "smoke"], BeforeValidator(_named_elsewhere)]
Fraction = Annotated[float, Field(gt=0, le=1), Allowed("a fraction above 0 and up to 1, such as 0.85")]
Microseconds = Annotated[float, Field(gt=0, le=1e6), Allowed("microseconds, such as 5.5")]
Errors = Annotated[int, Field(ge=0, le=10**12), Allowed("a number from 0")]
Rate = Annotated[float, Field(gt=0, le=1e5), Allowed("GB/s, such as 350")]
Degrees = Annotated[int, Field(ge=0, le=60), Allowed("degrees Celsius from 0 to 60")]


class Thresholds(Section):
    """Limits of the fabric tests and of GPUs; the defaults for GPUs depend on the model."""

    write_bw: Fraction = 0.85
    """The minimum of ib_write_bw, as a fraction of the netdev's line rate."""
    nccl: Fraction = 0.8
    """The minimum bus bandwidth of an all-reduce, as a fraction of ib_write_bw's result on the same link."""
    collective: Rate | None = None
    """The minimum bus bandwidth of the all-reduce of fabric --tests collective, in GB/s; default: write_bw times nccl
    of the line rates of a host's RDMA ports together."""
    read_lat: Microseconds | None = None
    """The maximum typical latency of ib_read_lat, in microseconds."""
    tcp_bw: Fraction = 0.5
    """The throughput of iperf3 with eight streams below which fabric warns, as a fraction of the netdev's speed."""
    tcp_lat: Microseconds | None = None
    """The maximum average of ping, in microseconds."""
    all_reduce: Rate | None = None
    """The minimum bus bandwidth of the all-reduce of --level stress over the GPUs of a node, in GB/s."""
    temperature_margin: Degrees | None = None
    """The minimum distance of a GPU from its slowdown temperature, in degrees Celsius."""
    sram_corrected: Errors | None = None
    """The maximum number of corrected SRAM errors of a GPU over its lifetime."""
    dram_corrected: Errors | None = None
    """The maximum number of corrected memory errors of a GPU over its lifetime."""
    retired_pages: Errors | None = None
    """The number of retired pages at which a GPU before Ampere fails."""
    nvlink_errors: Errors | None = None
    """The maximum of each error counter of each NVLink since the driver was loaded."""
