"""The NCCL settings of a node, from the ports of its fabric and the oldest NCCL that jobs use.

NCCL 2.21 and newer gets a range of addresses, which stays valid when GID indexes change. Older versions have one GID
index for all ports, so it must be the same on each. HCAs are named exactly (``=``): otherwise a name is a prefix, and
mlx5_1 also selects mlx5_10. Source: NCCL's user guide, environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network

from gpuready.network.discovery import Choices, Chosen, choose
from gpuready.network.gid import taken
from gpuready.spec.model import Nccl
from gpuready.state.model import NodeState

Range = IPv4Network | IPv6Network
_MOST_DEVICES = 32
_PLAIN = re.compile(r"[A-Za-z0-9_.:/@%+=,-]+")

ASSUMED = (
    "NCCL 2.21 or newer is assumed; an older one ignores the range and takes GID index 0: "
    "name the oldest that jobs use in nccl.version"
)


@dataclass(frozen=True)
class Settings:
    """The settings. ``variables``: in the order in which they are written, with the values that NCCL sees.

    ``choices``: the choice for each port. ``fabric``: the ports that ``variables`` name, also those that are down,
    which NCCL skips. ``problems``: why there are no settings; ``variables`` is then empty.
    """

    choices: Choices
    fabric: tuple[Chosen, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Problem(Exception):
    """The reason why no setting is correct."""


def settings(state: NodeState, nccl: Nccl) -> Settings:
    """Return the settings of one node, or all the problems that prevent them."""
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
    down = [f"{r.port.name} is listed and cannot be used: {r.reason}" for r in choices.refused if r.port.name in names]
    return Settings(choices, fabric, {**variables, **nccl.extra}, (), (*down, *notes))


def _doubts(wanted: Choices, nccl: Nccl, state: NodeState) -> Iterator[str]:
    """List ports that may belong to the fabric. A port without an address does not, unless the spec names it."""
    serious = ("several", "unknown", "none") if nccl.interfaces else ("several", "unknown")
    found = [f"{r.port.name}: {r.reason}" for r in wanted.refused if r.why in serious]
    if found or wanted.chosen:
        yield from found
    elif wanted.refused:
        listed = "; ".join(f"{r.port.name}: {r.reason}" for r in wanted.refused)
        yield f"no RDMA port of this node is the fabric's ({listed})"
    elif state.rdma_stuck:
        yield f"the RDMA devices were not read: {state.rdma_stuck}"
    else:
        elsewhere = ", or it was moved into a container's network namespace" if state.ib_netns_mode == "N" else ""
        yield f"there is no RDMA device on this node (is its driver loaded?{elsewhere})"


def _variables(fabric: tuple[Chosen, ...], nccl: Nccl) -> tuple[dict[str, str], list[str]]:
    kinds = {each.port.transport: each.port.name for each in fabric}
    if len(kinds) > 1:
        listed = " and ".join(f"{name} is {kind}" for kind, name in kinds.items())
        raise _Problem(f"NCCL does not mix transports ({listed}): name those of the fabric in nccl.interfaces")
    if len(fabric) > _MOST_DEVICES:
        raise _Problem(f"{len(fabric)} ports, and NCCL takes {_MOST_DEVICES} at most: name them in nccl.interfaces")
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
        return {}, ["no port has an IP address: NCCL takes another interface for its bootstrap"]
    found = {"NCCL_SOCKET_IFNAME": f"={first.netdev}"}
    return (found if first.address.version == 4 else {**found, "NCCL_SOCKET_FAMILY": "AF_INET6"}), []


def _index(fabric: tuple[Chosen, ...], version: str) -> dict[str, str]:
    indexes = sorted({each.gid_index for each in fabric if each.gid_index is not None})
    if len(indexes) > 1:
        listed = ", ".join(f"{each.port.name}: {each.gid_index}" for each in fabric)
        way = "name ports with one index in nccl.interfaces, or use NCCL 2.21 or newer"
        raise _Problem(f"the GID index differs ({listed}), and NCCL {version} has one for all: {way}")
    return {"NCCL_IB_GID_INDEX": str(indexes[0])}


def _addressing(fabric: tuple[Chosen, ...], nccl: Nccl) -> dict[str, str]:
    families = {each.address.version for each in fabric if each.address is not None}
    if len(families) > 1:
        listed = ", ".join(f"{each.port.name}: {each.address}" for each in fabric)
        raise _Problem(f"NCCL takes one family of addresses ({listed}): name the networks of one in nccl.subnets")
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
        "one range must hold an address of each port and no other: name fewer networks in nccl.subnets"
    )


def _common(networks: list[Range]) -> Range | None:
    """Return the smallest network that contains them all; None for all addresses, which NCCL treats as no range."""
    first, *rest = networks
    while not all(isinstance(net, type(first)) and net.subnet_of(first) for net in rest):  # type: ignore[arg-type]
        first = first.supernet()
    return first if first.prefixlen else None
