"""Checks of a GB200 or GB300 rack: the NVLink clique of its nodes, and IMEX, by which they map each other's GPU memory.

GPUs with one cluster UUID and clique id reach each other over NVLink. The IMEX services of a job's nodes compare their
lists of nodes when they connect, and refuse each other if these differ. So some checks compare the hosts of a run.
Sources: nvmlGpuFabricInfoV_t in nvml.h; NVIDIA's IMEX guide: "Deployment Models" (one list on all nodes), "IMEX Service
Command Service" (-q), "IMEX Channels" (nobody creates channel0 by default); dcgm_fields.h (the states of the service);
Azure/azhpc-images#506 (2026-03: a cluster UUID of zeros); NVIDIA/aicr#2520 (2026-09: one IMEX at a time) and
kubernetes-sigs/dra-driver-nvidia-gpu#1236 (2026-07: the node's IMEX for the DRA driver).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from gpuready.base.errors import brief
from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.contract import need
from gpuready.contract.check import (
    Judged,
    Verdict,
    fail,
    gpu_count,
    passed,
    skip,
    unknown,
    waived,
    warn,
)
from gpuready.contract.question import Question
from gpuready.gpu.gpus import check, companions
from gpuready.gpu.nvswitch import in_a_fabric, place_of
from gpuready.model.network import Network
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

IMEX = "nvidia-imex.service"
NODES = "/etc/nvidia-imex/nodes_config.cfg"
_PACKAGE = re.compile(r"nvidia-imex(-[0-9]+)?(:\w+)?")
_CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"
_ZEROS = "00000000-0000-0000-0000-000000000000"
_ONE_OWNER = "systemctl disable --now nvidia-imex, unless the DRA driver is set to use the node's IMEX"
_T = TypeVar("_T")
_NO_RACK = "the GPUs are not in a GB200 or GB300 rack"


def _in_rack(spec: NodeSpec, state: NodeState) -> bool:
    return place_of(spec, state) == "rack" and bool(need.value(in_a_fabric(state)))


def _clique(spec: NodeSpec, state: NodeState) -> Verdict:
    if not _in_rack(spec, state):
        return skip(_NO_RACK)
    members = need.value(in_a_fabric(state))
    without = [gpu.bus for gpu in members if gpu.clique is None or gpu.clique[0] == _ZEROS]
    if without:
        return fail(f"{len(without)} of {len(members)} GPUs have no cluster UUID: {', '.join(without[:8])}")
    found = Counter(gpu.clique for gpu in members if gpu.clique)
    if len(found) > 1:
        listed = "; ".join(f"{number} in {_told(clique)}" for clique, number in found.items())
        return fail(f"the GPUs of this node are in {len(found)} cliques: {listed}")
    return passed(f"{gpu_count(len(members))} in {_told(next(iter(found)))}")


def _told(clique: tuple[str, str]) -> str:
    return f"clique {clique[1]} of cluster {clique[0]}"


def _service(spec: NodeSpec, state: NodeState) -> Verdict:
    installed = companions(state, _PACKAGE)
    need.value(state.units)
    unit = state.unit(IMEX)
    rack = _in_rack(spec, state)
    if not rack and not installed:
        return skip(f"{_NO_RACK}, and IMEX is not installed")
    if "dra_imex" in state.marks:
        if unit.active == "active" or unit.enabled == "enabled":
            how = "active" if unit.active == "active" else "enabled, so it starts at the next boot"
            return warn(f"{IMEX} is {how}, but Kubernetes' DRA driver on this node starts its own IMEX", _ONE_OWNER)
        return skip("Kubernetes' DRA driver starts IMEX, for each compute domain")
    if unit.active == "active":
        if rack and "imex_channel0" not in state.marks:
            return warn(f"{IMEX} is active, but there is no {_CHANNEL}", _MAKE_CHANNEL)
        return passed(f"{IMEX} is active")
    if unit.active == "failed" or unit.enabled == "enabled":
        return (fail if rack else warn)(f"{IMEX} is {unit.active}")
    if not rack:
        return skip(f"{IMEX} is not enabled, and {_NO_RACK}")
    return warn(f"{IMEX} is {unit.active}" if installed else "IMEX is not installed")


_MAKE_CHANNEL = (
    "load the driver with NVreg_CreateImexChannel0=1 (options nvidia in /etc/modprobe.d), or mknod it at each boot "
    "with the number of nvidia-caps-imex-channels in /proc/devices; ignore it if Slurm's switch plugin makes channels"
)


def _owned(state: NodeState) -> str:
    """Return why the node's own IMEX is not judged; empty if it is."""
    unit = state.unit(IMEX)
    if "dra_imex" in state.marks:
        return "Kubernetes' DRA driver starts IMEX, for each compute domain"
    return "" if unit.active == "active" or unit.enabled == "enabled" else f"{IMEX} is not enabled"


