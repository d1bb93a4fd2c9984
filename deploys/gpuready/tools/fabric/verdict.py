"""From what both ends of a test said to one finding: passed, failed, skipped or unknown, the figure, and the proof.

A figure counts only together with the proof that RDMA carried it (:mod:`gpuready.tools.fabric.counters`, and NCCL's
own log): a test that fell back to TCP, or whose counters cannot tell, has not passed. What the tools mean by their
complaints is from perftest's and rping's sources and NCCL's networking troubleshooting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from gpuready.network.links import End
from gpuready.spec.verify import Thresholds
from gpuready.tools.fabric import commands, figures
from gpuready.tools.fabric.commands import Test
from gpuready.tools.fabric.counters import Moved, Proof, Snapshot, judge

#: Drivers whose speed is the CPU's: no fraction of a line rate means anything.
_SOFT = ("rdma_rxe", "siw")
#: A packet carries at most this many bytes of a message (IBTA's largest MTU).
_PACKET = 4096
_MEANINGS = (
    (r"Cannot allocate memory|Couldn't allocate MR|reg_mr|create_qp", "locked memory: gpuready explain memlock"),
    (r"ADDR_ERROR|No route to host", "nobody answers for the address on that network: cable, switch, VLAN, address"),
    (r"Couldn't connect|Connection refused|Connection timed out|Unable to open",
     "the two do not reach each other over TCP: a firewall, or a route"),
    (r"status 12|RETRY_EXC|[Rr]etry|Completion with error|UNREACHABLE, error|no answer within",
     "RDMA's packets get lost though TCP passes: UDP port 4791 (RoCE v2) is filtered, MTU, flow control, or a cable"),
    (r"modify (a )?QP|RTR|GID types|Invalid argument", "the two ends disagree on GID or MTU: see gpuready nccl"),
    (r"REJECTED", "the server was gone, or is another one: is a second test running there?"),
    (r"No such device|not found|state is Down", "the RDMA device went away, or its port went down, after the probe"),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What one end said. ``missing``: why the tool could not run there; ``trouble``: why there is no answer at all.

    ``rc`` is None where nothing ran. The snapshots are those of the port before and after.
    """

    rc: int | None = None
    text: str = ""
    before: Snapshot | None = None
    after: Snapshot | None = None
    missing: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Finding:
    """One test over one link in one direction: data goes from ``client`` to ``server``, but for a read.

    ``status`` is pass, fail, skip or unknown. ``value`` and ``limit`` are in the test's unit; ``round`` counts from 1.
    ``blocked``: one of the ports cannot be used, so the test was not begun.
    """

    test: str
    server: End
    client: End
    status: str
    summary: str
    value: float | None = None
    limit: float | None = None
    proof: str = ""
    remedy: str = ""
    server_said: str = ""
    client_said: str = ""
    more: dict[str, float] = field(default_factory=dict)
    round: int = 0
    seconds: float = 0.0
    blocked: bool = False

    @property
    def unit(self) -> str:
        """The unit of ``value``."""
        return commands.TESTS[self.test].unit


@dataclass(frozen=True)
class _Figure:
    """What a test measured, and the least that it moved: out of the client, and out of the server."""

    value: float
    from_client: tuple[int, int]
    from_server: tuple[int, int]
    more: dict[str, float] = field(default_factory=dict)

    @property
    def moved(self) -> bool:
        """Whether there was any traffic at all."""
        return bool(self.from_client[1] or self.from_server[1])


def blocked(test: Test, server: End, client: End, obstacle: str) -> Finding:
    """A link that should be there and cannot be tested; ``obstacle`` names the port."""
    remedy = "gpuready explain fabric.ports"
    return Finding(test.name, server, client, "fail", f"not tested: {obstacle}", remedy=remedy, blocked=True)


def skipped(test: Test, server: End, client: End, why: str) -> Finding:
    """A test that does not concern these nodes."""
    return Finding(test.name, server, client, "skip", why)


