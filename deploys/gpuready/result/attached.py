"""What is attached to containers, for people: one or two lines each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuready.result.model import HostResult, Run
from gpuready.result.text import Painter

if TYPE_CHECKING:
    from gpuready.tools.attach.status import Attached

_STATES = {
    "attached": "",
    "returned": "has ended: the host has it back, but not as it was; gpuready rdma detach puts it back",
    "destroyed": "has ended, and the interface with it; gpuready rdma detach drops the record",
    "rebooted": "from before the last boot; gpuready rdma detach drops the record",
}


def attached(host: HostResult) -> tuple[Attached, ...]:
    """What is attached on a host."""
    found: tuple[Attached, ...] = host.parts.get("attached", ())
    return found


def blocks(run: Run, paint: Painter) -> Iterator[list[str]]:
    """One block with the lines of each host that has something attached."""
    found: list[str] = []
    for host in run.hosts:
        if mine := attached(host):
            found += [paint("bold", host.name), *(line for each in mine for line in _lines(each))]
    yield found


def _lines(each: Attached) -> Iterator[str]:
    what = " with ".join(filter(None, (each.device, each.netdev)))
    state = _STATES[each.state]
    yield f"  {what}  in {each.where}, since {each.since}" + (f"  ({state})" if state else "")
    if each.mtu is not None:
        addresses = ", ".join(each.addresses) or "no address"
        yield f"    {addresses}, mtu {each.mtu}, {'up' if each.up else 'down'}"
    for port in each.ports:
        if port.reason:
            told = f"no GID index: {port.reason}"
        elif port.gid_index is None:
            told = "InfiniBand"
        else:
            told = f"GID index {port.gid_index} ({port.address}, RoCE v2)"
        yield f"    port {port.port}: {told}"
