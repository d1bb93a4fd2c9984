"""Why a device or an interface may not be moved. Everything is judged before anything is moved.

The kernel moves an RDMA device in exclusive mode only, and only if its driver can take it from its users (rdma-dev(8),
ib_device_set_netns_put in drivers/infiniband/core/device.c); the rest is what a node would lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuready.core.errors import RefusedError
from gpuready.tools.attach import notes
from gpuready.tools.attach.facts import Found, Look, Space

#: Modules that keep a node's storage or sockets on RDMA; others (ib_core, the driver, IPoIB) come along.
_STORAGE = {
    "nvme_rdma", "nvmet_rdma", "rpcrdma", "ib_srp", "ib_srpt", "ib_iser", "ib_isert", "rtrs_client", "rtrs_server",
    "ko2iblnd", "rds_rdma", "smc", "cifs", "ksmbd",
}  # fmt: skip
_DEFAULT = ("default", "::/0")


def exclusive(look: Look, device: str, found: Found) -> None:
    """In shared mode there is nothing to move, and something else to say."""
    if "rdma" not in look.have:
        raise RefusedError("there is no `rdma` command on this node", remedy="install iproute2 (RHEL: iproute)")
    if not look.mode:
        raise RefusedError("ib_core is not loaded: there is no RDMA device", remedy="is the driver loaded?")
    if look.mode == "N" or device not in look.here.devices:
        return
    lacks = ", ".join(notes.missing(look, found, device))
    raise RefusedError(
        f"the RDMA devices of this node are shared: {found.where} sees {device} already, and the kernel moves none"
        + (f"; what it lacks is {lacks}" if lacks else ""),
        remedy="it needs --device=/dev/infiniband and --ulimit memlock=-1 at its start, and for RoCE an interface: "
        "attach --netdev without --device; or make the node exclusive: rdma: {netns_mode: exclusive} in the spec",
    )


def not_in_use(look: Look, device: str) -> None:
    """A move takes the device from whoever has it open."""
    users = [
        *look.users.get(look.here.node_of(device), ()),
        *sorted(f"the kernel's {m}" for m in look.kernel & _STORAGE),
    ]
    if users:
        raise RefusedError(
            f"{device} is in use by {', '.join(users[:8])}, and a move would take it away", remedy="end that first"
        )


def not_management(look: Look, netdev: str) -> None:
    """The interface by which we came, or by which the node reaches the rest of the world, stays where it is."""
    held = {str(each["local"]) for each in look.here.link(netdev).get("addr_info", ()) if "local" in each}
    if len(look.ssh) > 2 and look.ssh[2].removeprefix("::ffff:").partition("%")[0] in held:
        raise RefusedError(
            f"{netdev} carries this SSH connection ({look.ssh[2]}): moving it would cut the node off",
            remedy="give another interface",
        )
    for route in look.here.routes:
        if route.get("dev") == netdev and route.get("dst") in _DEFAULT and route.get("table", "main") == "main":
            raise RefusedError(
                f"{netdev} has the default route of this node: moving it would cut the node off",
                remedy=f"give another interface, or take the default route off {netdev} first",
            )


def stands_alone(look: Look, space: Space, netdev: str, found: Found) -> None:
    """Part of something, or something with parts, cannot go alone; nor can a name be there twice."""
    link = look.here.link(netdev)
    if "LOOPBACK" in link.get("flags", ()):
        raise RefusedError(f"{netdev} is the loopback interface", remedy="give another interface")
    if link.get("master"):
        raise RefusedError(f"{netdev} is part of {link['master']}", remedy="give another interface")
    above = [str(each["ifname"]) for each in look.here.links if netdev in (each.get("master"), _below(each))]
    if above:
        raise RefusedError(f"{netdev} is needed by {', '.join(above)} on the host", remedy="give another interface")
    for route in look.here.routes:
        if any(hop.get("dev") == netdev for hop in route.get("nexthops", ())):
            raise RefusedError(
                f"{netdev} is one of several next hops of the route to {route['dst']}",
                remedy="give that route one next hop, or give another interface",
            )
    if space.link(netdev):
        raise RefusedError(f"{found.where} has an interface {netdev} of its own", remedy="rename the host's one first")


def _below(link: Mapping[str, Any]) -> object:
    """What a VLAN or the like stands on; the other end of a veth is called `link`, too."""
    kind = link.get("linkinfo", {}).get("info_kind")
    return None if kind == "veth" else link.get("link")
