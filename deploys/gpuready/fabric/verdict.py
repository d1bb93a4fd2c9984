"""Judge the output of both ends of a test: pass, fail, skip or unknown, with the figure and the proof.

A figure counts only with the proof that RDMA carried it (:mod:`gpuready.fabric.counters`, and NCCL's own log). A
test that fell back to TCP, or has no suitable counters, does not pass. The meanings of the tools' errors are from the
sources of perftest and rping, and from NCCL's networking troubleshooting.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from gpuready.base.part import SECONDS, Amount, Count, OneOf, Part
from gpuready.contract.check import STATUSES
from gpuready.fabric import commands, figures, tcp_tests
from gpuready.fabric.commands import Test
from gpuready.fabric.counters import Moved, Proof, Snapshot, judge, judge_netdev
from gpuready.model.verify import Thresholds
from gpuready.network.links import End

#: Software devices: their speed depends on the CPU, so they have no line rate.
_SOFT = ("rdma_rxe", "siw")
#: A packet carries at most this many bytes of a message (IBTA's largest MTU).
_PACKET = 4096
_MEANINGS = (
    (r"Cannot allocate memory|Couldn't allocate MR|reg_mr|create_qp", "locked memory: see gpuready explain memlock"),
    (r"ADDR_ERROR|No route to host", "no host answers for the address: check cable, switch, VLAN and address"),
    (r"Couldn't connect|Connection refused|Connection timed out|Unable to open",
     "the hosts do not reach each other over TCP: check firewall and routes"),
    (r"status 12|RETRY_EXC|[Rr]etry|Completion with error|UNREACHABLE, error|no answer within",
     "RDMA packets are lost, but TCP works: check UDP port 4791 (RoCE v2), MTU, flow control and cable"),
    (r"modify (a )?QP|RTR|GID types|Invalid argument", "the two ends differ in GID or MTU: see gpuready nccl"),
    (r"data mismatch", "data was corrupted: compare the other pairs of both hosts; gpuready verify --level stress"),
    (r"REJECTED", "the server had stopped, or another one answered: check for a second test on that host"),
    (r"No such device|not found|state is Down", "the RDMA device disappeared or its port went down after the probe"),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The answer of one end. ``missing``: why the tool could not run. ``trouble``: why there is no answer at all.

    ``rc`` is None if nothing ran. ``before`` and ``after``: the counters of the port.
    """

    rc: int | None = None
    text: str = ""
    before: Snapshot | None = None
    after: Snapshot | None = None
    missing: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Finding(Part):
    """One test over one link in one direction: data goes from ``client`` to ``server``, except for a read."""

    derived: ClassVar[tuple[str, ...]] = ("unit",)

    test: Annotated[str, OneOf(tuple(commands.TESTS))]
    """The test."""
    server: End
    """The port that data goes to."""
    client: End
    """The port that data comes from."""
    status: Annotated[str, OneOf(STATUSES)]
    """The verdict."""
    summary: str
    """The reason."""
    value: float | None = None
    """The figure, in ``unit``; null: there is none."""
    limit: float | None = field(default=None, metadata={"digits": 6})
    """The limit in verify.thresholds, in ``unit``; null: none holds here."""
    proof: str = ""
    """What carried it, by the counters of both ports."""
    remedy: str = ""
    """What to do."""
    server_said: str = ""
    """What the server's program printed, if that matters."""
    client_said: str = ""
    """What the client's program printed, if that matters."""
    more: dict[str, float] = field(default_factory=dict)
    """Further figures, by name."""
    round: Count = 0
    """The round of the run, from 1; 0: a test of all hosts at once."""
    seconds: Amount = field(default=0.0, metadata=SECONDS)
    """How long it took."""
    blocked: bool = False
    """One of the ports is unusable, so the test did not run."""

    @property
    def has_link(self) -> bool:
        """Whether it is about two ports; the part of one host in a test of all hosts has the same port twice."""
        return self.client != self.server

    def __str__(self) -> str:
        return f"{self.client} -> {self.server}" if self.has_link else str(self.client)

    @property
    def tool_missing(self) -> bool:
        """Whether it is a skip that an installation ends; :func:`skipped` names no remedy."""
        return self.status == "skip" and bool(self.remedy)

    @property
    def unit(self) -> str:
        """The unit of ``value``."""
        return commands.TESTS[self.test].unit


@dataclass(frozen=True)
class _Figure:
    """What a test measured, and the minimum that it moved out of each end, in packets and bytes."""

    value: float
    from_client: tuple[int, int]
    from_server: tuple[int, int]
    more: dict[str, float] = field(default_factory=dict)

    @property
    def moved(self) -> bool:
        """Whether there was any traffic at all."""
        return bool(self.from_client[1] or self.from_server[1])


