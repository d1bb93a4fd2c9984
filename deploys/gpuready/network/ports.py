"""The RDMA devices, ports and GIDs of a node, from the sysfs files in its state.

Sources: Documentation/ABI/stable/sysfs-class-infiniband; drivers/infiniband/core/sysfs.c (an empty GID slot prints
zeros, and its type and netdev answer EINVAL, so they are missing from the state), include/rdma/ib_verbs.h (node types).
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from gpuready.model.network import NetDevice, Network
from gpuready.model.state import NodeState

Address = IPv4Address | IPv6Address

#: Netdevs that combine several ports. To RDMA, each is a netdev of its own.
AGGREGATES = ("bond", "team")
#: Netdevs on top of another one, which may be in another network namespace.
STACKED = ("vlan", "macvlan", "macvtap", "ipvlan")
_PATH = re.compile(r"/sys/class/infiniband/([^/]+)/ports/(\d+)/(.+)")
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Gid:
    """One used slot of a port's GID table.

    ``address`` is IPv4 for an IPv4-mapped GID. ``version`` is v1 or v2, empty if the type could not be read.
    """

    index: int
    address: Address
    version: str
    netdev: str

    def __str__(self) -> str:
        return f"{self.index}: {self.address}{f' on {self.netdev}' if self.netdev else ''}"


@dataclass(frozen=True)
class Port:
    """One port of one RDMA device.

    ``transport``: InfiniBand, RoCE, iWARP, or other (EFA and usNIC, which NCCL's InfiniBand transport cannot use).
    ``rate_gbps`` is the rate that RDMA reports, in Gbit/s; some drivers report a wrong one (irdma: 100 instead of 25).
    ``line_gbps`` is the speed of the netdev, None if unknown. ``mtu`` is the netdev's, 0 if unknown.
    """

    device: str
    number: int
    transport: str
    state: str
    link_layer: str
    netdev: str
    gids: tuple[Gid, ...]
    rate_gbps: float | None = None
    line_gbps: float | None = None
    mtu: int = 0

    @property
    def name(self) -> str:
        """The name as NCCL and rdma(8) write it, except for the separator."""
        return f"{self.device}:{self.number}"


def ports(state: NodeState) -> tuple[Port, ...]:
    """Return all ports of the node, in natural order of the device names (mlx5_2 before mlx5_10)."""
    found: dict[tuple[str, int], dict[str, str]] = {}
    for path, text in state.rdma.items():
        if m := _PATH.fullmatch(path):
            found.setdefault((m[1], int(m[2])), {})[m[3]] = text.strip()
    network = state.network if isinstance(state.network, Network) else Network()
    made = [_port(device, number, values, state, network) for (device, number), values in found.items()]
    return tuple(sorted(made, key=lambda port: (natural(port.device), port.number)))


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts mlx5_2 before mlx5_10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part)


def _port(device: str, number: int, values: dict[str, str], state: NodeState, network: Network) -> Port:
    link_layer = values.get("link_layer", "")
    gids = _gids(values, network)
    netdev = _netdev(device, gids, network)
    below = network.devices.get(netdev, NetDevice())
    rate = _NUMBER.match(values.get("rate", ""))
    return Port(
        device=device,
        number=number,
        transport=_transport(state.rdma.get(f"/sys/class/infiniband/{device}/node_type", ""), link_layer),
        state=values.get("state", "").partition(":")[2].strip() or "unknown",
        link_layer=link_layer,
        netdev=netdev,
        gids=gids,
        rate_gbps=float(rate[0]) if rate else None,
        line_gbps=below.speed / 1000 if below.speed else None,
        mtu=below.mtu,
    )


def _transport(node_type: str, link_layer: str) -> str:
    kind = node_type.partition(":")[2].strip()
    if kind == "RNIC":
        return "iWARP"
    if kind == "CA" and link_layer in ("InfiniBand", "Ethernet"):
        return "RoCE" if link_layer == "Ethernet" else "InfiniBand"
    return "other"


def _gids(values: dict[str, str], network: Network) -> tuple[Gid, ...]:
    found = []
    for key, text in values.items():
        if key.startswith("gids/") and key[5:].isdigit() and (address := _address(text)) is not None:
            index = int(key[5:])
            kind = values.get(f"gid_attrs/types/{index}", "")
            version = "v2" if kind == "RoCE v2" else "v1" if kind in ("IB/RoCE v1", "RoCE v1") else ""
            netdev = values.get(f"gid_attrs/ndevs/{index}", "") or _holder(address, network)
            found.append(Gid(index, address, version, netdev))
    return tuple(sorted(found, key=lambda gid: gid.index))


def _address(text: str) -> Address | None:
    """Parse a GID; None for an empty slot (all zeros)."""
    try:
        address = IPv6Address(text)
    except AddressValueError:
        return None
    return None if address.is_unspecified else address.ipv4_mapped or address


def _holder(address: Address, network: Network) -> str:
    """Return the only netdev with this address; empty if none or several have it."""
    holders = [
        name
        for name, device in network.devices.items()
        if str(address) in {a.partition("/")[0] for a in device.addresses}
    ]
    return holders[0] if len(holders) == 1 else ""


def _netdev(device: str, gids: tuple[Gid, ...], network: Network) -> str:
    """Return the port's own netdev: the lowest netdev of its GIDs, else the only netdev of the same hardware."""
    named = list(dict.fromkeys(gid.netdev for gid in gids if gid.netdev))
    own = [name for name in named if not stacked(name, network)]
    if len(own) == 1:
        return own[0]
    beside = [name for name in network.rdma.get(device, ()) if not own or name in own]
    return beside[0] if len(beside) == 1 else ""


def stacked(netdev: str, network: Network) -> bool:
    """Tell whether the netdev is a VLAN or the like, which shares the port of the netdev below it."""
    device = network.devices.get(netdev)
    return device is not None and (device.kind in STACKED or (bool(device.lower) and device.kind not in AGGREGATES))