def found(
    test: Test, server: End, client: End, said: tuple[Answer, Answer], limits: Thresholds, write_bw: float | None = None
) -> Finding:
    """The finding from both answers (server's, client's); ``write_bw`` is what this link did, in Gbit/s, for nccl."""
    words = [_words(answer) for answer in said]
    plain = Finding(test.name, server, client, "", "", server_said=words[0], client_said=words[1])
    sides = list(zip((server, client), said, words, strict=True))
    if missing := [f"{end.host}: {each.missing}" for end, each, _ in sides if each.missing]:
        return replace(plain, status="skip", summary="; ".join(missing), remedy=f"install {test.source}")
    if lost := [f"{end.host}: {each.trouble}" for end, each, _ in sides if each.trouble]:
        return replace(plain, status="unknown", summary="; ".join(lost))
    figure = _figure(test, said)
    why_not = _remedy("\n".join(words)) or f"gpuready explain fabric.{test.name}"
    if figure is not None and figure.more.get("wrong"):
        corrupt = f"the sum is wrong in {figure.more['wrong']:.0f} elements: data was changed on its way"
        return replace(plain, status="fail", summary=corrupt, remedy=why_not)
    if figure is not None and not figure.moved:
        idle = "the tool ended well, and not one message arrived"
        return replace(plain, status="fail", summary=idle, remedy=_remedy("no answer within"))
    if figure is None or any(each.rc for each in said):
        told = [f"{end} says: {text}" for end, _, text in sides if text]
        exits = f"exit {said[1].rc} of the client, {said[0].rc} of the server, and no figure"
        return replace(plain, status="fail", summary="; ".join(told) or exits, remedy=why_not)
    proofs = _proofs(test, figure, server, client, said)
    limit, reason = _limit(test, server, client, said, limits, write_bw)
    proof = "; ".join(each.text for each in proofs)
    measured = replace(plain, value=figure.value, limit=limit, proof=proof, more=figure.more)
    shown = f"{figure.value:.4g} {test.unit}"
    if any(each.proved is False for each in proofs):
        return replace(measured, status="fail", summary=f"{shown}, but not by RDMA", remedy=why_not)
    if any(each.proved is None for each in proofs):
        return replace(measured, status="unknown", summary=f"{shown}, but nothing proves that it went by RDMA")
    if limit is not None and (figure.value < limit if test.higher_is_better else figure.value > limit):
        side = "below" if test.higher_is_better else "above"
        return replace(measured, status="fail", summary=f"{shown}, {side} {limit:.4g} ({reason})", remedy=why_not)
    return replace(measured, status="pass", summary=f"{shown} ({reason})")


def _words(answer: Answer) -> str:
    """An end's complaint, and how it ended where that was not well."""
    if answer.rc in (124, 137):
        return f"{figures.complaint(answer.text)}; no answer within its time limit".lstrip("; ")
    if answer.rc:
        return f"{figures.complaint(answer.text)} (exit {answer.rc})".strip()
    return answer.trouble or answer.missing


def _remedy(words: str) -> str:
    return next((meaning for pattern, meaning in _MEANINGS if re.search(pattern, words)), "")


def _figure(test: Test, said: tuple[Answer, Answer]) -> _Figure | None:
    text = said[1].text
    if test.name == "rping":
        seen = figures.pings(text)
        moved = seen, seen * commands.PING_SIZE
        return _Figure(float(seen), moved, moved) if seen == commands.PINGS else None
    if test.name == "write_bw":
        row = figures.bandwidth(text)
        total = row.size * row.iterations if row else 0  # zero when all is lost, and the exit status is 0 all the same
        return _Figure(row.average, (total // _PACKET, total), (0, 0)) if row else None
    if test.name == "read_lat":
        lat = figures.latency(text)
        if lat is None:
            return None
        moved = lat.iterations, lat.iterations * lat.size
        return _Figure(lat.typical, (lat.iterations, 0), moved, {"average": lat.average, "p99": lat.p99})
    done = figures.collective(said[0].text)
    if done is None:
        return None
    total = done.size * commands.ALL_REDUCES
    more = {"algbw": done.algbw * 8, "wrong": float(done.wrong or 0)}
    return _Figure(done.busbw * 8, (total // _PACKET, total), (total // _PACKET, total), more)


def _proofs(test: Test, figure: _Figure, server: End, client: End, said: tuple[Answer, Answer]) -> list[Proof]:
    """Of each end: its port's counters, and for nccl what its log says."""
    proofs = []
    ways = (figure.from_server, figure.from_client)
    for end, answer, out, into in zip((server, client), said, ways, reversed(ways), strict=True):
        if answer.before is None or answer.after is None:
            proofs.append(Proof(None, f"{end}: no counters were read"))
            continue
        proof = judge(answer.before, answer.after, Moved(*out, *into))
        proofs.append(Proof(proof.proved, f"{end}: {proof.text}"))
        if test.name == "nccl":
            used = figures.network(answer.text)
            by_rdma = None if not used else used != "Socket"
            proofs.append(Proof(by_rdma, f"{end}: NCCL's log says {used or 'nothing of its network'}"))
    return proofs


def _limit(
    test: Test, server: End, client: End, said: tuple[Answer, Answer], limits: Thresholds, write_bw: float | None
) -> tuple[float | None, str]:
    """The threshold in the test's unit, and where it comes from or why there is none."""
    if test.name == "rping":
        return None, "every one came back"
    if test.name == "read_lat":
        return (limits.read_lat, "verify.thresholds.read_lat") if limits.read_lat else (None, "no limit was set")
    if test.name == "nccl":
        if write_bw is None:
            return None, "no limit: write_bw was not measured on this link"
        return limits.nccl * write_bw, f"{limits.nccl:g} of its write_bw of {write_bw:.4g}"
    if any(shot is not None and shot.driver in _SOFT for shot in (each.after for each in said)):
        return None, "no limit: a software device has no line rate"
    lines = [end.line_gbps for end in (server, client)]
    line = min((rate for rate in lines if rate), default=None)
    if line is None or None in lines:
        return None, "no limit: a netdev does not say its line rate"
    return limits.write_bw * line, f"{limits.write_bw:g} of the line rate of {line:g}"
