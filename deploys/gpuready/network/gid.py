"""Which GID NCCL takes from a port by itself, from 2.21 on: its choice is replayed before it is relied on.

NCCL begins with index 0 and goes up. A GID of the wanted family and range replaces one of another family whatever its
RoCE version is; after that only one of the wanted version replaces one of another version. So a range that holds two
addresses of one port gives the first of them, and a GID at index 0 that is good enough stays, range or not.
Source: NCCL's src/transport/net_ib/connect.cc (2.30).
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

from gpuready.network.ports import Gid, Port

_LINK_LOCAL = ip_network("fe80::/64")


def taken(port: Port, family: int, within: IPv4Network | IPv6Network | None) -> Gid | None:
    """The GID that NCCL would use with that NCCL_IB_ADDR_RANGE; ``family`` is 4 or 6. None: an empty slot."""
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
    """An empty slot counts as IPv6."""
    return 6 if gid is None else gid.address.version


def _is_v2(gid: Gid | None) -> bool:
    """Of the wanted version and good for more than its link; an IPv4 link-local address is, to NCCL."""
    return gid is not None and gid.version == "v2" and gid.address not in _LINK_LOCAL


def _inside(gid: Gid | None, within: IPv4Network | IPv6Network | None) -> bool:
    return within is None or (gid is not None and gid.address in within)
