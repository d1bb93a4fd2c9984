"""Parse the figures that the tools print: rping, perftest (ib_write_bw, ib_read_lat), and the table of nccl-tests.

Formats: librdmacm/examples/rping.c; perftest's text rows (its JSON is invalid before 24.01); nccl-tests' src/util.cu
and doc/PERFORMANCE.md. A missing row gives None: the exit status alone proves nothing (rping exits 0 if its peer stops
in the middle).
"""

import re
from dataclasses import dataclass

from gpuready.base.errors import brief

_NUMBER = r"[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?"
_PING = re.compile(r"^ping data: rdma-ping-(\d+):", re.M)
_BANDWIDTH = re.compile(rf"^[ \t]*(\d+)[ \t]+(\d+)[ \t]+({_NUMBER})[ \t]+({_NUMBER})[ \t]+({_NUMBER})[ \t\r]*$", re.M)
#: If the cycle counters of the CPUs differ, perftest prints negative columns or nan (linux-rdma/perftest#82).
_ANY = rf"[ \t]+(?:-?{_NUMBER}|-?nan)"
_TIME = rf"[ \t]+({_NUMBER})"
_LATENCY = re.compile(rf"^[ \t]*(\d+)[ \t]+(\d+){_ANY * 2}{_TIME * 2}{_ANY}{_TIME}{_ANY}[ \t\r]*$", re.M)
_CHECKED = rf"{_NUMBER}|-?nan"
_COLLECTIVE = re.compile(
    r"^[ \t]*(\d+)[ \t]+(\d+)[ \t]+(\w+)[ \t]+(\w+)[ \t]+(-?\d+)[ \t]+"
    rf"({_NUMBER})[ \t]+({_NUMBER})[ \t]+({_NUMBER})[ \t]+(\S+)(?:(?:[ \t]+\S+){{3}}[ \t]+(\S+))?",
    re.M,
)
#: Decoration of perftest's output, what rping prints on every exit, NCCL's log: never part of an error message.
_NOISE = re.compile(
    r"^(-+|.*RDMA_(Write|Read) (BW|Latency) Test.*|.*(Dual-port|Number of qps|Connection type|Using SRQ|PCIe relax|"
    r"ibv_wr\* API|CQ Moderation|Link type|Mtu |GID index|Max inline|rdma_cm QPs|Data ex\. method|TX depth|"
    r"Outstand).*:.*|"
    r"\s*WARNING: BW peak won't be measured.*|\*+|.*Device not recognized to implement inline feature.*|"
    r"\s*(local|remote) address:.*|\s*GID:.*|.*Waiting for client.*|.*Please run the same command.*|.*#bytes.*|"
    r".*\[[0-9]+\] NCCL INFO .*|"
    r"ping data:.*|server ping data:.*|.*DISCONNECT EVENT.*|.*wait for RDMA_READ_ADV state 10.*|Terminated|)$"
)


@dataclass(frozen=True)
class Bandwidth:
    """A row of ib_write_bw with --report_gbits: message size in bytes, iterations, average in Gbit/s."""

    size: int
    iterations: int
    average: float


@dataclass(frozen=True)
class Latency:
    """A row of ib_read_lat: message size in bytes, iterations, and microseconds."""

    size: int
    iterations: int
    typical: float
    average: float
    p99: float


@dataclass(frozen=True)
class Collective:
    """An out-of-place row of nccl-tests: bytes, the time, and GB/s.

    ``wrong``: out of place and in place together, at least; None if neither was checked.
    """

    size: int
    microseconds: float
    algbw: float
    busbw: float
    wrong: int | None


def pings(text: str) -> int:
    """Return how many pings came back in order, counted from 0 (rping -v)."""
    seen = [int(number) for number in _PING.findall(text)]
    return len(seen) if seen == list(range(len(seen))) else 0


def bandwidth(text: str) -> Bandwidth | None:
    """Parse the last row of ib_write_bw. Its peak column is always 0.00 with -D, so the average counts."""
    rows = _BANDWIDTH.findall(text)
    return Bandwidth(int(rows[-1][0]), int(rows[-1][1]), float(rows[-1][3])) if rows else None


def path_mtu(text: str) -> int | None:
    """Return the bytes of a message that one RDMA packet carries: the lower active_mtu of both ports, by perftest."""
    found = re.search(r"^[ \t]*Mtu[ \t]*:[ \t]*(\d+)\[B\]", text, re.M)
    return int(found[1]) if found else None


def latency(text: str) -> Latency | None:
    """Parse the last row of ib_read_lat -n: min, max, typical, average, deviation, 99 % and 99.9 %."""
    rows = _LATENCY.findall(text)
    if not rows:
        return None
    size, iterations, typical, average, p99 = rows[-1]
    return Latency(int(size), int(iterations), float(typical), float(average), float(p99))


def collectives(text: str) -> list[Collective]:
    """Parse the rows of nccl-tests' table."""
    return [
        Collective(int(size), float(time), float(algbw), float(busbw), _wrong(wrong))
        for size, _, _, _, _, time, algbw, busbw, *wrong in _COLLECTIVE.findall(text)
    ]


def collective(text: str) -> Collective | None:
    """Parse the last row of nccl-tests' table."""
    return next(reversed(collectives(text)), None)


def _wrong(columns: list[str]) -> int | None:
    """Return the sum of numbers that nccl-tests prints as C's %g: 3, or 1e+06, or nan; None if all are N/A."""
    found = [1 if each.endswith("nan") else int(float(each)) for each in columns if re.fullmatch(_CHECKED, each)]
    return sum(found) if found else None


def network(log: str) -> str:
    """Return the transport in NCCL's log: ``NET/IB ...``, ``Socket``, or an empty string.

    The log needs NCCL_DEBUG=INFO. The InfiniBand transport of a plugin has the name IBext.
    """
    if re.search(r"Using network Socket|via NET/Socket", log):
        return "Socket"
    device = re.search(r"NET/IB\w* ?: Using \[0\](\S+)", log)
    used = re.search(r"Using network (IB\w*)|via NET/(IB\w*)", log)
    return f"NET/IB {device[1]}" if device and used else ""


def last_line(text: str) -> str:
    """Return the last line of a tool's output that is not a ruler."""
    return next((brief(line) for line in reversed(text.splitlines()) if line.strip(" -")), "")


def complaint(text: str) -> str:
    """Return the last lines of a tool's output that are neither figures nor decoration."""
    lines = [line.strip() for line in text.splitlines() if not _NOISE.match(line[:1000])]
    rows = [line for line in lines if line and not _BANDWIDTH.match(line) and not _LATENCY.match(line)]
    return brief("; ".join(list(dict.fromkeys(rows))[-4:]), 400)