def blocked(test: Test, server: End, client: End, obstacle: str) -> Finding:
    """Return the finding for a link that cannot be tested; ``obstacle`` names the port."""
    remedy = "gpuready explain fabric.ports"
    why = f"not tested: {obstacle}"
    return Finding(test.name, server, client, "fail", why, remedy=remedy, blocked=not test.itself)


def skipped(test: Test, server: End, client: End, why: str) -> Finding:
    """Return the finding for a test that does not apply to these nodes."""
    return Finding(test.name, server, client, "skip", why)


def found(
    test: Test,
    server: End,
    client: End,
    answers: tuple[Answer, Answer],
    limits: Thresholds,
    write_bw: float | None = None,
) -> Finding:
    """Judge the answers of server and client. ``write_bw``: the bandwidth of this link in Gbit/s, for nccl."""
    errors = [_error(answer) for answer in answers]
    plain = Finding(test.name, server, client, "", "", server_said=errors[0], client_said=errors[1])
    sides = list(zip((server, client), answers, errors, strict=True))
    if missing := [f"{end.host}: {each.missing}" for end, each, _ in sides if each.missing]:
        return replace(
            plain, status="skip", summary="; ".join(missing), remedy=f"install {test.source} on all of these hosts"
        )
    if lost := [f"{end.host}: {each.trouble}" for end, each, _ in sides if each.trouble]:
        return replace(plain, status="unknown", summary="; ".join(lost))
    if test.tcp:
        return _over_tcp(plain, answers, limits)
    figure = _figure(test, answers)
    remedy = _remedy("\n".join(errors)) or f"gpuready explain fabric.{test.name}"
    if figure is not None and figure.more.get("wrong"):
        corrupt = f"the sum is wrong in {figure.more['wrong']:.0f} elements: data was corrupted"
        return replace(plain, status="fail", summary=corrupt, remedy=remedy)
    if figure is not None and not figure.moved:
        idle = "the tool succeeded, but no message arrived"
        return replace(plain, status="fail", summary=idle, remedy=_remedy("no answer within"))
    if figure is None or any(each.rc for each in answers):
        printed = [f"{end}: {text}" for end, _, text in sides if text]
        exits = f"the client exits with {answers[1].rc}, the server with {answers[0].rc}, without a figure"
        exits += f"; the client's last line: {last}" if (last := figures.last_line(answers[1].text)) else ""
        return replace(plain, status="fail", summary="; ".join(printed) or exits, remedy=remedy)
    moved = Moved(*figure.from_server, *figure.from_client), Moved(*figure.from_client, *figure.from_server)
    proved = [
        proof
        for end, answer, each in zip((server, client), answers, moved, strict=True)
        for proof in ([] if test.itself else proofs(end, answer, each, nccl=test.name == "nccl"))
    ]
    limit, reason = _limit(test, server, client, answers, limits, write_bw)
    proof = "; ".join(each.text for each in proved)
    measured = replace(plain, value=figure.value, limit=limit, proof=proof, more=figure.more)
    shown = f"{figure.value:.4g} {test.unit}"
    way = "over TCP" if client.over_tcp else "by RDMA"
    if any(each.proved is False for each in proved):
        return replace(measured, status="fail", summary=f"{shown}, but not {way}", remedy=remedy)
    if any(each.proved is None for each in proved):
        return replace(measured, status="unknown", summary=f"{shown}, but without proof that it went {way}")
    if limit is not None and (figure.value < limit if test.higher_is_better else figure.value > limit):
        side = "below" if test.higher_is_better else "above"
        return replace(measured, status="fail", summary=f"{shown}, {side} {limit:.4g} ({reason})", remedy=remedy)
    if test.of_pairs and (small := _small_packets(answers)):
        end = "; ".join(
            f"{each.host} {each.netdev or each.device}: {each.mtu or 'unknown'}" for each in (server, client)
        )
        remedy = "give the interfaces of both hosts and the switches an MTU of 4200 or more (9000); on InfiniBand, the "
        remedy += "subnet manager's partition"
        summary = f"{shown} ({reason}), but RDMA packets carry {small} of {_PACKET} bytes (MTU of {end})"
        return replace(measured, status="warn", summary=summary, remedy=remedy)
    return replace(measured, status="pass", summary=f"{shown} ({reason})")


def _small_packets(answers: tuple[Answer, Answer]) -> int | None:
    """Return the path's MTU if it is smaller than all hardware supports; None if it is not, or is unknown."""
    size = figures.path_mtu(answers[1].text)
    soft = any(shot is not None and shot.driver in _SOFT for shot in (each.after for each in answers))
    return size if size is not None and size < _PACKET and not soft else None


def _error(answer: Answer) -> str:
    """Return the error message of an end and its exit status; empty if it succeeded."""
    if answer.rc in (124, 137):
        return f"{figures.complaint(answer.text)}; no answer within its time limit".lstrip("; ")
    if answer.rc:
        return f"{figures.complaint(answer.text)} (exit {answer.rc})".strip()
    return answer.trouble or answer.missing


