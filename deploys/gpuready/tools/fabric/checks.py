"""The tests between hosts as checks of each host that took part.

They are not in the catalogue of ``verify``, because one node alone cannot answer them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from gpuready.core.check import Check, Judged, Level, Verdict, fail, passed, skip, unknown, waived, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

if TYPE_CHECKING:  # the texts of the checks are in the catalogue of every verb
    from gpuready.tools.fabric.run import FabricRun
    from gpuready.tools.fabric.verdict import Finding


def _of_pairs(spec: NodeSpec, state: NodeState) -> Verdict:
    return skip("gpuready fabric tests pairs of hosts")


PORTS = Check(
    id="fabric.ports",
    level=Level.fabric,
    cause="A port to the other host is down, or has no usable GID, or several. The pair cannot be tested.",
    confirm="rdma link; cat /sys/class/infiniband/*/ports/*/state; gpuready nccl -i INVENTORY",
    fix="Bring the port up (cable, switch, interface), give its interface a fabric address, or set nccl.subnets.",
    judge=_of_pairs,
)
RPING = Check(
    id="fabric.rping",
    level=Level.fabric,
    cause="RDMA through the connection manager fails between two ports: address resolution, routes, rdma_cm, or lost "
    "packets. NCCL does not use the connection manager, so write_bw may still pass.",
    confirm="rping -s -a SERVER -v -V -C 10, then rping -c -a SERVER -I CLIENT -v -V -C 10: ten lines of ping data; "
    "the exit status proves nothing (it is 0 even if the peer stops)",
    fix="ADDR_ERROR: no host answers for the address; REJECTED: no server; a hang: UDP port 4791 is filtered, or the "
    "MTUs differ.",
    judge=_of_pairs,
    after=("fabric.ports",),
)
WRITE_BW = Check(
    id="fabric.write_bw",
    level=Level.fabric,
    cause="RDMA writes between two ports fail, are slower than verify.thresholds.write_bw of the line rate, or did not "
    "use RDMA: a bad cable or transceiver, flow control (PFC, ECN), a PCIe slot with too few lanes, other load, or a "
    "small MTU.",
    confirm="ib_write_bw -d DEV -i PORT -x GID -F --report_gbits -D 5, the same with SERVER at the other end; "
    "the port's counters before and after",
    fix="Compare rows and columns of the matrix: a slow row or column points to a host's port, a single slow cell to a "
    "path. Then check ethtool -S and the port's hw_counters for retransmissions, lspci -vv for LnkSta, ibv_devinfo "
    "for active_mtu.",
    judge=_of_pairs,
    after=("fabric.ports",),
)
READ_LAT = Check(
    id="fabric.read_lat",
    level=Level.fabric,
    cause="A small RDMA read between two ports fails or takes longer than verify.thresholds.read_lat (microseconds, "
    "typical).",
    confirm="ib_read_lat -d DEV -i PORT -x GID -F -n 1000 -s 64, the same with SERVER at the other end",
    fix="Check the CPU's power saving (C-states), a longer path through the switches, and congestion: compare with "
    "hosts in the same rack.",
    judge=_of_pairs,
    after=("fabric.ports",),
)
NCCL = Check(
    id="fabric.nccl",
    level=Level.fabric,
    cause="An all-reduce of torch between two GPUs fails, falls back to sockets, or has less bus bandwidth than "
    "verify.thresholds.nccl of the link's write_bw.",
    confirm="NCCL_DEBUG=INFO: the log says NET/IB : Using [0]DEV:PORT, never `Using network Socket`",
    fix="Socket: check memlock, /dev/infiniband and the GID (gpuready nccl). Slow: GPUDirect RDMA is off (the log has "
    "no GDRDMA), or PCIe ACS is on.",
    judge=_of_pairs,
    gpu=True,
    after=("fabric.ports",),
)
TESTS = {"rping": RPING, "write_bw": WRITE_BW, "read_lat": READ_LAT, "nccl": NCCL}
CHECKS = (PORTS, *TESTS.values())


def judge_host(fabric: FabricRun, host: str, spec: NodeSpec, today: date) -> list[Judged]:
    """Judge this host's part of the run. A pair that fails counts for both hosts."""
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
        why = list(dict.fromkeys(each.summary for each in mine)) or ["no pair had a port on both hosts"]
        return unknown(f"nothing was tested: {'; '.join(why)}")
    alone = list(dict.fromkeys(f"{each.end}: {each.reason}" for each in fabric.unpaired if each.end.host == host))
    if alone:
        return warn(f"not paired: {'; '.join(alone)}", "check whether the other host lacks a port; else ignore this")
    return passed("every port was paired with a port of the other host")


def _test(found: Sequence[Finding]) -> Verdict:
    ran = [each for each in found if each.status != "skip"]
    if not ran:
        return skip("; ".join(dict.fromkeys(each.summary for each in found)) or "see fabric.ports")
    failed, unproven = ([each for each in ran if each.status == status] for status in ("fail", "unknown"))
    lines = [f"{each.client} -> {each.server}: {each.summary}" for each in (*failed, *unproven)]
    evidence = "\n".join(each.proof for each in (*failed, *unproven) if each.proof)
    summary = f"{len(lines)} of {len(ran)} failed or are unproven: {'; '.join(lines)}"
    remedies = "; ".join(dict.fromkeys(each.remedy for each in failed if each.remedy))
    if failed:
        return Verdict("fail", summary, evidence, remedies)
    if unproven:
        return unknown(summary)
    return passed(f"{len(ran)} passed, {len(found) - len(ran)} skipped")
