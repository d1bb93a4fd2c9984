"""The tests between hosts, as checks of each host that took part, and what each test means.

They are no part of the catalogue that verify judges, because a node alone cannot answer them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from gpuready.core.check import Check, Judged, Level, Verdict, fail, passed, skip, unknown, waived, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState
from gpuready.tools.fabric.run import FabricRun
from gpuready.tools.fabric.verdict import Finding


def _of_pairs(spec: NodeSpec, state: NodeState) -> Verdict:
    return skip("gpuready fabric tests pairs of hosts")


PORTS = Check(
    id="fabric.ports",
    level=Level.fabric,
    cause="A port that faces a port of the other host is down, has no usable GID, or several, so the two cannot be "
    "tested.",
    confirm="rdma link; cat /sys/class/infiniband/*/ports/*/state; gpuready nccl -i INVENTORY",
    fix="Bring the port up (cable, switch, netdev), give its netdev the fabric's address, or name the network in "
    "nccl.subnets.",
    judge=_of_pairs,
)
RPING = Check(
    id="fabric.rping",
    level=Level.fabric,
    cause="RDMA through the connection manager fails between two ports: address resolution, routes, rdma_cm, or lost "
    "packets. "
    "NCCL does not use the connection manager: write_bw may pass all the same.",
    confirm="rping -s -a SERVER -v -V -C 10, then rping -c -a SERVER -I CLIENT -v -V -C 10: ten lines of ping data; "
    "the exit status proves nothing (0 also when the peer goes away)",
    fix="ADDR_ERROR: nobody answers for the address; REJECTED: no server; a hang: UDP port 4791 is filtered, or the "
    "MTUs differ.",
    judge=_of_pairs,
    after=("fabric.ports",),
)
WRITE_BW = Check(
    id="fabric.write_bw",
    level=Level.fabric,
    cause="RDMA writes between two ports fail, are slower than verify.thresholds.write_bw of the line rate, or did "
    "not go by "
    "RDMA: a bad cable or transceiver, flow control (PFC, ECN), a PCIe slot with too few lanes, another load, a small "
    "MTU.",
    confirm="ib_write_bw -d DEV -i PORT -x GID -F --report_gbits -D 5, the same with SERVER at the other end; "
    "the port's counters before and after",
    fix="Compare rows and columns of the matrix: a row or column that is slow is a host's port, a single cell is a "
    "path. Then "
    "ethtool -S and the port's hw_counters for retransmissions, lspci -vv for LnkSta, ibv_devinfo for active_mtu.",
    judge=_of_pairs,
    after=("fabric.ports",),
)
READ_LAT = Check(
    id="fabric.read_lat",
    level=Level.fabric,
    cause="A small RDMA read between two ports fails or takes longer than verify.thresholds.read_lat (microseconds, "
    "typical).",
    confirm="ib_read_lat -d DEV -i PORT -x GID -F -n 1000 -s 64, the same with SERVER at the other end",
    fix="Power saving of the CPU (C-states), a longer path through the switches, congestion: compare with hosts of "
    "the same rack.",
    judge=_of_pairs,
    after=("fabric.ports",),
)
NCCL = Check(
    id="fabric.nccl",
    level=Level.fabric,
    cause="An all-reduce of torch between two GPUs fails, fell back to sockets, or has less bus bandwidth than "
    "verify.thresholds.nccl of the link's write_bw.",
    confirm="NCCL_DEBUG=INFO: the log says NET/IB : Using [0]DEV:PORT, never `Using network Socket`",
    fix="Socket: see memlock, /dev/infiniband, the GID (gpuready nccl); slow: GPUDirect RDMA is off (the log has no "
    "GDRDMA), PCIe ACS.",
    judge=_of_pairs,
    gpu=True,
    after=("fabric.ports",),
)
TESTS = {"rping": RPING, "write_bw": WRITE_BW, "read_lat": READ_LAT, "nccl": NCCL}
CHECKS = (PORTS, *TESTS.values())


def judge_host(fabric: FabricRun, host: str, spec: NodeSpec, today: date) -> list[Judged]:
    """This host's part of the run; a pair that fails is told at both of its hosts."""
    verdicts = {PORTS: _ports(fabric, host)}
    for name in fabric.wanted.tests:
        verdicts[TESTS[name]] = _test([each for each in fabric.touching(host, name) if not each.blocked])
    return [Judged(check, waived(check, spec, host, today, verdict)) for check, verdict in verdicts.items()]


def _ports(fabric: FabricRun, host: str) -> Verdict:
    mine = [each for name in fabric.wanted.tests for each in fabric.touching(host, name)]
    blocked = list(dict.fromkeys(each.summary for each in mine if each.blocked))
    if blocked:
        return fail("; ".join(blocked), PORTS.fix)
    if not any(each.status in ("pass", "fail") for each in mine):
        why = list(dict.fromkeys(each.summary for each in mine)) or ["no pair had two ports to test"]
        return unknown(f"nothing was tested: {'; '.join(why)}")
    alone = list(dict.fromkeys(f"{each.end}: {each.reason}" for each in fabric.unpaired if each.end.host == host))
    if alone:
        return warn(f"not paired: {'; '.join(alone)}", "no pair needs it, or is a port missing at the other end?")
    return passed("every port met one of the other host's")


def _test(found: Sequence[Finding]) -> Verdict:
    ran = [each for each in found if each.status != "skip"]
    if not ran:
        return skip("; ".join(dict.fromkeys(each.summary for each in found)) or "see fabric.ports")
    told = {status: [each for each in ran if each.status == status] for status in ("fail", "unknown")}
    lines = [f"{each.client} -> {each.server}: {each.summary}" for each in (*told["fail"], *told["unknown"])]
    evidence = "\n".join(each.proof for each in (*told["fail"], *told["unknown"]) if each.proof)
    summary = f"{len(lines)} of {len(ran)} failed or are unproven: {'; '.join(lines)}"
    remedies = "; ".join(dict.fromkeys(each.remedy for each in told["fail"] if each.remedy))
    if told["fail"]:
        return Verdict("fail", summary, evidence, remedies)
    if told["unknown"]:
        return unknown(summary)
    return passed(f"{len(ran)} passed, {len(found) - len(ran)} skipped")
