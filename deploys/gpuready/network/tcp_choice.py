"""Choose the network interfaces for NCCL over TCP on nodes without RDMA: one per network, or the reason why not.

A candidate is up and has an address that other hosts can reach. It is hardware, is built on hardware (a bond, a VLAN, a
bridge with an uplink), or carries the default route or SSH. This excludes docker0, veth pairs, tunnels and container
bridges under any name. nccl.subnets and nccl.interfaces restrict the candidates. If several remain, gpuready chooses
the one whose network all hosts share. If that does not leave exactly one, the error lists the candidates.

Sources: NCCL's user guide (NCCL_SOCKET_IFNAME: a list of prefixes, exact names after ``=``; NCCL_SOCKET_FAMILY;
NCCL_IB_DISABLE); NCCL's src/transport/net_ib (any active port with an Ethernet or InfiniBand link layer is taken, iWARP
too); PyTorch's documentation of torch.distributed (GLOO_SOCKET_IFNAME: a list of plain names).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_interface, ip_network

from gpuready.base.errors import brief
from gpuready.model.network import NetDevice, Network
from gpuready.model.spec import Nccl
from gpuready.model.state import NodeState
from gpuready.network.ports import ports

Interface = IPv4Interface | IPv6Interface

#: Folders of NCCL plugins that clouds install, by a part of their path.
_PLUGINS = {
    "ofi-nccl": "aws-ofi-nccl (EFA)",
    "tcpxo": "GPUDirect-TCPXO",
    "tcpx": "GPUDirect-TCPX",
    "gib": "gIB",
}


@dataclass(frozen=True)
class Wire:
    """A network interface with its address. ``line_gbps`` is its speed, None if unknown; ``mtu`` is 0 if unknown."""

    netdev: str
    address: Interface
    line_gbps: float | None = None
    mtu: int = 0

    def __str__(self) -> str:
        return f"{self.netdev} {self.address}"


@dataclass(frozen=True)
class Wires:
    """The choice for a node. ``problem``: why there is none; ``wires`` is then empty."""

    wires: tuple[Wire, ...] = ()
    problem: str = ""


def choose_wires(states: Mapping[str, NodeState], specs: Mapping[str, Nccl]) -> dict[str, Wires]:
    """Choose the interfaces of each host. ``states``: all hosts that must reach each other."""
    found = {name: _candidates(state, specs[name]) for name, state in states.items()}
    return {name: _chosen(name, found, states[name], specs[name]) for name in states}


def _candidates(state: NodeState, nccl: Nccl) -> list[Wire]:
    network = state.network
    if not isinstance(network, Network):
        return []
    some_hardware = any(device.driver for device in network.devices.values())
    return [
        Wire(name, addresses[0], device.speed / 1000 if device.speed else None, device.mtu)
        for name, device in network.devices.items()
        if device.state not in ("down", "lowerlayerdown", "notpresent", "dormant")
        and (not nccl.interfaces or name in nccl.interfaces)
        and (addresses := _reachable(device, nccl))
        and (name in nccl.interfaces or _outward(name, network, some_hardware))
    ]


def _reachable(device: NetDevice, nccl: Nccl) -> list[Interface]:
    """Return the addresses that another host can reach, IPv4 first: NCCL takes the first one of an interface."""
    own = [ip_interface(text) for text in device.addresses]
    usable = [each for each in own if not (each.is_link_local or each.is_loopback or each.is_multicast)]
    inside = [each for each in usable if not nccl.subnets or any(each.ip in ip_network(net) for net in nccl.subnets)]
    return sorted(inside, key=lambda each: each.version)


def _outward(name: str, network: Network, some_hardware: bool) -> bool:
    """Tell whether the interface leads out of the node. In a container, no device shows its driver: there, every
    interface counts except bridges, docker* and veth*.
    """
    device = network.devices[name]
    if name in network.default or network.ssh in {text.partition("/")[0] for text in device.addresses}:
        return True
    if some_hardware:
        return _hardware(name, network)
    return device.kind != "bridge" and not name.startswith(("docker", "veth"))


def _hardware(name: str, network: Network) -> bool:
    """Tell whether the interface is hardware, or is built on it. The node's lists of lower devices may form a loop."""
    waiting, seen = [name], {name}
    while waiting:
        device = network.devices.get(waiting.pop())
        if device is not None and device.driver:
            return True
        below = [] if device is None else [lower for lower in device.lower if lower not in seen]
        waiting += below
        seen.update(below)
    return False


