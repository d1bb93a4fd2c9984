"""The part of rdma: what is attached to containers, for people in one or two lines each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gpuready.base.part import Part
from gpuready.base.words import count
from gpuready.result.model import HostResult, Run, VerbPart
from gpuready.result.text import Painter

State = Literal["attached", "returned", "destroyed", "rebooted"]


@dataclass(frozen=True)
class Port(Part):
    """A port of an attached device, as the container sees it."""

    port: int
    """Its number."""
    gid_index: int | None
    """The GID index that NCCL needs there; null: InfiniBand, or there is none."""
    address: str
    """The address of that GID."""
    reason: str
    """Why there is no GID index."""


@dataclass(frozen=True)
class Attached(Part):
    """rdma: one record of a node, and its current state."""

    device: str
    """The RDMA device; empty: only the interface was moved."""
    netdev: str
    """The network interface; empty: the device has none."""
    engine: str
    """The engine of the container."""
    container: str
    """The name of the container."""
    id: str
    """The id of the container."""
    pod: str
    """The pod of the container, as NAMESPACE/POD; empty: it is not in a pod."""
    where: str
    """The container in words."""
    since: str
    """When it was attached, UTC."""
    state: State
    """returned: the container has ended, and the host has it back without its configuration; destroyed: the interface
    ended with the namespace; rebooted: a reboot ended the attachment."""
    addresses: tuple[str, ...]
    """The addresses of the interface in the container."""
    mtu: int | None
    """The MTU of the interface in the container."""
    up: bool | None
    """Whether the interface is up in the container."""
    ports: tuple[Port, ...]
    """The ports of the device, as the container sees them."""


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


class RdmaPart(VerbPart):
    """A value of each host."""

    def headline(self, run: Run) -> str:
        source = f" of {run.shown_source}" if run.source else ""
        return f"{run.verb}: {count(len(run.hosts), 'host')}{source}, {run.seconds:.1f} s"

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """One block with the lines of each host that has something attached."""
        found: list[str] = []
        for host in run.hosts:
            if mine := attached(host):
                found += [paint("bold", host.name), *(line for each in mine for line in _lines(each))]
        yield found

    def done(self, run: Run) -> str:
        return f"{sum(len(attached(host)) for host in run.hosts)} attached"


PART = RdmaPart(
    verb="rdma",
    of_host={"attached": (tuple[Attached, ...], "rdma: what is on record.")},
    of_spec=False,
)


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
