"""The NCCL settings of a node, from the ports of its fabric and the oldest NCCL that jobs use.

NCCL 2.21 and newer gets a range of addresses, which stays valid when GID indexes change. Older versions have one GID
index for all ports, so it must be the same on each. HCAs are named exactly (``=``): otherwise a name is a prefix, and
mlx5_1 also selects mlx5_10. Nodes without RDMA get the interface for TCP (:mod:`gpuready.network.tcp_choice`).
Source: NCCL's user guide, environment variables.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network

from gpuready.model.network import Network
from gpuready.model.spec import Nccl, NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.gid import taken
from gpuready.network.ports import ports
from gpuready.network.rdma_choice import Choices, Chosen, choose
from gpuready.network.tcp_choice import Wire, Wires, choose_wires, plugin_notes, settings_for

Range = IPv4Network | IPv6Network
_MOST_DEVICES = 32
_PLAIN = re.compile(r"[A-Za-z0-9_.:/@%+=,-]+")

ASSUMED = (
    "assuming NCCL 2.21 or newer; an older NCCL ignores the range and uses GID index 0: set nccl.version to the oldest "
    "version that jobs use"
)


@dataclass(frozen=True)
class Settings:
    """The settings. ``variables``: in the order in which they are written, with the values that NCCL sees.

    ``choices``: the choice for each port. ``fabric``: the ports that ``variables`` name, also those that are down,
    which NCCL skips. ``problems``: why there are no settings; ``variables`` is then empty. ``wires``: the interfaces
    for TCP, if there is no RDMA. ``environment``: what PyTorch does not read from NCCL's file.
    """

    choices: Choices
    fabric: tuple[Chosen, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    wires: tuple[Wire, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


class _Problem(Exception):
    """The reason why no setting is correct."""


def settings(state: NodeState, nccl: Nccl) -> Settings:
    """Return the settings of one node, or all the problems that prevent them."""
    if nccl.transport == "tcp":
        return _over_tcp(choose_wires({"": state}, {"": nccl})[""], state, nccl)
    choices, wanted = choose(state, nccl), choose(state, nccl, as_if_up=True)
    problems = tuple(_doubts(wanted, nccl, state))
    if problems:
        return Settings(choices, problems=problems)
    fabric = wanted.chosen
    try:
        variables, notes = _variables(fabric, nccl)
    except _Problem as e:
        return Settings(choices, problems=(str(e),))
    names = {each.port.name for each in fabric}
    down = [
        f"{r.port.name} is in NCCL_IB_HCA, but cannot be used now: {r.reason}"
        for r in choices.refused
        if r.port.name in names
    ]
    return Settings(choices, fabric, {**variables, **nccl.extra}, (), (*down, *notes))


def cluster(states: Mapping[str, NodeState], specs: Mapping[str, NodeSpec]) -> dict[str, Settings]:
    """Return the settings of hosts that run a job together: over RDMA, or all over TCP if none of them has RDMA."""
    nccl = {name: specs[name].nccl for name in states}
    found = {name: settings(state, nccl[name]) for name, state in states.items()}
    over_tcp = without_rdma(states, specs)
    wires = choose_wires({name: states[name] for name in over_tcp}, nccl)
    for name in over_tcp:
        made = _over_tcp(wires[name], states[name], nccl[name])
        if nccl[name].transport != "tcp" and isinstance(states[name].network, Network):
            why = "; ".join(found[name].problems)
            made = replace(
                made,
                problems=tuple(f"{why}; for TCP: {problem}" for problem in made.problems),
                notes=(f"NCCL over TCP: {why}", *made.notes),
            )
        found[name] = made
    return found


def without_rdma(states: Mapping[str, NodeState], specs: Mapping[str, NodeSpec]) -> list[str]:
    """Return the hosts that use TCP: those whose spec says so, and all hosts if none of them can have RDMA."""
    asked = [name for name in states if specs[name].nccl.transport == "tcp"]
    lacking = [name for name, state in states.items() if name in asked or _no_rdma(state, specs[name])]
    return lacking if len(lacking) == len(states) else asked


def _no_rdma(state: NodeState, spec: NodeSpec) -> bool:
    """Tell whether the node certainly has no RDMA for NCCL. This is uncertain if the spec expects ports, if devices
    could not be read, or if a container may have them (exclusive mode).
    """
    there = ports(state)
    if spec.hardware.rdma.ports:
        return False
    if any(port.transport in ("RoCE", "InfiniBand") for port in there):
        return False
    return bool(there) or not (state.rdma_stuck or state.ib_netns_mode == "N")


def _over_tcp(found: Wires, state: NodeState, nccl: Nccl) -> Settings:
    choices, notes = choose(state, nccl), tuple(plugin_notes(state))
    if found.problem:
        return Settings(choices, problems=(found.problem,), notes=notes)
    variables, environment = settings_for(found.wires, state)
    try:
        _plain(variables)
    except _Problem as e:
        return Settings(choices, problems=(str(e),), notes=notes)
    variables |= nccl.extra
    return Settings(choices, (), variables, (), notes, found.wires, environment)


def assignment(name: str, value: str) -> str:
    """Quote an assignment for any shell: zsh expands a bare ``=NAME`` to the path of a command."""
    return f"{name}='{value}'" if value.startswith("=") and "'" not in value else f"{name}={shlex.quote(value)}"


def _doubts(wanted: Choices, nccl: Nccl, state: NodeState) -> Iterator[str]:
    """List ports that may belong to the fabric. A port without an address does not, unless the spec names it."""
    serious = ("several", "unknown", "none") if nccl.interfaces else ("several", "unknown")
    found = [f"{r.port.name}: {r.reason}" for r in wanted.refused if r.why in serious]
    if found or wanted.chosen:
        yield from found
    elif wanted.refused:
        listed = "; ".join(f"{r.port.name}: {r.reason}" for r in wanted.refused)
        yield f"no RDMA port of this node belongs to the fabric ({listed}); for TCP instead: nccl: {{transport: tcp}}"
    elif state.rdma_stuck:
        yield f"the RDMA devices could not be read: {state.rdma_stuck}"
    else:
        yield no_device(state)


def no_device(state: NodeState) -> str:
    elsewhere = ", or it was moved into a container's network namespace" if state.ib_netns_mode == "N" else ""
    return f"there is no RDMA device on this node: it has no RDMA NIC, or its driver is not loaded{elsewhere}"


def _variables(fabric: tuple[Chosen, ...], nccl: Nccl) -> tuple[dict[str, str], list[str]]:
    kinds = {each.port.transport: each.port.name for each in fabric}
    if len(kinds) > 1:
        listed = " and ".join(f"{name} is {kind}" for kind, name in kinds.items())
        raise _Problem(f"NCCL does not mix transports ({listed}): name those of the fabric in nccl.interfaces")
    if len(fabric) > _MOST_DEVICES:
        raise _Problem(
            f"{len(fabric)} ports, but NCCL uses at most {_MOST_DEVICES}: name the ports to use in nccl.interfaces"
        )
    found = {"NCCL_IB_HCA": "=" + ",".join(each.port.name for each in fabric)}
    notes = []
    if "RoCE" in kinds:
        found |= _addressing(fabric, nccl) if nccl.finds_gid else _index(fabric, str(nccl.version))
        notes += [] if nccl.version else [ASSUMED]
    sockets, note = _sockets(fabric)
    return _plain({**found, **sockets}), [*notes, *note]


def _plain(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables unchanged. Refuse unusual characters: device names of the node go into command lines."""
    for name, value in variables.items():
        if not _PLAIN.fullmatch(value):
            raise _Problem(f"{name} would be {value!a}: devices with such a name cannot be used")
    return variables


