"""Choose the GID of each RDMA port of the fabric: exactly one, or the reason why there is none. Never a guess.

A port lists every address of its netdev and of all VLANs above it, for RoCE v1 and v2. The indexes change when
addresses are added or removed, so nothing here relies on an index. If the spec names no network and no interface, the
netdevs of the default route and of SSH are left out: a management network is seldom the fabric.
Sources: ib_core's roce_gid_mgmt.c (which addresses become GIDs), perftest's and NCCL's own ranking of GIDs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, IPv6Network, ip_interface, ip_network
from typing import Literal

from gpuready.model.network import Network
from gpuready.model.spec import Nccl
from gpuready.model.state import NodeState
from gpuready.network.ports import Address, Gid, Port, ports, stacked

#: Why a port is not used. ``unwanted``: it belongs to another network. Every other reason needs attention.
Why = Literal["unwanted", "down", "iwarp", "none", "several", "unknown"]


@dataclass(frozen=True)
class Chosen:
    """A port of the fabric. ``gid_index`` is None for InfiniBand, where NCCL needs none.

    ``address``: of the GID; for InfiniBand, of the IPoIB netdev, or None. ``network``: the address with its prefix
    length (CIDR); empty if the netdev does not have the address.
    """

    port: Port
    gid_index: int | None
    address: Address | None
    netdev: str
    network: str = ""


@dataclass(frozen=True)
class Refused:
    """A port that is not used, with the reason, as one phrase. ``fabric``: it belongs to the fabric, but is down."""

    port: Port
    why: Why
    reason: str
    fabric: bool = False


@dataclass(frozen=True)
class Choices:
    """The choice for each port of a node, in the order of :func:`ports`."""

    ports: tuple[Chosen | Refused, ...]

    @property
    def chosen(self) -> tuple[Chosen, ...]:
        """Return the ports of the fabric."""
        return tuple(each for each in self.ports if isinstance(each, Chosen))

    @property
    def refused(self) -> tuple[Refused, ...]:
        return tuple(each for each in self.ports if isinstance(each, Refused))


class _Refusal(Exception):
    def __init__(self, why: Why, reason: str) -> None:
        super().__init__(reason)
        self.why, self.reason = why, reason


def choose(state: NodeState, nccl: Nccl, *, as_if_up: bool = False) -> Choices:
    """Choose or refuse each port of the node. ``as_if_up``: judge ports that are down as if they were up."""
    network = state.network if isinstance(state.network, Network) else None
    found = [replace(port, state="ACTIVE") if as_if_up else port for port in ports(state)]
    return Choices(tuple(_marked(port, nccl, network) for port in found))


def _marked(port: Port, nccl: Nccl, network: Network | None) -> Chosen | Refused:
    """Mark the ports that are down but would be chosen, with an address, if they were up."""
    found = _judged(port, nccl, network)
    if isinstance(found, Chosen) or found.why != "down":
        return found
    up = _judged(replace(port, state="ACTIVE"), nccl, network)
    return replace(found, fabric=isinstance(up, Chosen) and (up.address is not None or bool(nccl.interfaces)))


def _judged(port: Port, nccl: Nccl, network: Network | None) -> Chosen | Refused:
    try:
        return _chosen(port, nccl, network)
    except _Refusal as e:
        return Refused(port, e.why, e.reason)


def _chosen(port: Port, nccl: Nccl, network: Network | None) -> Chosen:
    if port.transport == "iWARP":
        raise _Refusal("iwarp", "iWARP, which NCCL does not use (irdma: options irdma roce_ena=1 makes it RoCE)")
    if port.transport == "other":
        raise _Refusal("unwanted", f"neither RoCE nor InfiniBand (link layer {port.link_layer or 'unknown'})")
    named = {port.device, port.netdev, *(gid.netdev for gid in port.gids)}
    if nccl.interfaces and not named & set(nccl.interfaces):
        raise _Refusal("unwanted", f"not in nccl.interfaces ({', '.join(nccl.interfaces)})")
    if port.state != "ACTIVE":
        raise _Refusal("down", f"its state is {port.state}, not ACTIVE")
    return _infiniband(port, nccl, network) if port.transport == "InfiniBand" else _roce(port, nccl, network)


def _infiniband(port: Port, nccl: Nccl, network: Network | None) -> Chosen:
    held = network.devices[port.netdev].addresses if network and port.netdev in network.devices else ()
    addresses = [ip_interface(text) for text in held]
    inside = [a for a in addresses if not a.is_link_local and _in_subnets(a.ip, nccl)]
    if nccl.subnets and not inside:
        raise _Refusal("unwanted", f"no IPoIB address in {', '.join(nccl.subnets)}")
    own = min(inside, key=lambda a: (a.version, int(a.ip)), default=None)
    return Chosen(port, None, own.ip if own else None, port.netdev, str(own.network) if own else "")


def _roce(port: Port, nccl: Nccl, network: Network | None) -> Chosen:
    left = _usable(port, nccl, network)
    left = [gid for gid in left if gid.address.version == 4] or left
    if network:
        left = [gid for gid in left if not stacked(gid.netdev, network)] or left
    if len({(gid.address, gid.netdev) for gid in left}) > 1:
        listed = "; ".join(map(str, left))
        raise _Refusal("several", f"several addresses could belong to the fabric ({listed}): name one in nccl.subnets")
    gid = min(left, key=lambda gid: gid.index)
    return Chosen(port, gid.index, gid.address, gid.netdev, _network(gid, network))


def _usable(port: Port, nccl: Nccl, network: Network | None) -> list[Gid]:
    """Return the RoCE v2 GIDs of the fabric. Each step filters them; the first that leaves none gives the reason."""
    if not port.gids:
        raise _Refusal("none", "its GID table is empty")
    left = _keep(port.gids, lambda gid: not local(gid.address), "none", "its netdev has only link-local addresses")
    had = "; ".join(dict.fromkeys(f"{gid.address}{f' on {gid.netdev}' if gid.netdev else ''}" for gid in left))
    subnets, interfaces = ", ".join(nccl.subnets), ", ".join(nccl.interfaces)
    left = _keep(
        left, lambda gid: _in_subnets(gid.address, nccl), "unwanted", f"no address in {subnets} (it has {had})"
    )
    if nccl.interfaces and port.device not in nccl.interfaces:
        left = _keep(
            left, lambda gid: gid.netdev in nccl.interfaces, "none", f"no address on {interfaces} (it has {had})"
        )
    if not nccl.subnets and not nccl.interfaces:
        left = _without_management(left, network)
    unread = [gid for gid in left if not gid.version]
    if unread:
        raise _Refusal("unknown", f"the RoCE version of GID {unread[0]} could not be read")
    return _keep(left, lambda gid: gid.version == "v2", "none", "only RoCE v1 GIDs, which routers do not forward")


def _keep(left: Iterable[Gid], wanted: Callable[[Gid], bool], why: Why, reason: str) -> list[Gid]:
    kept = [gid for gid in left if wanted(gid)]
    if not kept:
        raise _Refusal(why, reason)
    return kept


def _without_management(left: list[Gid], network: Network | None) -> list[Gid]:
    if network is None:
        raise _Refusal("unknown", "the node's routes could not be read, so its management network is unknown")
    apart = dict.fromkeys(network.default, "the default route")
    held = {name: {text.partition("/")[0] for text in device.addresses} for name, device in network.devices.items()}
    apart |= {name: "SSH" for name, addresses in held.items() if network.ssh in addresses}
    kept = [gid for gid in left if gid.netdev not in apart]
    if not kept:
        netdev = left[0].netdev
        way = "if this is the fabric, name its network in nccl.subnets"
        raise _Refusal("unwanted", f"{netdev} carries {apart[netdev]}; {way}")
    return kept


def _in_subnets(address: Address, nccl: Nccl) -> bool:
    return not nccl.subnets or any(address in ip_network(subnet) for subnet in nccl.subnets)


_MULTICAST_V4 = IPv6Network("ff0e::ffff:0:0/96")


def local(address: Address) -> bool:
    """Tell whether an address is link-local (as every default GID), loopback, or not a host's address."""
    if isinstance(address, IPv6Address) and address in _MULTICAST_V4:
        return True
    return address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast


def _network(gid: Gid, network: Network | None) -> str:
    held = network.devices[gid.netdev].addresses if network and gid.netdev in network.devices else ()
    found = [ip_interface(text) for text in held if text.partition("/")[0] == str(gid.address)]
    return str(found[0].network) if found else ""
