"""Refuse moves that the kernel cannot do or that would harm the node. All checks run before the first move.

The kernel moves an RDMA device only in exclusive mode, and only if its driver can take it from its users (rdma-dev(8),
ib_device_set_netns_put in drivers/infiniband/core/device.c).
"""

from collections.abc import Mapping
from typing import Any

from gpuready.base.errors import RefusedError
from gpuready.verbs.rdma import notes
from gpuready.verbs.rdma.facts import Found, Look, Space

#: Modules that run a node's storage or sockets over RDMA. Others (ib_core, the driver, IPoIB) allow a move.
_STORAGE = {
    "nvme_rdma", "nvmet_rdma", "rpcrdma", "ib_srp", "ib_srpt", "ib_iser", "ib_isert", "rtrs_client", "rtrs_server",
    "ko2iblnd", "rds_rdma", "smc", "cifs", "ksmbd",
}  # fmt: skip
_DEFAULT = ("default", "::/0")


def exclusive(look: Look, device: str, found: Found) -> None:
    """Refuse in shared mode: every container already sees the device."""
    if "rdma" not in look.have:
        raise RefusedError("the `rdma` command is missing on this node", remedy="install iproute2 (RHEL: iproute)")
    if not look.mode:
        raise RefusedError("ib_core is not loaded: this node has no RDMA device", remedy="load the adapter's driver")
    if look.mode == "N" or device not in look.here.devices:
        return
    lacks = ", ".join(notes.missing(look, found, device))
    raise RefusedError(
        f"the RDMA devices of this node are shared: {found.where} already sees {device}, and the kernel cannot move it"
        + (f"; the container lacks {lacks}" if lacks else ""),
        remedy="start it with --device=/dev/infiniband and --ulimit memlock=-1; for RoCE, attach only an interface "
        "(--netdev without --device); or make the node exclusive: rdma: {netns_mode: exclusive} in the spec",
    )


def not_in_use(look: Look, device: str) -> None:
    """Refuse to take a device from programs that have it open."""
    users = [
        *look.users.get(look.here.node_of(device), ()),
        *sorted(f"kernel module {m}" for m in look.kernel & _STORAGE),
    ]
    if users:
        raise RefusedError(f"{device} is in use by {', '.join(users[:8])}", remedy="stop its users first")


def not_management(look: Look, netdev: str) -> None:
    """Refuse to move the interface of this SSH connection or of the default route."""
    held = {str(each["local"]) for each in look.here.link(netdev).get("addr_info", ()) if "local" in each}
    if len(look.ssh) > 2 and look.ssh[2].removeprefix("::ffff:").partition("%")[0] in held:
        raise RefusedError(
            f"{netdev} carries this SSH connection ({look.ssh[2]}): moving it would cut the node off",
            remedy="choose another interface",
        )
    for route in look.here.routes:
        if route.get("dev") == netdev and route.get("dst") in _DEFAULT and route.get("table", "main") == "main":
            raise RefusedError(
                f"{netdev} has the default route of this node: moving it would cut the node off",
                remedy=f"choose another interface, or first remove the default route from {netdev}",
            )


def stands_alone(look: Look, space: Space, netdev: str, found: Found) -> None:
    """Refuse an interface that others depend on, or whose name exists in the container."""
    link = look.here.link(netdev)
    if "LOOPBACK" in link.get("flags", ()):
        raise RefusedError(f"{netdev} is the loopback interface", remedy="choose another interface")
    if link.get("master"):
        raise RefusedError(f"{netdev} is part of {link['master']}", remedy="choose another interface")
    above = [str(each["ifname"]) for each in look.here.links if netdev in (each.get("master"), _below(each))]
    if above:
        raise RefusedError(f"{', '.join(above)} on the host needs {netdev}", remedy="choose another interface")
    for route in look.here.routes:
        if any(hop.get("dev") == netdev for hop in route.get("nexthops", ())):
            raise RefusedError(
                f"{netdev} is one of several next hops of the route to {route['dst']}",
                remedy="give that route one next hop, or choose another interface",
            )
    if space.link(netdev):
        raise RefusedError(
            f"{found.where} already has an interface {netdev}", remedy="rename the host's interface first"
        )


def _below(link: Mapping[str, Any]) -> object:
    """Return the interface below a VLAN or the like; `link` of a veth is its other end."""
    kind = link.get("linkinfo", {}).get("info_kind")
    return None if kind == "veth" else link.get("link")
