"""Checks of the fabric's ports: the size of their packets, and what RoCE needs of Ethernet so that none are lost.

gpuready changes none of this: NICs and switches must agree. Only the fabric's ports are judged (nccl.subnets,
nccl.interfaces). With the mlx5 driver, the trust mode is dscp if the NIC has rules for DSCP values, else pcp, as
mlnx_qos says it. Others take the priority from elsewhere: bnxt_re from the rules for UDP port 4791 or the Ethertype,
irdma from the TOS into the tag of VLAN 0.
Sources: iproute2's dcb (dcb_pfc.c, dcb_app.c); mlnx-tools (mlnx_qos: qos/trust) and NVIDIA's RoCE guides (ecn/roce_np,
ecn/roce_rp, tc/1/traffic_class); Linux' rdma/ib_addr.h (iboe_get_mtu); NCCL's user guide (NCCL_IB_TC).
Looked up on 2026-11-28.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpuready.base.documents import read_json
from gpuready.contract import need
from gpuready.contract.check import Check, EndCheck, Level, Verdict, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.model.network import NetDevice, Network
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.nccl_conf import of_jobs
from gpuready.network.ports import AGGREGATES
from gpuready.network.rdma_choice import Chosen, choose

#: A device in ibv_devinfo -v, and a port of it.
_DEVICE = re.compile(r"\A[ \t]*(\S{1,64})$", re.M)
_PORT = re.compile(r"^\s{1,40}port:\s{1,40}(\d{1,3})$", re.M)
_MTU = re.compile(r"^\s{1,40}(max|active)_mtu:\s{1,40}(\d{1,5}) ", re.M)
#: The headers of a RoCE packet (GRH, UDP, BTH, XRC, atomic, ICRC), which the kernel subtracts from the MTU.
_HEADERS = 96
_LINE = re.compile(r"^(pfc|app|trust|ecn|tclass) (\S{1,64}) (.{1,4000})$", re.M)
_ECN = re.compile(r"(np|rp) ([0-7]) ([01])")
_TCLASS = re.compile(r"\bGlobal tclass=(\d{1,3})\b")
#: The driver (also of subfunctions, mlx5_core.sf) whose trust mode follows from its rules for DSCP values.
_BY_RULES = "mlx5_core"


def _fabric(spec: NodeSpec, state: NodeState, *transports: str) -> tuple[Chosen, ...]:
    if spec.nccl.transport == "tcp":
        raise EndCheck(skip("NCCL uses TCP here (nccl.transport)"))
    found = tuple(each for each in choose(state, spec.nccl).chosen if each.port.transport in transports)
    if not found:
        raise EndCheck(skip(f"no active {' or '.join(transports)} port belongs to the fabric"))
    return found


def _mtu(spec: NodeSpec, state: NodeState) -> Verdict:
    fabric = _fabric(spec, state, "RoCE", "InfiniBand")
    if "done" in state.active and "verbs" not in state.active:
        return skip("ibv_devinfo is not installed (package ibverbs-utils or libibverbs-utils), and sysfs does not say")
    answer = need.answer(state, "verbs")
    sizes = {} if answer.rc else _sizes(answer.out)
    if blind := [each.port.name for each in fabric if each.port.name not in sizes]:
        return unknown(f"ibv_devinfo does not show {', '.join(blind)}")
    small = []
    for each in fabric:
        active, most = sizes[each.port.name]
        if active < most:
            room = f", {each.port.netdev} has an MTU of {each.port.mtu}" if each.port.mtu else ""
            late = each.port.transport == "RoCE" and each.port.mtu - _HEADERS >= most
            stale = f", enough for {most}: a port below it or the driver did not follow" if late else ""
            small.append(f"{each.port.name}: {active} of {most} bytes{room}{stale}")
    if small:
        return warn(f"RDMA packets are smaller than they could be: {'; '.join(small)}")
    return passed(f"RDMA packets carry {', '.join(sorted({str(sizes[each.port.name][0]) for each in fabric}))} bytes")


def _sizes(text: str) -> dict[str, tuple[int, int]]:
    """Return the active and the largest size of a packet's data by port, in bytes."""
    found = {}
    for part in text.split("hca_id:")[1:]:
        device, ports = _DEVICE.search(part), _PORT.split(part)
        for number, about in zip(ports[1::2], ports[2::2], strict=True):
            said = {name: int(size) for name, size in _MTU.findall(about)}
            if device and said.keys() == {"max", "active"}:
                found[f"{device[1]}:{number}"] = said["active"], said["max"]
    return found