def _sockets(fabric: tuple[Chosen, ...]) -> tuple[dict[str, str], list[str]]:
    """Return the setting for the bootstrap: TCP over the first port's netdev. All nodes must use the same network."""
    first = next((each for each in fabric if each.address is not None and each.netdev), None)
    if first is None or first.address is None:
        return {}, ["no port has an IP address: NCCL uses another interface for its bootstrap"]
    found = {"NCCL_SOCKET_IFNAME": f"={first.netdev}"}
    return (found if first.address.version == 4 else {**found, "NCCL_SOCKET_FAMILY": "AF_INET6"}), []


def _index(fabric: tuple[Chosen, ...], version: str) -> dict[str, str]:
    indexes = sorted({each.gid_index for each in fabric if each.gid_index is not None})
    if len(indexes) > 1:
        listed = ", ".join(f"{each.port.name}: {each.gid_index}" for each in fabric)
        way = "name ports with the same index in nccl.interfaces, or use NCCL 2.21 or newer"
        raise _Problem(f"the GID index differs ({listed}), but NCCL {version} has one index for all ports: {way}")
    return {"NCCL_IB_GID_INDEX": str(indexes[0])}


def _addressing(fabric: tuple[Chosen, ...], nccl: Nccl) -> dict[str, str]:
    families = {each.address.version for each in fabric if each.address is not None}
    if len(families) > 1:
        listed = ", ".join(f"{each.port.name}: {each.address}" for each in fabric)
        raise _Problem(f"NCCL uses either IPv4 or IPv6 ({listed}): name networks of one family in nccl.subnets")
    (family,) = families
    within = _range(fabric, nccl, family)
    found = {} if within is None else {"NCCL_IB_ADDR_RANGE": str(within)}
    return found | {"NCCL_IB_ROCE_VERSION_NUM": "2"} | ({"NCCL_IB_ADDR_FAMILY": "AF_INET6"} if family == 6 else {})


def _range(fabric: tuple[Chosen, ...], nccl: Nccl, family: int) -> Range | None:
    """Return the widest sensible range with which NCCL selects the chosen GID on every port."""
    given = [ip_network(text) for text in nccl.subnets]
    used = [net for net in given if any(each.address in net for each in fabric)]
    networks = [ip_network(each.network or str(each.address)) for each in fabric]
    ranges = [_common(nets) for nets in (used, networks, [ip_network(str(each.address)) for each in fabric]) if nets]
    failures = []
    for within in ranges:
        wrong = [each for each in fabric if not _agrees(each, family, within)]
        if not wrong:
            return within
        failures.append(_disagreement(wrong[0], family, within))
    raise _Problem(failures[-1])


def _agrees(each: Chosen, family: int, within: Range | None) -> bool:
    gid = taken(each.port, family, within)
    return gid is not None and (gid.address, gid.netdev, gid.version) == (each.address, each.netdev, "v2")


def _disagreement(each: Chosen, family: int, within: Range | None) -> str:
    gid = taken(each.port, family, within)
    took = f"{gid} (RoCE {gid.version or 'version unknown'})" if gid else "an empty GID"
    return (
        f"{each.port.name}: with NCCL_IB_ADDR_RANGE={within} NCCL takes {took}, not {each.gid_index}: {each.address}; "
        "the range must contain one address of each port and no other: name fewer networks in nccl.subnets"
    )


def _common(networks: list[Range]) -> Range | None:
    """Return the smallest network that contains them all; None for all addresses, which NCCL treats as no range."""
    first, *rest = networks
    while not all(isinstance(net, type(first)) and net.subnet_of(first) for net in rest):  # type: ignore[arg-type]
        first = first.supernet()
    return first if first.prefixlen else None
