"""The tests between hosts as checks of each host that took part.

They are not in the catalogue of ``verify``, because one node alone cannot answer them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from gpuready.contract.check import Check, Judged, Level, Verdict, fail, passed, skip, unknown, waived, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

if TYPE_CHECKING:  # the texts of the checks are in the catalogue of every verb
    from gpuready.fabric.named import Named
    from gpuready.fabric.run import FabricRun
    from gpuready.fabric.verdict import Finding


def _of_pairs(spec: NodeSpec, state: NodeState) -> Verdict:
    return skip("gpuready fabric tests pairs of hosts")


def _check(
    name: str,
    *,
    title: str,
    cause: str,
    confirm: str,
    fix: str,
    gpu: bool = False,
    after: tuple[str, ...] = ("fabric.ports",),
) -> Check:
    return Check(f"fabric.{name}", title, Level.fabric, cause, confirm, fix, _of_pairs, gpu=gpu, after=after)


PORTS = _check(
    "ports",
    title="the ports of the pair can be tested",
    cause="A port to the other host is down, or has no usable GID, or several. The pair cannot be tested. Ports that "
    "are paired should have one MTU, or a switch may drop the larger packets (a warning).",
    confirm="rdma link; cat /sys/class/infiniband/*/ports/*/state; gpuready nccl -i INVENTORY",
    fix="Bring the port up (cable, switch, interface), give its interface a fabric address, or set nccl.subnets.",
    after=(),
)
RPING = _check(
    "rping",
    title="the connection manager reaches the other port",
    cause="RDMA through the connection manager fails between two ports: address resolution, routes, rdma_cm, or lost "
    "packets. NCCL does not use the connection manager, so write_bw may still pass.",
    confirm="rping -s -a SERVER -v -V -C 10, then rping -c -a SERVER -I CLIENT -v -V -C 10: ten lines of ping data; "
    "the exit status proves nothing (it is 0 even if the peer stops)",
    fix="ADDR_ERROR: no host answers for the address; REJECTED: no server; a hang: UDP port 4791 is filtered, or the "
    "MTUs differ.",
)
WRITE_BW = _check(
    "write_bw",
    title="RDMA writes are fast enough",
    cause="RDMA writes between two ports fail, are slower than verify.thresholds.write_bw of the line rate, or did not "
    "use RDMA: a bad cable or transceiver, flow control (PFC, ECN), a PCIe slot with too few lanes, or other load. "
    "Packets below 4096 bytes (active_mtu) are a warning: RoCE needs an interface MTU of 4200 or more for them.",
    confirm="ib_write_bw -d DEV -i PORT -x GID -F --report_gbits -D 5, the same with SERVER at the other end; "
    "the port's counters before and after",
    fix="Start with the port that the result names. If it names none, compare rows and columns of the matrix: a single "
    "slow cell points to a path. Then check ethtool -S and the port's hw_counters for retransmissions, lspci -vv for "
    "LnkSta, ibv_devinfo for active_mtu.",
)
READ_LAT = _check(
    "read_lat",
    title="small RDMA reads are quick enough",
    cause="A small RDMA read between two ports fails or takes longer than verify.thresholds.read_lat (microseconds, "
    "typical).",
    confirm="ib_read_lat -d DEV -i PORT -x GID -F -n 1000 -s 64, the same with SERVER at the other end",
    fix="Check the CPU's power saving (C-states), a longer path through the switches, and congestion: compare with "
    "hosts in the same rack.",
)
NCCL = _check(
    "nccl",
    title="an all-reduce uses the network that it should and is fast enough",
    cause="An all-reduce of torch between two GPUs fails, falls back to sockets although there is RDMA, or has less "
    "bus bandwidth than verify.thresholds.nccl of the link's write_bw. Without RDMA, sockets are expected.",
    confirm="NCCL_DEBUG=INFO: the log says NET/IB : Using [0]DEV:PORT; `Using network Socket` only without RDMA",
    fix="Socket: check memlock, /dev/infiniband and the GID (gpuready nccl). Slow: GPUDirect RDMA is off (the log has "
    "no GDRDMA), or PCIe ACS is on.",
    gpu=True,
)
TCP_CONNECT = _check(
    "tcp_connect",
    title="the other host's ports are reachable over TCP",
    cause="A host is not reached over TCP on the port of torchrun (29500) or on ephemeral ports (40000, 60000): a "
    "firewall, a security group, or a route that leaves by another interface. NCCL listens on ports that the kernel "
    "chooses. A firewall that answers with a reset is not seen here; tcp_bw then fails.",
    confirm="on the other host: timeout 5 bash -c 'exec 3<>/dev/tcp/ADDRESS/29500' (refused is fine); ip route get "
    "ADDRESS",
    fix="Open TCP between the hosts, all ports, in their firewalls and in the cloud's; add the missing route.",
)
TCP_MTU = _check(
    "tcp_mtu",
    title="the largest packets arrive whole",
    cause="Packets as large as the MTU of the interface do not arrive whole: another MTU on the other host, on a "
    "switch or in a tunnel. Connections open, and hang as soon as they carry data.",
    confirm="ping -M do -c 2 -s SIZE ADDRESS, with SIZE the MTU less 28; ip link show dev INTERFACE",
    fix="Set one MTU on all hosts of the network, and at least that on its switches; clouds name theirs (8896, 9001).",
)
TCP_LAT = _check(
    "tcp_lat",
    title="no ping is lost",
    cause="Packets of ping are lost, or take longer than verify.thresholds.tcp_lat (microseconds, average).",
    confirm="ping -c 10 -i 0.2 ADDRESS; ip -s link show dev INTERFACE",
    fix="Check errors and drops of the interface, the CPU's power saving, and whether the hosts are in one zone.",
)
TCP_BW = _check(
    "tcp_bw",
    title="TCP is fast enough",
    cause="iperf3 with eight streams moves less than verify.thresholds.tcp_bw of the interface's speed (a warning), "
    "moves nothing, or its bytes went through another interface.",
    confirm="iperf3 -s -B ADDRESS, and on the other host iperf3 -c ADDRESS -P 8 -t 5",
    fix="Start with the host that the result names, or compare rows and columns of the matrix. Check other load, the "
    "MTU, the switch port's speed, and the limit of the cloud's instance.",
    after=("fabric.ports", "fabric.tcp_connect"),
)
LOOPBACK = _check(
    "loopback",
    title="each RDMA port is as fast as the others of its node",
    cause="ib_write_bw from a port of the node to the same port fails, or is slower than verify.thresholds.write_bw of "
    "the median of the node's other ports of that line rate. The data stays in the NIC, so the cause is the NIC, its "
    "firmware or its PCIe slot, not a cable or a switch. A line rate below that of the other ports is a warning.",
    confirm="ib_write_bw -d DEV -i PORT -x GID -F --report_gbits -D 5, and in a second shell of the node the same with "
    "127.0.0.1 at the end",
    fix="Compare LnkSta and LnkCap of lspci -vv with those of the other NICs (width, speed), and MaxReadReq; look for "
    "PCIe errors in dmesg and for another firmware in ethtool -i. Then reseat or replace the NIC.",
    after=(),
)
TRAIN = _check(
    "train",
    title="all hosts train together, with the same loss and over the right network",
    cause="A training with DistributedDataParallel on all hosts at once fails, a rank ends with another loss or "
    "without an answer, it does not use the wanted network, or one host is slower than the others (a warning).",
    confirm="gpuready example ddp > ddp.py; gpuready launch hosts -i INVENTORY prints the line of each host",
    fix="Start with the host that the message names. A timeout or a refused connection: gpuready fabric --tests tcp. "
    "Socket instead of IB: gpuready nccl. Another loss: gpuready verify --level stress.",
    after=(),
)
COLLECTIVE = _check(
    "collective",
    title="the collectives of all GPUs are right and fast enough",
    cause="An all-reduce, all-gather, reduce-scatter or all-to-all over all GPUs of all hosts fails, hangs, has a "
    "wrong result, does not use the wanted network, or is slower than verify.thresholds.collective. gpuready then "
    "tests halves of the hosts side by side until one is named.",
    confirm="gpuready fabric -i INVENTORY --limit HOST,ANOTHER --tests collective; with MPI: all_reduce_perf -b 1M "
    "-e 16G -f 4 -g 1 of nccl-tests",
    fix="Start with the host that the message names. Wrong result: gpuready verify --level stress on it. Hang or "
    "timeout: dmesg for an Xid, gpuready fabric --tests tcp. Slow: gpuready fabric --tests write_bw, and its rails.",
    after=(),
)
TESTS = {
    check.id.removeprefix("fabric."): check
    for check in (RPING, WRITE_BW, READ_LAT, NCCL, TCP_CONNECT, TCP_MTU, TCP_LAT, TCP_BW, LOOPBACK, TRAIN, COLLECTIVE)
}
CHECKS = (PORTS, *TESTS.values())


def judge_host(fabric: FabricRun, host: str, spec: NodeSpec, today: date) -> list[Judged]:
    """Judge this host's part of the run. A pair that fails counts for both hosts, unless a port of one is named."""
    verdicts = {PORTS: _ports(fabric, host)}
    if not fabric.wanted.of_several or (fabric.wanted.without_pairs and verdicts[PORTS].status == "pass"):
        del verdicts[PORTS]  # no port was paired
    ran = [each.test for each in fabric.findings if each.client.host == host]  # also after a search
    for name in dict.fromkeys((*fabric.wanted.tests, *ran)):
        mine = [each for each in fabric.touching(host, name) if not each.blocked]
        own = [each for each in fabric.named if (each.test, each.host) == (name, host)]
        others = [each for each in fabric.named if each.test == name and not own]
        verdicts[TESTS[name]] = _test(mine, own, others)
    return [Judged(check, waived(check, spec, host, today, verdict)) for check, verdict in verdicts.items()]