def _listed(state: NodeState) -> tuple[str, ...]:
    """Return the nodes of IMEX's list, addresses in their short form."""
    lines = (line.partition("#")[0].strip() for line in state.text(NODES).splitlines())
    return tuple(_short(line) for line in lines if line)


def _short(text: str) -> str:
    return str(_address(text) or text)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _has_names(nodes: Iterable[str]) -> bool:
    return any(_address(node) is None for node in nodes)


def _addresses(state: NodeState) -> set[str]:
    devices = state.network.devices.values() if isinstance(state.network, Network) else ()
    return {address.partition("/")[0] for device in devices for address in device.addresses}


def _nodes(spec: NodeSpec, state: NodeState) -> Verdict:
    if not _in_rack(spec, state):
        return skip(_NO_RACK)
    if why := _owned(state):
        return skip(why)
    if NODES not in state.files:
        return warn(f"there is no {NODES}", "create it; ignore this if IMEX_NODE_CONFIG_FILE names another file")
    listed = _listed(state)
    if not listed:
        return fail(f"{NODES} names no node")
    need.value(state.network)
    if not _addresses(state) & set(listed):
        if _has_names(listed):
            return skip(f"{NODES} has names instead of addresses")
        return fail(
            f"{NODES} has {count(len(listed), 'address', 'addresses')}, but not this node's",
            evidence=", ".join(listed[:20]),
        )
    return passed(f"{NODES} names {count(len(listed), 'node')}, this one among them")


def _ready(spec: NodeSpec, state: NodeState) -> Verdict:
    if why := _owned(state):
        return skip(why)
    if state.unit(IMEX).active != "active":
        return skip("see driver.imex")
    found = need.answer(state, "imex", "there is no nvidia-imex-ctl, or IMEX was not asked")
    text = brief(found.out, 200)
    if found.rc in (124, 137):  # of timeout(1)
        return unknown(f"nvidia-imex-ctl gives no answer: {text}")
    return passed("IMEX is READY") if text == "READY" else fail(f"IMEX is {text or f'silent (exit {found.rc})'}")