def _chosen(name: str, found: Mapping[str, list[Wire]], state: NodeState, nccl: Nccl) -> Wires:
    wires = found[name]
    if not isinstance(state.network, Network):
        why = f" ({state.network.unknown})" if state.network else ""
        return Wires(problem=f"the network of the node could not be read{why}")
    if not wires:
        return Wires(problem=_nothing(state.network, nccl))
    if nccl.interfaces:
        return Wires(tuple(sorted(wires, key=lambda wire: nccl.interfaces.index(wire.netdev))))
    if nccl.subnets:
        return _by_subnet(wires, nccl)
    if len(wires) == 1:
        return Wires((wires[0],))
    others = [{each.address.network for each in theirs} for host, theirs in found.items() if host != name]
    shared = [wire for wire in wires if all(wire.address.network in theirs for theirs in others)]
    if others and len(shared) == 1:
        return Wires((shared[0],))
    listed = ", ".join(map(str, shared or wires))
    networks = list(dict.fromkeys(str(wire.address.network) for wire in shared or wires))
    way = (
        f"name one network, such as nccl: {{subnets: [{networks[0]}]}}"
        if len(networks) > 1
        else f"name one interface, such as nccl: {{interfaces: [{(shared or wires)[0].netdev}]}}"
    )
    if others and not shared:
        return Wires(problem=f"the hosts share no network, and this one has several interfaces ({listed}): {way}")
    return Wires(problem=f"several interfaces could carry NCCL over TCP ({listed}): {way}")


def _by_subnet(wires: list[Wire], nccl: Nccl) -> Wires:
    """Return one interface for each network of the spec in which the node has one."""
    chosen: list[Wire] = []
    for subnet in nccl.subnets:
        inside = [wire for wire in wires if wire.address.ip in ip_network(subnet)]
        if len(inside) > 1:
            listed = ", ".join(map(str, inside))
            way = "name a smaller network, or one of them in nccl.interfaces"
            return Wires(problem=f"several interfaces have an address in {subnet} ({listed}): {way}")
        chosen += [wire for wire in inside if wire not in chosen]
    return Wires(tuple(chosen))


def _nothing(network: Network, nccl: Nccl) -> str:
    has = ", ".join(
        f"{name} {' '.join(device.addresses) or 'without an address'}{' (down)' * (device.state == 'down')}"
        for name, device in network.devices.items()
        if name != "lo"
    )
    limits = (("nccl.subnets", nccl.subnets), ("nccl.interfaces", nccl.interfaces))
    which = " and ".join(f"{key} ({', '.join(values)})" for key, values in limits if values)
    lacks = f"matches {which}" if which else "leads to other hosts"
    return f"no active interface {lacks} (the node has {brief(has, 400) or 'none'})"


def settings_for(wires: tuple[Wire, ...], state: NodeState) -> tuple[dict[str, str], dict[str, str]]:
    """Return NCCL's variables, and those that PyTorch reads only from the environment."""
    names = ",".join(wire.netdev for wire in wires)
    found = {"NCCL_SOCKET_IFNAME": f"={names}"}
    if wires[0].address.version == 6:
        found["NCCL_SOCKET_FAMILY"] = "AF_INET6"
    if any(port.state == "ACTIVE" and port.link_layer in ("InfiniBand", "Ethernet") for port in ports(state)):
        found["NCCL_IB_DISABLE"] = "1"
    return found, {"GLOO_SOCKET_IFNAME": names}


def plugin_notes(state: NodeState) -> Iterator[str]:
    """Yield notes on a cloud's NCCL plugins, which gpuready does not configure."""
    network = state.network if isinstance(state.network, Network) else Network()
    seen = {path: next(name for part, name in _PLUGINS.items() if part in path) for path in network.plugins}
    efa = [name for name, driver in network.rdma_drivers.items() if driver == "efa"]
    if efa:
        where = [path for path in seen if "ofi-nccl" in path]
        have = f"is in {where[0]}" if where else "was not found: install it with AWS's EFA installer"
        yield (
            f"EFA ({', '.join(efa)}): NCCL uses it through the aws-ofi-nccl plugin, which {have}; jobs need its lib "
            "folder in LD_LIBRARY_PATH, and FI_PROVIDER=efa; NCCL then uses the interface only for its bootstrap"
        )
    for path, name in seen.items():
        if "ofi-nccl" not in path:
            yield f"{path}: Google's {name} plugin; its own script sets NCCL's variables; gpuready does not change them"
    gve = [name for name, device in network.devices.items() if device.driver == "gve"]
    if gve and not seen:
        yield f"gVNIC ({', '.join(gve)}) without a GPUDirect-TCPX plugin: NCCL uses plain TCP"
