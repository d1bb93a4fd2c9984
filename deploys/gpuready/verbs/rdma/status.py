"""Report what is attached on a node, for the result document: from the namespaces, not only from the records."""

import time

from gpuready.components.nccl.spec import Nccl
from gpuready.model.network import NetDevice, Network
from gpuready.model.state import NodeState
from gpuready.network.rdma_choice import Chosen, choose
from gpuready.verbs.rdma.facts import Look, Space
from gpuready.verbs.rdma.part import Attached, Port, State
from gpuready.verbs.rdma.place import same, same_here
from gpuready.verbs.rdma.record import Record


def attached(look: Look, nccl: Nccl) -> tuple[Attached, ...]:
    """Return the state of every record on the node. ``nccl`` says which networks belong to the fabric."""
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
        addresses=tuple(seen.plain) if seen else (),
        mtu=seen.mtu if seen else None,
        up=seen.up if seen else None,
        ports=_ports(space, record.device, nccl) if space is not None and record.device in space.devices else (),
    )


def _state(look: Look, space: Space | None, record: Record, *, inside: bool) -> State:
    if record.boot != look.boot:
        return "rebooted"
    if inside or (space is not None and record.device and record.device in space.devices):
        return "attached"
    if record.before is None or same_here(look, record.before):
        return "returned"
    return "destroyed"


def _ports(space: Space, device: str, nccl: Nccl) -> tuple[Port, ...]:
    """Choose a GID for each port; the kernel fills the GID tables from the interface's addresses in the namespace."""
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
