"""Name the port that the bad links of a test share. Pure.

A port is named if all its links are bad, and lead to two or more hosts that have good links. So the proof is in the
links of the others: a bad path, a bad uplink between racks or a bad pair names no port. If few other links are bad, too
(a second fault), the port needs links to three such hosts, and the result counts the others. A bad uplink is ruled out
if a way over good links joins the ends of each other bad link, and if named hosts met each other. The uplink of a rack
with one host in the run cannot be told from that host.
If each direction has a test of its own, a port can be bad in one of them only.

Bad links are those that fail or warn. If they name no port, a test of bandwidth without a limit (as of software
devices) goes by its figures: all links below the widest gap are slow, if the figures above it are twice as high or
more. Latencies differ by the way through the switches, so they are not compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Annotated, NamedTuple

from gpuready.base.part import Count, OneOf, Part
from gpuready.base.words import count
from gpuready.fabric.commands import TESTS
from gpuready.fabric.verdict import Finding
from gpuready.network.links import End

#: The figures of slow links are at least this many times lower than those of the others.
_GAP = 2.0
#: Beside a named port, at least this many links are good for one that is bad.
_GOOD = 3
_DIRECTIONS = ("from", "to", "both")


@dataclass(frozen=True)
class Named(Part):
    """fabric: the port whose links are all bad in a test, or the host if those of all its ports are."""

    test: Annotated[str, OneOf(tuple(TESTS))]
    """The test."""
    host: str
    """The host."""
    device: str
    """Its RDMA device or interface; empty: all that were tested."""
    port: Count
    """The port of the device; 0: a test of TCP, or all ports."""
    direction: Annotated[str, OneOf(_DIRECTIONS)]
    """Which of its links are bad: those that data comes from, those that it goes to, or both."""
    status: Annotated[str, OneOf(("warn", "fail"))]
    """fail: at least one of its links failed; warn: they are slow."""
    summary: str
    """Its links, and those of the others as the proof."""
    remedy: str
    """What to do."""

    def __str__(self) -> str:
        return f"{self.host} {self.device}:{self.port}" if self.port else f"{self.host} {self.device}".strip()

    def explains(self, each: Finding) -> bool:
        """Whether the finding is about one of its bad links."""
        ends = {"from": (each.client,), "to": (each.server,), "both": (each.client, each.server)}[self.direction]
        port = (self.host, self.device, self.port)
        return each.test == self.test and any(
            port == (end.host, end.device, end.port) or (not self.device and end.host == self.host) for end in ends
        )


class _Port(NamedTuple):
    host: str
    device: str
    number: int
    direction: str


class _Link(NamedTuple):
    finding: Finding
    ports: tuple[_Port, _Port]
    bad: bool


def named(findings: Sequence[Finding]) -> tuple[Named, ...]:
    """Return the ports that are named, for each test of pairs."""
    tests = [name for name in dict.fromkeys(each.test for each in findings) if TESTS[name].of_pairs]
    ran = [each for each in findings if each.status in ("pass", "warn", "fail") and not each.blocked]
    return tuple(each for name in tests for each in _of_test([found for found in ran if found.test == name]))


def _of_test(found: Sequence[Finding]) -> list[Named]:
    for bad in ([each.status != "pass" for each in found], _slow(found)):
        for directions in (("from", "to"), ("both", "both")):
            links = [_Link(each, _ports(each, directions), its) for each, its in zip(found, bad, strict=True)]
            if ports := _shared(links):
                return [_named(port, ports, links) for port in _whole(ports, links)]
    return []


def _slow(found: Sequence[Finding]) -> list[bool]:
    """Return for each link whether it failed, or is slow: without a limit, its figure is below the widest gap."""
    passed = [
        (each.value or 0.0) if each.status == "pass" and each.unit == "Gbit/s" and each.limit is None else 0.0
        for each in found
    ]
    figures = sorted(value for value in passed if value)
    gap, least = max(((high / low, high) for low, high in pairwise(figures)), default=(0.0, 0.0))
    slow = [gap >= _GAP and value < least for value in passed]
    return [each.status != "pass" or (its and each.limit is None) for each, its in zip(found, slow, strict=True)]


def _ports(each: Finding, directions: tuple[str, str]) -> tuple[_Port, _Port]:
    return _port(each.client, directions[0]), _port(each.server, directions[1])


def _port(end: End, direction: str) -> _Port:
    return _Port(end.host, end.device, end.port, direction)


def _shared(links: Sequence[_Link]) -> list[_Port]:
    """Return the ports that share the bad links; none if these do not single them out."""
    of: dict[_Port, list[tuple[_Port, bool]]] = {}
    for _, (client, server), bad in links:
        of.setdefault(client, []).append((server, bad))
        of.setdefault(server, []).append((client, bad))
    suspects = {port for port, its in of.items() if all(bad for _, bad in its)}
    partners = {port: {other.host for other, _ in of[port] if other not in suspects} for port in of if port in suspects}
    found = [port for port, hosts in partners.items() if len(hosts) > 1]
    rest = [bad for _, ports, bad in links if not set(ports) & set(found)]
    if any(rest) and (len(rest) < (_GOOD + 1) * sum(rest) or any(len(partners[port]) < 3 for port in found)):
        return []
    if 2 * len({port.host for port in found}) >= len({port.host for port in of}):
        return []
    if not _joined(links, found):
        return []
    # A port is bad in one direction only if it is good in the other one.
    back = {"from": "to", "to": "from"}
    opposite = [of.get(port._replace(direction=back[port.direction]), []) for port in found if port.direction in back]
    return found if all(not all(bad for _, bad in its) for its in opposite) else []


def _joined(links: Sequence[_Link], found: Sequence[_Port]) -> bool:
    """Whether the named hosts met each other, and good links join the ends of each bad link of others."""
    met = {frozenset(port.host for port in ports) for _, ports, _ in links}
    if any(frozenset(pair) not in met for pair in combinations({port.host for port in found}, 2)):
        return False
    group: dict[str, str] = {}

    def top(host: str) -> str:
        while (above := group.setdefault(host, host)) != host:
            host = above
        return host

    others = [
        (client.host, server.host, bad) for _, (client, server), bad in links if not {client, server} & set(found)
    ]
    for client, server, bad in others:
        if not bad:
            group[top(client)] = top(server)
    return all(top(client) == top(server) for client, server, bad in others if bad)


def _whole(ports: Sequence[_Port], links: Sequence[_Link]) -> list[_Port]:
    """Return a host in place of its ports if all that were tested are bad, and they are several."""
    tested = {port for _, both, _ in links for port in both}
    made = []
    for port in ports:
        same = [each for each in tested if (each.host, each.direction) == (port.host, port.direction)]
        whole = len(same) > 1 and set(same) <= set(ports)
        made.append(port._replace(device="", number=0) if whole else port)
    return list(dict.fromkeys(made))


def _named(port: _Port, ports: Sequence[_Port], links: Sequence[_Link]) -> Named:
    mine = [
        finding
        for finding, both, _ in links
        if any(
            (each.host, each.direction) == (port.host, port.direction) and port.device in ("", each.device)
            and port.number in (0, each.number)
            for each in both
        )
    ]  # fmt: skip
    others = [(finding, bad) for finding, both, bad in links if not set(both) & set(ports)]
    good = [finding for finding, bad in others if not bad]
    failed = [each for each in mine if each.status == "fail"]
    slow = "are slow" if any(each.status == "pass" for each in mine) else "warn"
    how = "fail" if len(failed) == len(mine) else f"fail or {slow}" if failed else slow
    way = {"from": " from it", "to": " to it", "both": " of it"}[port.direction]
    it = "it" if len(ports) == 1 else "them"
    rest = f"the only test without {it} is good"
    if len(good) < len(others):
        rest = f"of the {len(others)} tests without {it}, {len(good)} are good"
    elif len(good) > 1:
        rest = f"the {len(good)} tests without {it} are good"
    summary = f"all {count(len(mine), 'test')}{way} {how}{_figures(mine)}; {rest}{_figures(good)}"
    remedy = "look at this port, its cable and its switch port" if port.device else "look at what its ports share"
    said = {each.remedy for each in mine if each.remedy}
    if mine[0].unit != "Gbit/s" or how == "warn":  # cables cost bandwidth; other faults have causes of their own
        remedy = said.pop() if len(said) == 1 else f"gpuready explain fabric.{mine[0].test}"
    elif not mine[0].client.over_tcp:
        remedy += f"; without cables: gpuready fabric --limit {port.host} --tests loopback"
    status = "fail" if failed else "warn"
    return Named(mine[0].test, *port, status, summary, remedy)


def _figures(found: Sequence[Finding]) -> str:
    """Return ``(1.2 to 3.4 Gbit/s)``; empty if there is no figure that means something."""
    figures = sorted(each.value for each in found if each.value is not None and each.unit != "pings")
    if not figures:
        return ""
    spread = f"{figures[0]:.3g}" + (f" to {figures[-1]:.3g}" if figures[-1] > figures[0] else "")
    return f" ({spread} {found[0].unit})"
