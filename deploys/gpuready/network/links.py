"""Pair the ports of two hosts for a test, and say why a port has no partner.

A port is paired with the port on the same network if each host has exactly one there; else with the port of the same
name; else by order. Ports of other networks and iWARP ports take no part. Interfaces for TCP are paired alike.
"""

from collections import Counter
from dataclasses import dataclass

from gpuready.base.part import Count, Part
from gpuready.model.state import Docker, NodeState
from gpuready.network.rdma_choice import Choices, Chosen, Refused
from gpuready.network.tcp_choice import Wire, Wires

Candidate = Chosen | Refused


@dataclass(frozen=True)
class End(Part):
    """One port of one host in a test."""

    host: str
    """The host."""
    device: str
    """The RDMA device; in a test of TCP, the network interface."""
    port: Count
    """The port of the device; 0: a test of TCP."""
    netdev: str = ""
    """The network interface of the port; empty: it has none."""
    address: str = ""
    """The address of the port; empty: it has none."""
    gid_index: int | None = None
    """The GID index of that address; null: InfiniBand or TCP."""
    line_gbps: float | None = None
    """The line rate in Gbit/s; null: unknown."""
    mtu: Count = 0
    """The MTU of the network interface; 0: unknown."""

    @property
    def over_tcp(self) -> bool:
        """Whether this is an interface for TCP, not a port of an RDMA device."""
        return not self.port

    def __str__(self) -> str:
        return f"{self.host} {self.device}" if self.over_tcp else f"{self.host} {self.device}:{self.port}"


@dataclass(frozen=True)
class Link:
    """Two ports that are paired. ``obstacle`` says why they cannot be tested; empty if they can."""

    server: End
    client: End
    obstacle: str = ""

    @property
    def ends(self) -> tuple[End, End]:
        return self.server, self.client


@dataclass(frozen=True)
class Unpaired:
    """A port without a partner on the host ``other``."""

    end: End
    other: str
    reason: str


def links(server: str, of_server: Choices, client: str, of_client: Choices) -> tuple[list[Link], list[Unpaired]]:
    """Return all links between two hosts, in the order of the server's ports, and the ports without a partner."""
    here, there = _candidates(of_server), _candidates(of_client)
    pairs = [(a, b) for a, b in _matched(here, there) if _meant(a) or _meant(b)]
    found = [_link(server, a, client, b) for a, b in pairs]
    alone = []
    for host, other, ports in ((server, client, here), (client, server, there)):
        alone += [Unpaired(_end(host, each), other, _why(each)) for each in _unpaired(ports, pairs)]
    return found, alone


def loops(host: str, choices: Choices) -> list[Link]:
    """Return a link of each port of the fabric to itself; it needs no IP address."""
    ports = [(_end(host, each), each) for each in _candidates(choices) if _meant(each)]
    return [Link(end, end, f"{end}: {each.reason}" if isinstance(each, Refused) else "") for end, each in ports]


def tcp_links(server: str, of_server: Wires, client: str, of_client: Wires) -> list[Link]:
    """Return the links over TCP: interfaces in one network, else by order; or one link that says what is missing."""
    sides = ((server, of_server), (client, of_client))
    if problems := [f"{host}: {found.problem}" for host, found in sides if found.problem]:
        ends = [wire_end(host, found.wires[0]) if found.wires else End(host, "tcp", 0) for host, found in sides]
        return [Link(ends[0], ends[1], "; ".join(problems))]
    facing = list(of_client.wires)
    made = []
    for mine in of_server.wires:
        same = [wire for wire in facing if wire.address.network == mine.address.network] or facing
        if same:
            made.append(Link(wire_end(server, mine), wire_end(client, same[0])))
            facing.remove(same[0])
    return made


def wire_end(host: str, wire: Wire) -> End:
    """Return the interface as an end of a link over TCP."""
    return End(host, wire.netdev, 0, wire.netdev, str(wire.address.ip), None, wire.line_gbps, wire.mtu)


def _meant(each: Candidate) -> bool:
    """Tell whether the port belongs to the fabric, even if it is down."""
    return isinstance(each, Chosen) or each.fabric


def _candidates(choices: Choices) -> list[Candidate]:
    return [each for each in choices.ports if isinstance(each, Chosen) or each.why not in ("unwanted", "iwarp")]


def _matched(here: list[Candidate], there: list[Candidate]) -> list[tuple[Candidate, Candidate]]:
    rails = _only(here).keys() & _only(there).keys()
    pairs = [(_only(here)[network], _only(there)[network]) for network in rails]
    left, facing = _unpaired(here, pairs), _unpaired(there, pairs)
    named = {b.port.name: b for b in facing}
    pairs += [(a, named[a.port.name]) for a in left if a.port.name in named]
    pairs += list(zip(_unpaired(here, pairs), _unpaired(there, pairs), strict=False))
    return sorted(pairs, key=lambda pair: next(i for i, a in enumerate(here) if a is pair[0]))


def _unpaired(ports: list[Candidate], pairs: list[tuple[Candidate, Candidate]]) -> list[Candidate]:
    return [each for each in ports if not any(each is a or each is b for a, b in pairs)]


def _only(ports: list[Candidate]) -> dict[str, Candidate]:
    """Return the port of each network on which this host has exactly one."""
    on = [(each.network, each) for each in ports if isinstance(each, Chosen) and each.network]
    seen = Counter(network for network, _ in on)
    return {network: each for network, each in on if seen[network] == 1}


def _end(host: str, each: Candidate) -> End:
    port = each.port
    # InfiniBand reports its rate correctly, and a port without IPoIB has no netdev that could.
    line = port.line_gbps or (port.rate_gbps if port.transport == "InfiniBand" else None)
    if isinstance(each, Refused):
        return End(host, port.device, port.number, port.netdev, line_gbps=line, mtu=port.mtu)
    address = "" if each.address is None else str(each.address)
    return End(host, port.device, port.number, each.netdev, address, each.gid_index, line, port.mtu)


def _link(server: str, a: Candidate, client: str, b: Candidate) -> Link:
    ends = _end(server, a), _end(client, b)
    refused = [f"{end}: {each.reason}" for end, each in zip(ends, (a, b), strict=True) if isinstance(each, Refused)]
    if not refused:
        why = "no IP address for the test to connect to (IPoIB is not configured)"
        refused = [f"{end}: {why}" for end in ends if not end.address]
    return Link(*ends, "; ".join(refused))


def _why(each: Candidate) -> str:
    return each.reason if isinstance(each, Refused) else "the other host has no port left for it"


def remarks(state: NodeState, found: Choices) -> list[str]:
    """Return notes that explain a node's figures: it has no port, or other work runs there."""
    told = []
    if not found.chosen:
        stuck = f"the RDMA devices could not be read: {state.rdma_stuck}" if state.rdma_stuck else ""
        why = [f"{each.port.name}: {each.reason}" for each in found.refused]
        why = why or [stuck or "the node has no RDMA device"]
        told.append(f"no port of the fabric: {'; '.join(why)}")
    return [*told, *at_work(state)]


def at_work(state: NodeState) -> list[str]:
    """Return a note if other work on the node may distort the figures."""
    containers = state.docker.containers if isinstance(state.docker, Docker) else ()
    busy = [each.name for each in containers if each.gpu]
    if not busy:
        return []
    return [f"GPU containers run here ({', '.join(busy)}): figures may be low, and the test slows their traffic"]
