"""NCCL's settings for what a container shows. ``gpuready render pod-check`` puts this module into its file, with those
that it imports: so it runs on a Python without any package, and the rules are those of ``gpuready nccl``.

A container may show more in /sys than it can use: RDMA devices whose file in /dev it was not given, and GIDs of network
interfaces that are in the network namespace of the host. Neither counts here.
Sources: netdevice(7) for the ioctls (linux/sockios.h); /proc/net/if_inet6 as net/ipv6/addrconf.c prints it.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from gpuready.model.network import Network, network, rdma_files
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_settings import Settings, assignment, cluster, no_device
from gpuready.network.ports import ports
from gpuready.network.rdma_choice import Choices, local

_ADDRESS, _NETMASK = 0x8915, 0x891B
_LACKING = "this container has no RDMA device that it can use"
_TCP = "; for TCP instead: nccl: {transport: tcp}"
_UNKNOWN = "the addresses of the interfaces are unknown: here is neither ip(8) nor Python 3.10 or newer"
_PARTS = {"mode", "devices", "ports", "addresses", "network"}
_IPV6 = re.compile(r"([0-9a-f]{32}) [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ +(\S+)")


def found_in(text: str, spec: NodeSpec) -> Settings:
    """Return the settings. ``text``: what the file's option --read printed: its parts, each below ``[NAME]``."""
    text = text.replace("\r", "").rstrip() + "\n"
    parts = dict(re.findall(r"^\[(\w+)\]\n((?:(?!\[\w+\]$).*\n)*)", text, re.MULTILINE))
    if not text.endswith("\n[end]\n") or not parts.keys() >= _PARTS:
        return Settings(Choices(()), problems=("this is not the whole output of --read",))
    usable = parts.get("devices", "").split()
    rdma = {path: value for path, value in rdma_files(parts.get("ports", "")).items() if path.split("/")[4] in usable}
    seen, mode = network(parts.get("network", "")), parts.get("mode", "").strip()
    state = NodeState(rdma=rdma, network=seen, ib_netns_mode=mode)
    left = _without_the_hosts(state, seen, _held(seen, parts.get("addresses", "")))
    state = NodeState(rdma=left, network=seen, ib_netns_mode=mode)
    return _of_a_container(cluster({"": state}, {"": spec})[""], state, seen)


def _of_a_container(found: Settings, state: NodeState, seen: Network) -> Settings:
    """Return the settings with messages for a container: it may lack what its node has."""
    of_node, known = no_device(state), any(device.addresses for device in seen.devices.values())
    problems = (_LACKING + _TCP if each == of_node else each.replace(of_node, _LACKING) for each in found.problems)
    return replace(
        found,
        problems=tuple(each if known else f"{each}; {_UNKNOWN}" for each in problems),
        notes=(*(each.replace(of_node, _LACKING) for each in found.notes), *(() if known else (_UNKNOWN,))),
    )


def _held(seen: Network, text: str) -> dict[str, set[str]]:
    """Return the addresses by interface. IPv4 addresses whose interface is unknown count for each; empty: unknown."""
    if any(device.addresses for device in seen.devices.values()):
        return {name: {each.partition("/")[0] for each in d.addresses} for name, d in seen.devices.items()}
    lines = text.splitlines()
    everywhere = {line for line in lines if " " not in line}
    named = [(m[3], str(IPv6Address(bytes.fromhex(m[1])))) for m in map(_IPV6.fullmatch, lines) if m]
    return {name: everywhere | {a for on, a in named if on == name} for name in seen.devices} if lines else {}


def _without_the_hosts(state: NodeState, seen: Network, held: dict[str, set[str]]) -> dict[str, str]:
    """Return the files of the RDMA ports without the GIDs of interfaces that the container does not have. An interface
    of the host may have the same name: then its address tells. Of such a port, link-local GIDs are the host's, too.
    """
    hidden: set[str] = set()
    for port in ports(state):
        if port.transport != "RoCE":
            continue
        addressed = [gid for gid in port.gids if not local(gid.address)]
        theirs = {
            g for g in addressed if g.netdev not in seen.devices or (held and str(g.address) not in held[g.netdev])
        }
        gone = port.gids if theirs and len(theirs) == len(addressed) else theirs
        top = f"/sys/class/infiniband/{port.device}/ports/{port.number}"
        hidden |= {
            f"{top}/{place}/{gid.index}"
            for gid in port.gids
            if gid in gone or gid.netdev not in seen.devices
            for place in ("gids", "gid_attrs/types", "gid_attrs/ndevs")
        }
    return {path: value for path, value in state.rdma.items() if path not in hidden}


def told(found: Settings) -> Iterator[str]:
    """Yield the settings as lines for a shell, with the ports, or why there are none, as comments."""
    yield from (f"# {port.port.name} is not used: {port.reason}" for port in found.choices.refused)
    yield from (f"# note: {note}" for note in found.notes)
    for each in found.choices.chosen if found.fabric else ():
        gid = "" if each.gid_index is None else f", GID {each.gid_index}"
        yield f"# {each.port.name}: {each.address or 'no IP address'}{gid}"
    for name, value in {**found.variables, **found.environment}.items():
        yield f"export {assignment(name, value)}"


def addresses() -> Iterator[str]:
    """Yield the addresses of this container's interfaces in the form of ``ip -o addr``, for images without it."""
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for index, name in socket.if_nameindex():
            request = name.encode().ljust(256, b"\0")
            try:
                address, mask = (
                    IPv4Address(fcntl.ioctl(asking, what, request)[20:24]) for what in (_ADDRESS, _NETMASK)
                )
            except OSError:  # it has no IPv4 address
                continue
            yield f"{index}: {name}    inet {address}/{int(mask).bit_count()}"
    try:
        lines = Path("/proc/net/if_inet6").read_text("ascii").splitlines()
    except OSError:  # without IPv6
        return
    for line in lines:
        if m := _IPV6.fullmatch(line):
            yield f"0: {m[3]}    inet6 {IPv6Address(bytes.fromhex(m[1]))}/{int(m[2], 16)}"


def main(words: Sequence[str], spec: NodeSpec) -> int:
    """Print the addresses, if the word says so, else the settings for what comes from stdin. Exit code: 0 or 1."""
    found = None if words else found_in(sys.stdin.read(), spec)
    for line in told(found) if found else addresses():
        print(line)
    for problem in found.problems if found else ():
        print(problem, file=sys.stderr)
    return 1 if found and found.problems else 0
