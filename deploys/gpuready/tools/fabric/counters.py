"""What a port's counters say about a test: did its bytes really go by RDMA?

Units: Documentation/ABI/stable/sysfs-class-infiniband (port_*_data counts words of 4 bytes), the drivers' own
hw_counters tables for the rest. Which counters a driver has is told by their names, never by the device's: devices are
renamed. A netdev's byte counters help only where they leave RDMA out, as mlx5's do; soft RoCE sends its packets through
the netdev itself, and what irdma's, bnxt_re's and others' netdevs count differs from one release to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Counters = Mapping[str, int]
#: Out, in, and how many bytes one of it is; the first pair of which a port has both counts. Several names are added up.
_BYTES = (
    (("counters/port_xmit_data",), ("counters/port_rcv_data",), 4),
    (
        ("hw_counters/ip4OutOctets", "hw_counters/ip6OutOctets"),
        ("hw_counters/ip4InOctets", "hw_counters/ip6InOctets"),
        1,
    ),
    (("hw_counters/tx_bytes",), ("hw_counters/rx_bytes",), 1),
)
_PACKETS = (
    (("counters/port_xmit_packets",), ("counters/port_rcv_packets",), 1),
    (("hw_counters/sent_pkts",), ("hw_counters/rcvd_pkts",), 1),
    (("hw_counters/ip4OutPkts", "hw_counters/ip6OutPkts"), ("hw_counters/ip4InPkts", "hw_counters/ip6InPkts"), 1),
    (("hw_counters/tx_pkts",), ("hw_counters/rx_pkts",), 1),
)
_NETDEV = ("net/tx_bytes", "net/rx_bytes")
#: Drivers whose netdev counts nothing that RDMA sends.
_APART = ("mlx5_core",)
#: Below this many bytes the handshake over TCP would weigh too much in the netdev's counters.
_ENOUGH = 10 << 20


@dataclass(frozen=True)
class Snapshot:
    """One port at one moment: ``counters/NAME``, ``hw_counters/NAME`` and ``net/NAME`` by name."""

    driver: str
    values: Counters


@dataclass(frozen=True)
class Moved:
    """The least that a test must have moved out of a port and into it: packets, and bytes."""

    out_packets: int
    out_bytes: int
    in_packets: int
    in_bytes: int


@dataclass(frozen=True)
class Proof:
    """``proved`` is None where the port has no counters that could tell; ``text`` is one short sentence."""

    proved: bool | None
    text: str


def read(text: str, driver: str) -> Snapshot:
    """``grep -H ''`` over the port's counter files and its netdev's statistics; what is no number is left out."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        path, _, value = line.partition(":")
        parts = path.split("/")
        if value.strip().isdecimal() and len(parts) > 2:
            folder = "net" if parts[-2] == "statistics" else parts[-2]
            values[f"{folder}/{parts[-1]}"] = int(value)
    return Snapshot(driver, values)


def judge(before: Snapshot, after: Snapshot, moved: Moved) -> Proof:
    """Held against each other: what the port's counters gained, and what the test says it moved."""
    found = _gained(before, after, _BYTES)
    unit, wanted = "B", (moved.out_bytes, moved.in_bytes)
    if found is None:
        found = _gained(before, after, _PACKETS)
        unit, wanted = "packets", (moved.out_packets, moved.in_packets)
    if found is None:
        return Proof(None, f"the driver ({after.driver or 'unknown'}) has no counters of bytes or packets")
    names, gained = found
    told = f"{names}: sent {gained[0]} {unit} (at least {wanted[0]} of the test), received {gained[1]} ({wanted[1]})"
    if gained[0] < wanted[0] or gained[1] < wanted[1]:
        return Proof(False, f"{told}: the bytes did not go through this port")
    beside = _beside(before, after, moved)
    return Proof(not beside, f"{told}{beside}")


def _gained(
    before: Snapshot, after: Snapshot, table: tuple[tuple[tuple[str, ...], tuple[str, ...], int], ...]
) -> tuple[str, tuple[int, int]] | None:
    for out, into, unit in table:
        if all(any(name in shot.values for name in names) for names in (out, into) for shot in (before, after)):
            deltas = [
                sum(after.values.get(n, 0) - before.values.get(n, 0) for n in names) * unit for names in (out, into)
            ]
            return f"{out[0]}, {into[0]}", (deltas[0], deltas[1])
    return None


def _beside(before: Snapshot, after: Snapshot, moved: Moved) -> str:
    """What the netdev moved, where that says something: as many bytes as the test's were not sent by RDMA."""
    if after.driver not in _APART or not all(name in shot.values for name in _NETDEV for shot in (before, after)):
        return ""
    for name, payload in zip(_NETDEV, (moved.out_bytes, moved.in_bytes), strict=True):
        gained = after.values[name] - before.values[name]
        if payload >= _ENOUGH and gained >= payload // 2:
            return f"; but the netdev's {name[4:]} grew by {gained} too, so something went through the kernel's network"
    return ""
