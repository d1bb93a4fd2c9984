"""Replay which GID NCCL 2.21 or newer selects from a port, so that gpuready can verify a setting before it writes it.

NCCL starts with the GID at index 0 and compares it with each later one. Only a GID of the wanted family and
range can replace the current one: always if the current one is of another family, otherwise only if it has the wanted
RoCE version and the current one does not. So if a range contains two addresses of one port, NCCL takes the first. If
the GID at index 0 has the wanted family and version, NCCL keeps it even outside of the range.
Source: NCCL's src/transport/net_ib/connect.cc (2.30).
"""

from ipaddress import IPv4Network, IPv6Network, ip_network

from gpuready.network.ports import Gid, Port

_LINK_LOCAL = ip_network("fe80::/64")


def taken(port: Port, family: int, within: IPv4Network | IPv6Network | None) -> Gid | None:
    """Return the GID that NCCL would use with that NCCL_IB_ADDR_RANGE. ``family`` is 4 or 6. None: an empty slot."""
    table = {gid.index: gid for gid in port.gids}
    here = table.get(0)
    for index in range(1, max(table, default=0) + 2):
        gid = table.get(index)
        if _family(gid) != family or not _inside(gid, within):
            continue
        if _family(here) != family or (_is_v2(gid) and not _is_v2(here)):
            here = gid
    return here


def _family(gid: Gid | None) -> int:
    """Return the address family. An empty slot counts as IPv6."""
    return 6 if gid is None else gid.address.version


def _is_v2(gid: Gid | None) -> bool:
    """Tell whether NCCL accepts the GID: RoCE v2 and not link-local. To NCCL, only IPv6 addresses are link-local."""
    return gid is not None and gid.version == "v2" and gid.address not in _LINK_LOCAL


def _inside(gid: Gid | None, within: IPv4Network | IPv6Network | None) -> bool:
    return within is None or (gid is not None and gid.address in within)
