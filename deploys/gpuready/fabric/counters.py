"""Prove from a port's counters that the bytes of a test went by RDMA.

Units: Documentation/ABI/stable/sysfs-class-infiniband (port_*_data counts words of 4 bytes), the drivers' own
hw_counters tables for the rest. The names of the counters identify the driver's set, not the device's name, which may
change. A netdev's byte counters help only if they exclude RDMA, as those of mlx5 do. Soft RoCE sends through the netdev
itself, and netdevs of irdma, bnxt_re and others count differently in different releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Counters = Mapping[str, int]
#: (out, in, bytes of one unit). The first row whose counters a port has is used. Several names are added up.
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
_NETDEV = ((("net/tx_bytes",), ("net/rx_bytes",), 1),)
#: Drivers whose netdev counters exclude RDMA.
_APART = ("mlx5_core",)
#: Below this many bytes, the TCP handshake is too large a part of the netdev's counters.
_ENOUGH = 10 << 20


@dataclass(frozen=True)
class Snapshot:
    """The counters of one port at one moment: ``counters/NAME``, ``hw_counters/NAME`` and ``net/NAME``."""

    driver: str
    values: Counters


@dataclass(frozen=True)
class Moved:
    """The minimum that a test must have moved out of a port and into it, in packets and bytes."""

    out_packets: int
    out_bytes: int
    in_packets: int
    in_bytes: int


@dataclass(frozen=True)
class Proof:
    """The result of the comparison. ``proved`` is None if the port has no suitable counters."""

    proved: bool | None
    text: str


def read(text: str, driver: str) -> Snapshot:
    """Parse ``grep -H ''`` of the port's counter files and its netdev's statistics; ignore what is not a number."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        path, _, value = line.partition(":")
        parts = path.split("/")
        if value.strip().isdecimal() and len(parts) > 2:
            folder = "net" if parts[-2] == "statistics" else parts[-2]
            values[f"{folder}/{parts[-1]}"] = int(value)
    return Snapshot(driver, values)


def judge(before: Snapshot, after: Snapshot, moved: Moved) -> Proof:
    """Compare the growth of the port's counters with what the test moved."""
    found = _gained(before, after, _BYTES)
    unit, wanted = "B", (moved.out_bytes, moved.in_bytes)
    if found is None:
        found = _gained(before, after, _PACKETS)
        unit, wanted = "packets", (moved.out_packets, moved.in_packets)
    if found is None:
        return Proof(None, f"the driver ({after.driver or 'unknown'}) has no counters of bytes or packets")
    names, gained = found
    text = f"{names}: sent {gained[0]} {unit} (the test needs {wanted[0]}), received {gained[1]} ({wanted[1]})"
    if gained[0] < wanted[0] or gained[1] < wanted[1]:
        return Proof(False, f"{text}: the bytes did not go through this port")
    beside = _beside(before, after, moved)
    return Proof(not beside, f"{text}{beside}")


def judge_netdev(before: Snapshot, after: Snapshot, moved: Moved) -> Proof:
    """Compare the growth of the interface's counters with what a test over TCP moved."""
    found = _gained(before, after, _NETDEV)
    if found is None:
        return Proof(None, "the interface has no counters")
    sent, received = found[1]
    text = f"sent {sent} B (the test needs {moved.out_bytes}), received {received} ({moved.in_bytes})"
    if sent < moved.out_bytes or received < moved.in_bytes:
        return Proof(False, f"{text}: the bytes did not go through this interface")
    return Proof(True, text)


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
    """Say if the netdev moved as many bytes as the test: these did not go by RDMA."""
    found = _gained(before, after, _NETDEV) if after.driver in _APART else None
    sent, received = found[1] if found else (0, 0)
    for name, payload, gained in (("tx", moved.out_bytes, sent), ("rx", moved.in_bytes, received)):
        if payload >= _ENOUGH and gained >= payload // 2:
            return (
                f"; but {name}_bytes of the netdev also grew by {gained}: data went through the kernel's network stack"
            )
    return ""