class AskImex(Question, template="gpu/ask-imex"):
    """Ask the node's IMEX whether it is ready."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskImex({"imex": 15}),) if state.unit(IMEX).active == "active" and not _owned(state) else ()


CHECKS = (
    check(
        "gpu.clique",
        "the GPUs of the node are in one NVLink clique",
        "In a GB200 or GB300 rack, the fabric manager on the switch trays gives each GPU a cluster UUID and a clique "
        "id. Without them, or with several on a node, NCCL does not use NVLink between nodes.",
        "nvidia-smi -q | grep -A4 -E 'Fabric$'",
        "look at the fabric manager and the NVLink partitions on the switch trays (NVOS); then reset all GPUs, or "
        "reboot the node",
        _clique,
        after=("gpu.fabric",),
    ),
    check(
        "driver.imex",
        "IMEX runs on the nodes of a GB200 or GB300 rack",
        "IMEX lets the nodes of a GB200 or GB300 rack map each other's GPU memory. Without it, or without an IMEX "
        "channel, NCCL does not use NVLink between nodes, and cuMemCreate fails with error 800 (operation not "
        "permitted). Only one IMEX may run on a node: the service, or that of Kubernetes' DRA driver.",
        "systemctl status nvidia-imex; nvidia-imex-ctl -N; ls /dev/nvidia-caps-imex-channels",
        "list the nodes of the rack in /etc/nvidia-imex/nodes_config.cfg, then systemctl enable --now nvidia-imex on "
        "each; ignore it if each job starts IMEX (Slurm's prolog)",
        _service,
        after=("driver.loaded", "driver.companions"),
    ),
    check(
        "driver.imex_nodes",
        "IMEX's list of nodes names this node",
        "IMEX finds its own address in nodes_config.cfg. Otherwise it ends with: No matching network interface found.",
        "cat /etc/nvidia-imex/nodes_config.cfg; ip -br addr; tail /var/log/nvidia-imex.log",
        "write the addresses of all nodes of the rack into /etc/nvidia-imex/nodes_config.cfg, the same file on each, "
        "then systemctl restart nvidia-imex on all of them",
        _nodes,
        after=("driver.loaded",),
    ),
    check(
        "driver.imex_ready",
        "IMEX is ready",
        "IMEX becomes READY when it has reached the nodes of its list. WAITING_FOR_PEERS: a node is down, its IMEX "
        "does not run or has another list, or a firewall closes TCP port 50000.",
        "nvidia-imex-ctl -q; nvidia-imex-ctl -N; tail /var/log/nvidia-imex.log",
        "start IMEX on the nodes that nvidia-imex-ctl -N shows as not connected; open TCP port 50000 between them; "
        "then systemctl restart nvidia-imex",
        _ready,
        after=("driver.imex", "driver.imex_nodes"),
        active=True,
    ),
)


# --- the hosts of one run


@dataclass(frozen=True)
class Member:
    """What the comparison needs of a host in a rack, so that the run can forget the rest of the node's state.

    ``addresses``: those that other hosts can reach. ``nodes``: IMEX's list. ``off``: why its IMEX is not judged.
    ``rack``: what the variable of maintenance.spread_by says of the host; empty without one.
    """

    clique: tuple[str, str]
    addresses: frozenset[str]
    nodes: tuple[str, ...]
    off: str
    rack: str = ""


def member(spec: NodeSpec, state: NodeState) -> Member | None:
    """Return what is compared of this host; None if it is not in a rack, or gpu.clique fails."""
    if spec.hardware.without_gpus or place_of(spec, state) != "rack":
        return None
    gpus = in_a_fabric(state)
    found = {gpu.clique for gpu in gpus} if isinstance(gpus, list) else set()
    clique = next(iter(found)) if len(found) == 1 else None
    if clique is None or clique[0] == _ZEROS:
        return None
    parsed = {text: _address(text) for text in _addresses(state)}
    far = frozenset(text for text, each in parsed.items() if each and not (each.is_loopback or each.is_link_local))
    return Member(clique, far, _listed(state), _owned(state))


def judge(members: Mapping[str, Member], specs: Mapping[str, NodeSpec], today: date) -> dict[str, list[Judged]]:
    """Compare the hosts of racks with each other."""
    verdicts = {name: (_same_clique(name, members), _same_list(name, members)) for name in members}
    return {
        name: [
            Judged(each, waived(each, specs[name], name, today, verdict))
            for each, verdict in zip(TOGETHER, found, strict=True)
        ]
        for name, found in verdicts.items()
    }


def _same_clique(name: str, members: Mapping[str, Member]) -> Verdict:
    mine = members[name]
    if not mine.rack:
        return skip("the inventory names no racks (maintenance: {spread_by: rack})")
    found = Counter(each.clique for each in members.values() if each.rack == mine.rack)
    if found.total() < 2:
        return skip(f"no other host of {mine.rack} is in this run")
    if _common(found) == mine.clique:
        return passed(f"{_told(mine.clique)}, as {found[mine.clique]} of {found.total()} hosts of {mine.rack}")
    listed = "; ".join(f"{number} in {_told(each)}" for each, number in found.items() if each != mine.clique)
    return warn(f"{_told(mine.clique)}, but other hosts of {mine.rack} are elsewhere: {listed}", TOGETHER[0].fix)


def _common(found: Counter[_T]) -> _T | None:
    """Return what most hosts have; None if several things are equally common."""
    (common, number), *others = found.most_common()
    return common if not others or others[0][1] < number else None


def _same_list(name: str, members: Mapping[str, Member]) -> Verdict:
    mine = members[name]
    if mine.off:
        return skip(mine.off)
    listed = set(mine.nodes)
    peers = {
        each: other
        for each, other in members.items()
        if each != name and not other.off and not listed.isdisjoint(other.addresses)
    }
    if not peers:
        has_names = _has_names(mine.nodes)
        return skip(f"{NODES} {'has names instead of addresses' if has_names else 'names no other host of this run'}")
    found = Counter((each.nodes, each.clique) for each in (mine, *peers.values()))
    odd = {each: other for each, other in peers.items() if (other.nodes, other.clique) != (mine.nodes, mine.clique)}
    if not odd:
        return passed(f"the same {count(len(mine.nodes), 'node')} as on {count(len(peers), 'other host')} of this run")
    first, *more = [*_unlike(mine, odd), *_far(mine, odd)]
    fix, evidence, alike = TOGETHER[1].fix, "\n".join(more), found.total() - len(odd)
    if _common(found) == (mine.nodes, mine.clique):
        return warn(f"as on {alike} of {found.total()} hosts, but not on {hostlist(odd)}: {first}", fix, evidence)
    return fail(first, fix, evidence)


def _unlike(mine: Member, odd: Mapping[str, Member]) -> Iterable[str]:
    for other, member in odd.items():
        here, there = mine.nodes, member.nodes
        if here == there:
            continue
        only = {"only here": set(here) - set(there), "only there": set(there) - set(here)}
        listed = "; ".join(f"{where}: {', '.join(sorted(them)[:8])}" for where, them in only.items() if them)
        yield f"{NODES} differs from that of {other} ({listed or 'another order'})"


def _far(mine: Member, odd: Mapping[str, Member]) -> Iterable[str]:
    for other, member in odd.items():
        if mine.clique != member.clique:
            yield f"{NODES} names {other}, which is in {_told(member.clique)}; this host is in {_told(mine.clique)}"


def _alone(spec: NodeSpec, state: NodeState) -> Verdict:
    return skip("gpuready verify compares the hosts of a run")


#: Checks that compare hosts: they are not in the catalogue, because one node alone cannot answer them.
TOGETHER = (
    check(
        "gpu.rack",
        "the hosts of a rack are in one NVLink clique",
        "Hosts that the inventory puts into one rack (maintenance.spread_by) have different cluster UUIDs or clique "
        "ids: NVLink does not connect them. The inventory is wrong, a switch tray is down, or the rack has several "
        "NVLink partitions.",
        "nvidia-smi -q | grep -A4 -E 'Fabric$' on both hosts",
        "correct the rack in the inventory, or look at the NVLink partitions on the switch trays (NVOS); ignore it if "
        "the rack is partitioned on purpose, or if spread_by names something larger than a rack",
        _alone,
        after=(),
    ),
    check(
        "driver.imex_domain",
        "IMEX has the same list of nodes on all hosts of it",
        "The IMEX services of an NVLink domain compare their lists of nodes when they connect. If the lists differ, or "
        "name a node that NVLink does not reach, they do not become READY, or importing memory fails.",
        "sha256sum /etc/nvidia-imex/nodes_config.cfg on each; nvidia-imex-ctl -N",
        "write the same file to all hosts of the list, with the same order and only hosts of one NVLink clique; then "
        "systemctl restart nvidia-imex on each",
        _alone,
        after=(),
    ),
)