@dataclass
class _Qos:
    """What a port does with its packets. ``lossless``: the priorities with PFC; None: not shown.

    ``priorities``: DSCP -> priority; None: not shown. ``ecn``: np (marks are reported) or rp (the sender slows down) ->
    priority -> whether it is on. ``tclass``: the driver's traffic class for all RDMA; None: the program chooses.
    """

    lossless: frozenset[int] | None = None
    trust: str = ""
    priorities: dict[int, int] | None = None
    ecn: dict[str, dict[int, bool]] = field(default_factory=dict)
    tclass: int | None = None


@dataclass(frozen=True)
class _RocePort:
    """A RoCE port of the fabric. ``priority``: of NCCL's packets, None if unknown; ``dscp`` is theirs."""

    chosen: Chosen
    netdev: str
    qos: _Qos
    dscp: int
    tagged: bool

    @property
    def name(self) -> str:
        return f"{self.chosen.port.name} ({self.netdev or 'no interface'})"

    @property
    def priority(self) -> int | None:
        if self.qos.trust == "dscp":
            return (self.qos.priorities or {}).get(self.dscp, 0 if self.dscp == 0 else None)
        return 0 if self.qos.trust == "pcp" and not self.tagged else None


def _roce(spec: NodeSpec, state: NodeState) -> list[_RocePort]:
    fabric = _fabric(spec, state, "RoCE")
    if "done" in state.active and "roce" not in state.active:
        raise EndCheck(skip("the devices have no network interface of their own here: virtual or software devices"))
    answer = need.answer(state, "roce")
    if answer.rc in (124, 137):
        raise EndCheck(unknown("dcb gave no answer"))
    said = _said(answer.out)
    network = state.network if isinstance(state.network, Network) else Network()
    wanted = _traffic_class(spec, state)
    made = []
    for each in fabric:
        below = network.devices.get(each.port.netdev, NetDevice())
        tagged = network.devices.get(each.netdev, NetDevice()).kind == "vlan"
        tclass = said.get(each.port.device, _Qos()).tclass
        by_rules = network.rdma_drivers.get(each.port.device, "").startswith(_BY_RULES)
        for name in below.lower if below.kind in AGGREGATES else (each.port.netdev,):
            dscp = (wanted if tclass is None else tclass) >> 2
            qos = said.get(name, _Qos())
            if by_rules and qos.priorities is not None and not qos.trust:
                qos = replace(qos, trust="dscp" if qos.priorities else "pcp")
            made.append(_RocePort(each, name, qos, dscp, tagged))
    return made


def _traffic_class(spec: NodeSpec, state: NodeState) -> int:
    """Return NCCL_IB_TC of this node's jobs; NCCL's own default is 0."""
    try:
        return max(0, int(of_jobs(spec, state).get("NCCL_IB_TC", ""), 0))
    except ValueError:  # NCCL ignores what is not a number
        return 0