def _ports(fabric: FabricRun, host: str) -> Verdict:
    mine = [each for name in fabric.wanted.of_several for each in fabric.touching(host, name)]
    blocked = list(dict.fromkeys(each.summary for each in mine if each.blocked))
    if blocked:
        return fail("; ".join(blocked), PORTS.fix)
    if not any(each.status in ("pass", "warn", "fail") for each in mine):
        why = list(dict.fromkeys(each.summary for each in mine)) or ["no pair had a port on both hosts"]
        return unknown(f"nothing was tested: {'; '.join(why)}")
    alone = list(dict.fromkeys(f"{each.end}: {each.reason}" for each in fabric.unpaired if each.end.host == host))
    if alone:
        return warn(f"not paired: {'; '.join(alone)}", "check whether the other host lacks a port; else ignore this")
    # tcp_mtu tests it over TCP; the MTU of IPoIB is not that of RDMA.
    ends = [(each.server, each.client) for each in mine if each.server.gid_index is not None]
    unlike = [f"{a} {a.mtu}, {b} {b.mtu}" for a, b in ends if a.mtu and b.mtu and a.mtu != b.mtu]
    if unlike:
        told = f"ports that are paired differ in their MTU: {'; '.join(dict.fromkeys(unlike))}"
        return warn(told, "give both interfaces, and the switches between them, one MTU (9000)")
    return passed("every port was paired with a port of the other host")


