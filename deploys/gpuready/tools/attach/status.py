"""What of a node is attached to what now, for the result document. Read from where it is, not from the record alone."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gpuready.components.nccl.spec import Nccl
from gpuready.network.discovery import Chosen, choose
from gpuready.state.model import NodeState
from gpuready.state.network import NetDevice, Network
from gpuready.tools.attach.facts import Look, Space
from gpuready.tools.attach.place import same, same_here
from gpuready.tools.attach.record import Record

#: What may have become of it.
STATES = ("attached", "returned", "destroyed", "rebooted")


@dataclass(frozen=True)
class Port:
    """A port as the container sees it: the GID index that NCCL needs there, or the reason why there is none to tell."""

    port: int
    gid_index: int | None
    address: str
    reason: str


@dataclass(frozen=True)
class Attached:
    """One record and what became of it.

    ``state``: attached, returned (what had it has ended; the host has it back, but not as it was), destroyed (the
    interface ended together with the namespace), rebooted (the boot made all anew).
    """

    device: str
    netdev: str
    engine: str
    container: str
    id: str
    pod: str
    where: str
    since: str
    state: str
    addresses: tuple[str, ...] = ()
    mtu: int | None = None
    up: bool | None = None
    ports: tuple[Port, ...] = ()


def attached(look: Look, nccl: Nccl) -> tuple[Attached, ...]:
    """All records of the node; ``nccl`` says which networks are the fabric's."""
    return tuple(_status(look, record, nccl) for record in look.records.values())


def _status(look: Look, record: Record, nccl: Nccl) -> Attached:
    space = look.others.get(record.netns) if record.boot == look.boot else None
    seen = space.interface(same(space, record.before)) if space is not None and record.before is not None else None
    return Attached(
        device=record.device,
        netdev=record.netdev,
        engine=record.engine,
        container=record.container,
        id=record.id,
        pod=record.pod,
        where=record.where,
        since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.clock)),
        state=_state(look, space, record, inside=seen is not None),
        addresses=seen.plain if seen else (),
        mtu=seen.mtu if seen else None,
        up=seen.up if seen else None,
        ports=_ports(space, record.device, nccl) if space is not None and record.device in space.devices else (),
    )


def _state(look: Look, space: Space | None, record: Record, *, inside: bool) -> str:
    if record.boot != look.boot:
        return "rebooted"
    if inside or (space is not None and record.device and record.device in space.devices):
        return "attached"
    if record.before is None or same_here(look, record.before):
        return "returned"
    return "destroyed"


def _ports(space: Space, device: str, nccl: Nccl) -> tuple[Port, ...]:
    """The device's GID tables, which the kernel fills anew from the interface's addresses in that namespace."""
    devices = {
        str(link["ifname"]): NetDevice(
            kind=link.get("linkinfo", {}).get("info_kind", ""),
            state=str(link.get("operstate", "")).lower(),
            mtu=link.get("mtu", 0),
            addresses=tuple(f"{each['local']}/{each['prefixlen']}" for each in link.get("addr_info", ())),
        )
        for link in space.links
    }
    default = tuple(str(route["dev"]) for route in space.routes if route["dst"] == "default" and "dev" in route)
    state = NodeState(rdma=dict(space.rdma), network=Network(devices=devices, default=default))
    found = [each for each in choose(state, nccl).ports if each.port.device == device]
    return tuple(
        Port(each.port.number, each.gid_index, str(each.address or ""), "")
        if isinstance(each, Chosen)
        else Port(each.port.number, None, "", each.reason)
        for each in found
    )