def _remedy(errors: str) -> str:
    return next((meaning for pattern, meaning in _MEANINGS if re.search(pattern, errors)), "")


def _figure(test: Test, answers: tuple[Answer, Answer]) -> _Figure | None:
    text = answers[1].text
    if test.name == "rping":
        seen = figures.pings(text)
        moved = seen, seen * commands.PING_SIZE
        return _Figure(float(seen), moved, moved) if seen == commands.PINGS else None
    if test.name in ("write_bw", "loopback"):
        row = figures.bandwidth(text)
        total = row.size * row.iterations if row else 0  # zero if all is lost, though the exit status is 0
        size = figures.path_mtu(text)
        more = {} if size is None else {"mtu": float(size)}
        return _Figure(row.average, (total // _PACKET, total), (0, 0), more) if row else None
    if test.name == "read_lat":
        lat = figures.latency(text)
        if lat is None:
            return None
        moved = lat.iterations, lat.iterations * lat.size
        return _Figure(lat.typical, (lat.iterations, 0), moved, {"average": lat.average, "p99": lat.p99})
    done = figures.collective(answers[0].text)
    if done is None:
        return None
    total = done.size * commands.ALL_REDUCES
    more = {"algbw": done.algbw * 8, "wrong": float(done.wrong or 0)}
    return _Figure(done.busbw * 8, (total // _PACKET, total), (total // _PACKET, total), more)


def proofs(end: End, answer: Answer, moved: Moved, *, nccl: bool) -> list[Proof]:
    """Return the proofs of one end: its port's counters, and with NCCL its log."""
    if answer.before is None or answer.after is None:
        return [Proof(None, f"{end}: no counters were read")]
    proof = (judge_netdev if end.over_tcp else judge)(answer.before, answer.after, moved)
    found = [Proof(proof.proved, f"{end}: {proof.text}")]
    if nccl:
        found.append(log_proof(end, answer))
    return found


def log_proof(end: End, answer: Answer) -> Proof:
    """Return the proof by NCCL's log: which network it used."""
    used = figures.network(answer.text)
    as_wanted = None if not used else (used == "Socket") == end.over_tcp
    return Proof(as_wanted, f"{end}: NCCL's log shows {used or 'no network'}")


def _over_tcp(plain: Finding, answers: tuple[Answer, Answer], limits: Thresholds) -> Finding:
    """Judge a test of TCP by the client's output, and its bytes by the interfaces' counters."""
    server, client, text = plain.server, plain.client, answers[1].text
    if plain.test == "tcp_connect":
        found = tcp_tests.connected(text, server, client)
    elif plain.test == "tcp_mtu":
        found = tcp_tests.mtu(text, server, client)
    elif plain.test == "tcp_lat":
        found = tcp_tests.latency(text, limits.tcp_lat)
    else:
        found = tcp_tests.bandwidth(text, server, client, limits.tcp_bw)
    moved = Moved(0, 0, 0, found.sent), Moved(0, found.sent, 0, 0)
    sides = zip((server, client), answers, moved, strict=True) if found.sent else ()
    proved = [proof for end, answer, each in sides for proof in proofs(end, answer, each, nccl=False)]
    finding = replace(
        plain,
        status=found.status,
        summary=found.summary,
        value=found.value,
        limit=found.limit,
        remedy=found.remedy or (f"gpuready explain fabric.{plain.test}" if found.status == "fail" else ""),
        proof="; ".join(each.text for each in proved),
        more=dict(found.more),
        server_said="",
    )
    if any(each.proved is False for each in proved):
        summary = f"{found.summary}, but not through {client.netdev} and {server.netdev}"
        return replace(finding, status="fail", summary=summary, remedy=f"gpuready explain fabric.{plain.test}")
    return finding


def _limit(
    test: Test, server: End, client: End, answers: tuple[Answer, Answer], limits: Thresholds, write_bw: float | None
) -> tuple[float | None, str]:
    """Return the threshold in the test's unit, and where it comes from or why there is none."""
    if test.name == "rping":
        return None, "all came back"
    if test.itself:
        return None, "to itself"
    if test.name == "read_lat":
        return (limits.read_lat, "verify.thresholds.read_lat") if limits.read_lat else (None, "no limit set")
    if test.name == "nccl":
        if server.over_tcp:
            return None, "no limit over TCP"
        if write_bw is None:
            return None, "no limit: write_bw was not measured on this link"
        return limits.nccl * write_bw, f"{limits.nccl:g} of its write_bw of {write_bw:.4g}"
    if any(shot is not None and shot.driver in _SOFT for shot in (each.after for each in answers)):
        return None, "no limit: a software device has no line rate"
    lines = [end.line_gbps for end in (server, client)]
    line = min((rate for rate in lines if rate), default=None)
    if line is None or None in lines:
        return None, "no limit: the line rate of an interface is unknown"
    return limits.write_bw * line, f"{limits.write_bw:g} of the line rate of {line:g}"
