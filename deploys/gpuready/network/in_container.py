"""NCCL's settings for what a container shows. ``gpuready render pod-check`` puts this module into its file, with those
that it imports: so it runs on a Python without any package, and the rules are those of ``gpuready nccl``.

A container may show more in /sys than it can use: RDMA devices whose file in /dev it was not given, and GIDs of network
interfaces that are in the network namespace of the host. Neither counts here.
Sources: netdevice(7) for the ioctls (linux/sockios.h); /proc/net/if_inet6 as net/ipv6/addrconf.c prints it.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from gpuready.model.network import Network, network, rdma_files
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_settings import Settings, assignment, cluster
from gpuready.network.ports import ports

_ADDRESS, _NETMASK = 0x8915, 0x891B
_IPV6 = re.compile(r"([0-9a-f]{32}) [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ +(\S+)")


def found_in(text: str, spec: NodeSpec) -> Settings:
    """Return the settings. ``text``: what the file's option --read printed: its parts, each below ``[NAME]``."""
    parts = dict(re.findall(r"^\[(\w+)\]\n((?:(?!\[\w+\]$).*\n)*)", text, re.MULTILINE))
    usable = parts.get("devices", "").split()
    rdma = {path: value for path, value in rdma_files(parts.get("ports", "")).items() if path.split("/")[4] in usable}
    seen, mode = network(parts.get("network", "")), parts.get("mode", "").strip()
    left = _without_the_hosts(NodeState(rdma=rdma, network=seen, ib_netns_mode=mode), seen)
    return cluster({"": NodeState(rdma=left, network=seen, ib_netns_mode=mode)}, {"": spec})[""]


def _without_the_hosts(state: NodeState, seen: Network) -> dict[str, str]:
    """Return the files of the RDMA ports without the GIDs of interfaces that the container does not have."""
    hidden = {
        f"/sys/class/infiniband/{port.device}/ports/{port.number}/{place}/{gid.index}"
        for port in ports(state)
        for gid in port.gids
        if port.transport == "RoCE" and gid.netdev not in seen.devices
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
