"""Where a device and its interface are now: on the host, in the container that is meant, or elsewhere, by name.

Read, not remembered: the record only helps to recognise an interface, whose name alone says little.
"""

from __future__ import annotations

from gpuready.core.errors import RefusedError
from gpuready.tools.attach.facts import Found, Look, Space
from gpuready.tools.attach.move_plan import HOST
from gpuready.tools.attach.netdev import Interface
from gpuready.tools.attach.record import Record


def record_of(look: Look, device: str, netdev: str) -> Record | None:
    """The record of a device or interface, if it is of this boot."""
    for record in look.records.values():
        if (device and record.device == device) or (netdev and record.netdev == netdev):
            return record if record.boot == look.boot else None
    return None


def same(space: Space, before: Interface) -> str:
    """The interface there that it is, whatever its name is now: a container may rename it, and so may the kernel."""
    if space.link(before.name).get("address") == before.mac:
        return before.name
    for link in space.links:
        kind = link.get("linkinfo", {}).get("info_kind", "")
        if before.mac and (link.get("address"), link.get("parentdev", ""), kind) == (
            before.mac, before.place, before.kind,
        ):  # fmt: skip
            return str(link["ifname"])
    return ""


def same_here(look: Look, before: Interface) -> str:
    """The same on the host: only hardware comes back there by itself, and of VLANs or ipvlans all have one address."""
    found = same(look.here, before)
    return "" if before.kind and found != before.name else found


def device_place(look: Look, device: str, found: Found, record: Record | None) -> str:
    """HOST, or where the target is; :class:`RefusedError` names who else has it."""
    if device in look.here.devices:
        return HOST
    inodes = [each.inode for each in look.others.values() if device in each.devices]
    if found.netns in inodes:
        return found.where
    if inodes:
        raise _elsewhere(look, device, "device", inodes[0], record)
    there = ", ".join(look.here.devices) or "none"
    raise RefusedError(f"there is no RDMA device {device} on this node", remedy=f"on the host there are: {there}")


def netdev_of(look: Look, space: Space, device: str, record: Record | None, place: str) -> str:
    """The interface that goes along with a device; empty where there is none to give."""
    if record is not None and record.device == device:
        return record.netdev
    source = look.here if place == HOST else space
    if source.layers(device) == {"InfiniBand"}:
        return ""  # IPoIB is made by the device, wherever it is
    names = source.netdevs_of(device)
    if len(names) == 1:
        return names[0]
    if not names:
        raise RefusedError(f"no network interface of {device} is to be seen", remedy="name it: --netdev IF")
    raise RefusedError(f"{device} has several interfaces: {', '.join(names)}", remedy="name one: --netdev IF")


def netdev_place(look: Look, space: Space, netdev: str, found: Found, record: Record | None) -> str:
    """As :func:`device_place`: every container has an eth0, so a name in one proves nothing."""
    if record is not None and record.before is not None and record.netdev == netdev:
        known = look.others.get(record.netns)
        if known is not None and same(known, record.before):
            if known.inode != found.netns:
                raise _elsewhere(look, netdev, "netdev", known.inode, record)
            return found.where
    if look.here.link(netdev):
        return HOST
    if any(netdev in space.netdevs_of(device) for device in space.devices):
        return found.where
    for other in look.others.values():
        link = other.link(netdev)
        if link and "linkinfo" not in link and "LOOPBACK" not in link.get("flags", ()):  # hardware: there is one of it
            raise _elsewhere(look, netdev, "netdev", other.inode, None)
    raise RefusedError(f"there is no network interface {netdev} on the host", remedy="ip link lists those there are")


def _elsewhere(look: Look, name: str, option: str, inode: int, record: Record | None) -> RefusedError:
    if record is not None and record.netns == inode:
        return RefusedError(
            f"{name} is attached to {record.where} already",
            remedy=f"gpuready rdma detach HOST --{option} {name}, first",
        )
    where = look.named.get(inode, "another")
    return RefusedError(
        f"{name} is in the network namespace of {where}, and it was not gpuready that moved it",
        remedy="take it back the way that it went, first",
    )