@functools.lru_cache(maxsize=8)  # three checks need it
def _said(text: str) -> dict[str, _Qos]:
    found: dict[str, _Qos] = {}
    for what, name, value in _LINE.findall(text):
        qos = found.setdefault(name, _Qos())
        if what == "tclass" and (m := _TCLASS.search(value)):
            qos.tclass = int(m[1])
        elif what == "trust" and value in ("pcp", "dscp"):
            qos.trust = value
        elif what == "ecn" and (m := _ECN.fullmatch(value)):
            qos.ecn.setdefault(m[1], {})[int(m[2])] = m[3] == "1"
        elif what in ("pfc", "app"):
            _dcb(qos, what, value)
    return found


def _dcb(qos: _Qos, what: str, text: str) -> None:
    try:
        told = read_json(text)
    except ValueError:
        return
    if not isinstance(told, dict):
        return
    if what == "pfc":
        on = told.get("prio_pfc")
        if isinstance(on, list) and len(on) == 8:
            qos.lossless = frozenset(number for number, each in enumerate(on) if each is True)
        return
    rows, qos.priorities = told.get("dscp_prio", []), {}
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, list) and len(row) == 2 and all(type(each) is int for each in row):
            qos.priorities[row[0]] = row[1]


def _listed(numbers: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _protected(found: Sequence[_RocePort]) -> frozenset[int]:
    """Return the priorities with PFC on any port; end the check where that cannot be read."""
    if blind := [each.name for each in found if each.qos.lossless is None]:
        raise EndCheck(
            skip(f"nothing shows PFC of {', '.join(blind)}: needs dcb (package iproute2) and a driver with it")
        )
    return frozenset().union(*(each.qos.lossless or () for each in found))


def _pfc(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _roce(spec, state)
    protected = _protected(found)
    shown = [f"{each.name}: {_listed(each.qos.lossless or frozenset()) or 'none'}" for each in found]
    if len({each.qos.lossless for each in found}) > 1:
        return warn(f"ports of the fabric differ in the priorities with PFC: {'; '.join(shown)}")
    if not protected:
        if all(_slows(each) for each in found):
            return passed("PFC is off; ECN slows senders down instead")
        if not all(each.qos.ecn for each in found):
            return skip("PFC is off, and nothing shows ECN: gpuready reads it only from NVIDIA's driver (DOCA-OFED)")
        return warn("PFC is off, and ECN is off, too: a full switch drops RDMA packets")
    outside = [each for each in found if each.priority is not None and each.priority not in protected]
    if outside:
        first = outside[0]
        told = (
            f"NCCL's packets have DSCP {first.dscp}, priority {first.priority}, but PFC is on for {_listed(protected)}"
        )
        return warn(f"{told}: {', '.join(each.name for each in outside)}")
    if blind := [each.name for each in found if each.priority is None]:
        return skip(
            f"PFC is on for {_listed(protected)}, but nothing shows which priority NCCL's packets have: "
            f"{', '.join(blind)}"
        )
    return passed(f"PFC is on for priority {_listed(protected)}", "; ".join(shown))


def _trust(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _roce(spec, state)
    if not _protected(found):
        return skip("PFC is off on all ports of the fabric, so no priority matters")
    if blind := [each.name for each in found if not each.qos.trust]:
        return skip(f"nothing shows the trust mode of {', '.join(blind)}")
    if wrong := [each.name for each in found if each.qos.trust == "pcp" and not each.tagged]:
        return warn(f"trust mode pcp, but packets without a VLAN have no priority in it: {', '.join(wrong)}")
    return passed(f"trust mode {', '.join(sorted({each.qos.trust for each in found}))}")


def _slows(port: _RocePort) -> bool:
    """Tell whether ECN is on for NCCL's priority at both ends of a flow; for any priority if that is unknown."""
    both = [port.qos.ecn.get(role, {}) for role in ("np", "rp")]
    if port.priority is None:
        return all(any(each.values()) for each in both)
    return all(each.get(port.priority, False) for each in both)


def _ecn(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _roce(spec, state)
    if blind := [each.name for each in found if not each.qos.ecn]:
        return skip(f"nothing shows ECN of {', '.join(blind)}: gpuready reads it only from NVIDIA's driver (DOCA-OFED)")
    if off := [each for each in found if not _slows(each)]:
        where = "any priority" if off[0].priority is None else f"priority {off[0].priority}, which NCCL's packets have"
        return warn(f"ECN is off for {where}: {', '.join(each.name for each in off)}")
    return passed(f"ECN is on: {', '.join(each.name for each in found)}")


class AskRoce(Question, template="rdma/ask-roce"):
    """Read PFC, trust mode and ECN of the network interfaces of the RDMA devices."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskRoce({"roce": 15}),)


_SET = "mlnx_qos -i INTERFACE --pfc 0,0,0,1,0,0,0,0 --trust dscp; or: dcb pfc set dev INTERFACE prio-pfc 3:on"

CHECKS = (
    Check(
        "rdma.mtu",
        "RDMA packets are as large as they can be",
        Level.effective,
        "RoCE derives the size of its packets from the MTU of the interface: 1500 gives 1024 bytes, 4200 or more gives "
        "4096. Small packets cost bandwidth. On InfiniBand, the size is the smaller limit of both ends of the link. "
        "Ports of two hosts that differ use the smaller one; gpuready fabric compares them.",
        "ibv_devinfo -v | grep -E 'hca_id|_mtu'; ip link show dev INTERFACE",
        "ip link set dev INTERFACE mtu 9000, in the network's configuration, too, and at least that on all switches of "
        "the fabric; with a bond or VLAN also the interfaces below it; on InfiniBand: the port at the other end of the "
        "link allows less",
        _mtu,
        component="rdma",
        active=True,
        advisory=True,
    ),
    Check(
        "rdma.pfc",
        "NCCL's packets have a priority that Ethernet does not drop",
        Level.effective,
        "RoCE recovers badly from lost packets. PFC makes switches wait instead of dropping, but only for the "
        "priorities that NIC and switch agree on. NCCL's packets have the traffic class of NCCL_IB_TC (0 by default): "
        "its upper six bits are the DSCP, which the NIC maps to a priority.",
        "dcb pfc show dev INTERFACE; dcb app show dev INTERFACE; mlnx_qos -i INTERFACE; grep NCCL_IB_TC /etc/nccl.conf",
        f"with PFC on the switches for priority 3 and DSCP 26: {_SET}, and nccl: {{extra: {{NCCL_IB_TC: 106}}}}. In a "
        "network without PFC, turn ECN on, or waive this check",
        _pfc,
        component="rdma",
        active=True,
        advisory=True,
    ),
    Check(
        "rdma.trust",
        "the NIC takes the priority from a field that RoCE sets",
        Level.effective,
        "In trust mode pcp, the NIC reads the priority from the VLAN tag. RoCE v2 without a VLAN has no such tag, so "
        "all its packets have priority 0, and PFC of another priority does not protect them.",
        "cat /sys/class/net/INTERFACE/qos/trust; dcb app show dev INTERFACE (dscp-prio: the mode is dscp)",
        "mlnx_qos -i INTERFACE --trust dscp; or: dcb app add dev INTERFACE dscp-prio 26:3. The switches need the same",
        _trust,
        component="rdma",
        active=True,
        advisory=True,
    ),
    Check(
        "rdma.ecn",
        "congestion slows RDMA senders down",
        Level.effective,
        "A switch marks packets (ECN) before its buffers are full. The receiver reports the marks (roce_np), and the "
        "sender slows down (roce_rp). If one of them is off for the priority of RoCE, congestion ends in PFC pauses "
        "that spread, or in lost packets.",
        "grep . /sys/class/net/INTERFACE/ecn/roce_*/enable/*",
        "echo 1 >/sys/class/net/INTERFACE/ecn/roce_np/enable/PRIORITY, the same in roce_rp, after each boot; and ECN "
        "on the switches",
        _ecn,
        component="rdma",
        active=True,
        advisory=True,
    ),
)