def _test(found: Sequence[Finding], own: Sequence[Named] = (), others: Sequence[Named] = ()) -> Verdict:
    """Judge a test. ``own``: the ports of this host that are named; ``others``: those of other hosts."""
    skipped = [each for each in found if each.status == "skip"]
    theirs = [each for each in found if each.status != "pass" and any(port.explains(each) for port in others)]
    ran = [each for each in found if each not in skipped and each not in theirs]
    if not ran:
        return skip("; ".join(dict.fromkeys(each.summary for each in found)) or "see fabric.ports")
    failed, unproven = ([each for each in ran if each.status == status] for status in ("fail", "unknown"))
    lines = [f"{each}: {each.summary}" for each in (*failed, *unproven)]
    reasons = [f"{each}: {each.summary}" for each in own]
    evidence = "\n".join(each.proof for each in (*failed, *unproven) if each.proof)
    summary = f"{len(lines)} of {len(ran)} failed or are unproven: {'; '.join((*reasons, *lines))}"
    remedies = "; ".join(dict.fromkeys(each.remedy for each in failed or unproven if each.remedy))
    if failed:
        return Verdict("fail", summary, evidence, remedies)
    if unproven:
        return unknown(summary, remedies)
    if slow := [each for each in ran if each.status == "warn"]:
        told = "; ".join((*reasons, *(f"{each}: {each.summary}" for each in slow)))
        return warn(f"{len(slow)} of {len(ran)} are slow: {told}", slow[0].remedy)
    if own:
        return warn("; ".join(reasons), own[0].remedy)
    elsewhere = f"; {len(theirs)} left out, where the fault is at {', '.join(map(str, others))}" if theirs else ""
    return passed(f"{len(ran)} passed, {len(skipped)} skipped{elsewhere}")
