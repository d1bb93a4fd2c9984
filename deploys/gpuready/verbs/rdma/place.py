"""Find where a device and its interface are now: on the host, in the container, or elsewhere.

This is read from the node. The record only helps to recognise an interface that was renamed.
"""

from gpuready.base.errors import RefusedError
from gpuready.verbs.rdma.facts import Found, Look, Space
from gpuready.verbs.rdma.move_plan import HOST
from gpuready.verbs.rdma.netdev import Interface
from gpuready.verbs.rdma.record import Record


def record_of(look: Look, device: str, netdev: str) -> Record | None:
    """Return the record of a device or interface, if it is from this boot."""
    for record in look.records.values():
        if (device and record.device == device) or (netdev and record.netdev == netdev):
            return record if record.boot == look.boot else None
    return None


def same(space: Space, before: Interface) -> str:
    """Find an interface in a namespace by its identity: the container or the kernel may have renamed it."""
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
    """Find it on the host: only hardware returns there by itself, and VLANs or ipvlans share one hardware address."""
    found = same(look.here, before)
    return "" if before.kind and found != before.name else found


def device_place(look: Look, device: str, found: Found, record: Record | None) -> str:
    """Return HOST, or the container if it has the device. Raises :class:`RefusedError` if the device is elsewhere."""
    if device in look.here.devices:
        return HOST
    inodes = [each.inode for each in look.others.values() if device in each.devices]
    if found.netns in inodes:
        return found.where
    if inodes:
        raise _elsewhere(look, device, "device", inodes[0], record)
    there = ", ".join(look.here.devices) or "none"
    raise RefusedError(f"this node has no RDMA device {device}", remedy=f"devices on the host: {there}")


def netdev_of(look: Look, space: Space, device: str, record: Record | None, place: str) -> str:
    """Return the interface that moves with a device; empty if none does."""
    if record is not None and record.device == device:
        return record.netdev
    source = look.here if place == HOST else space
    if source.layers(device) == {"InfiniBand"}:
        return ""  # the device creates its IPoIB interface in its own namespace
    names = source.netdevs_of(device)
    if len(names) == 1:
        return names[0]
    if not names:
        raise RefusedError(f"cannot find the network interface of {device}", remedy="give it with --netdev IF")
    raise RefusedError(f"{device} has several interfaces: {', '.join(names)}", remedy="give one with --netdev IF")


def netdev_place(look: Look, space: Space, netdev: str, found: Found, record: Record | None) -> str:
    """Like :func:`device_place`, for an interface. Every container has an eth0, so its name alone proves nothing."""
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
        if link and "linkinfo" not in link and "LOOPBACK" not in link.get("flags", ()):  # hardware is unique
            raise _elsewhere(look, netdev, "netdev", other.inode, None)
    raise RefusedError(f"the host has no network interface {netdev}", remedy="ip link lists the interfaces")


def _elsewhere(look: Look, name: str, option: str, inode: int, record: Record | None) -> RefusedError:
    if record is not None and record.netns == inode:
        return RefusedError(
            f"{name} is already attached to {record.where}",
            remedy=f"first run gpuready rdma detach HOST --{option} {name}",
        )
    where = look.named.get(inode, "another")
    return RefusedError(
        f"{name} is in the network namespace of {where}, and gpuready did not move it",
        remedy="first move it back with the tool that moved it",
    )
