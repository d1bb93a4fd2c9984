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
from ipaddress import ip_address

from gpuready.base.errors import brief
from gpuready.contract import need
from gpuready.contract.check import (
    Judged,
    Verdict,
    fail,
    gpu_count,
    passed,
    run_checks,
    skip,
    unknown,
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
    try:
        return str(ip_address(text))
    except ValueError:
        return text


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
        if any(not re.fullmatch(r"[0-9a-fA-F.:]+", each) for each in listed):
            return skip(f"{NODES} has names instead of addresses")
        return fail(f"none of the {len(listed)} addresses in {NODES} is this node's", evidence=", ".join(listed[:20]))
    return passed(f"{NODES} names {len(listed)} nodes, this one among them")


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
    """A host of the run. ``rack``: what the variable of maintenance.spread_by says of it; empty without one."""

    spec: NodeSpec
    state: NodeState
    rack: str = ""

    @property
    def clique(self) -> tuple[str, str] | None:
        """The clique of its GPUs; None if it is not in a rack, or gpu.clique fails."""
        members = in_a_fabric(self.state) if place_of(self.spec, self.state) == "rack" else []
        found = {gpu.clique for gpu in members} if isinstance(members, list) else set()
        only = next(iter(found)) if len(found) == 1 else None
        return None if only is None or only[0] == _ZEROS else only


def judge(hosts: Mapping[str, Member], today: date) -> dict[str, list[Judged]]:
    """Compare the hosts of racks with each other; hosts that are in none get no verdict."""
    members = {name: member for name, member in hosts.items() if member.clique is not None}
    return {
        name: list(
            run_checks(
                TOGETHER, member.spec, member.state, name, active=False, today=today,
                known={"gpu.rack": _same_clique(name, members), "driver.imex_domain": _same_list(name, members)},
            )
        )
        for name, member in members.items()
    }  # fmt: skip


def _same_clique(name: str, members: Mapping[str, Member]) -> Verdict:
    mine = members[name]
    if not mine.rack:
        return skip("the inventory names no racks (maintenance: {spread_by: rack})")
    found = Counter(each.clique for each in members.values() if each.rack == mine.rack and each.clique)
    if found.total() < 2 or mine.clique is None:
        return skip(f"no other host of {mine.rack} is in this run")
    (common, number), *others = found.most_common()
    if mine.clique == common and (not others or others[0][1] < number):
        return passed(f"{_told(common)}, as {number} of {found.total()} hosts of {mine.rack}")
    listed = "; ".join(f"{count} in {_told(each)}" for each, count in found.items() if each != mine.clique)
    return warn(f"{_told(mine.clique)}, but other hosts of {mine.rack} are elsewhere: {listed}", TOGETHER[0].fix)


def _same_list(name: str, members: Mapping[str, Member]) -> Verdict:
    mine = members[name]
    if why := _owned(mine.state):
        return skip(why)
    here = _listed(mine.state)
    peers = {each: other for each, other in members.items() if each != name and _addresses(other.state) & set(here)}
    if not peers:
        return skip(f"{NODES} names no other host of this run")
    wrong = [*_unlike(here, peers), *_far(mine, peers)]
    if wrong:
        return fail(wrong[0], evidence="\n".join(wrong[1:]))
    return passed(f"the same {len(here)} nodes as on {len(peers)} other hosts of this run")


def _unlike(here: tuple[str, ...], peers: Mapping[str, Member]) -> Iterable[str]:
    for other, member in peers.items():
        there = _listed(member.state)
        if here == there:
            continue
        only = {"only here": set(here) - set(there), "only there": set(there) - set(here)}
        listed = "; ".join(f"{where}: {', '.join(sorted(them)[:8])}" for where, them in only.items() if them)
        yield f"{NODES} differs from that of {other} ({listed or 'another order'})"


def _far(mine: Member, peers: Mapping[str, Member]) -> Iterable[str]:
    for other, member in peers.items():
        if mine.clique and member.clique and mine.clique != member.clique:
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
