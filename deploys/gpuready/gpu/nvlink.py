"""NVLink between the GPUs of a node: are all links up, do they count errors, do the GPUs reach each other by them?

Sources: nvidia-smi(1), nvlink and topo; the health checks of Azure HPC, imbue and Meta's gcm (no inactive link, no
counted error); AWS's notes on NVLink 5 for the names of its counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuready.core.check import Verdict, fail, passed, skip, unknown, warn
from gpuready.gpu.facts.links import Links, links, matrix
from gpuready.gpu.gpus import RESET, check
from gpuready.gpu.nvswitch import switched
from gpuready.gpu.thresholds import limit
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

#: The link was lost, not only a packet: the job that used it stood still or failed.
_GRAVE = ("Recovery Errors", "Link recovery failed events")
#: Their like is counted in another one, too, or nothing was lost.
_MILD = ("Total link recovery events", "Effective Errors", "Symbol Errors")
_WORDS = {
    "CNS": "the chipset does not support it",
    "GNS": "the GPU does not support it",
    "TNS": "the topology does not support it",
    "NS": "not supported",
    "DR": "it is disabled in the driver",
    "U": "not known why",
}


def _asked(state: NodeState) -> dict[int, Links] | Verdict:
    answers = [state.active[name] for name in ("nvlink", "nvlink_errors") if name in state.active]
    if len(answers) < 2:
        return skip("there is no nvidia-smi, or no driver is loaded")
    for answer in answers:
        if "unknown" in answer:
            return unknown(answer["unknown"])
    status, counters = (_out(answer) for answer in answers)
    found = links(status, counters)
    if not any(gpu.speed for gpu in found.values()):
        failed = [answer for answer in answers if answer.get("rc")]
        told = _out(failed[0]).strip()[:200] if failed else ""
        quiet = not failed or "not supported" in told.lower()
        return skip("no GPU here has NVLink") if quiet else unknown(f"nvidia-smi nvlink: {told or 'no answer'}")
    return found


def _out(answer: Mapping[str, Any]) -> str:
    return str(answer.get("out", ""))


def _status(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _asked(state)
    if isinstance(found, Verdict):
        return found
    linked = {number: gpu for number, gpu in found.items() if gpu.speed}
    down = {number: gpu for number, gpu in linked.items() if gpu.up < len(gpu.speed)}
    said = "; ".join(f"GPU {n}: {_down(gpu)}" for n, gpu in list(down.items())[:8])
    if down and switched(spec, state):
        worst = max(down.values(), key=lambda gpu: len(gpu.speed) - gpu.up)
        return fail(f"{len(down)} of {len(linked)} GPUs: {_down(worst)}", evidence=said)
    if not any(gpu.up for gpu in linked.values()):
        return skip("the GPUs have NVLink, and nothing joins them")
    for name in {gpu.name for gpu in linked.values()}:
        alike = [gpu for gpu in linked.values() if gpu.name == name]
        if len({gpu.up for gpu in alike}) > 1:
            counts = ", ".join(str(gpu.up) for gpu in alike)
            return fail(f"GPUs of one model have different numbers of links up: {counts}", evidence=said)
    speeds = {speed for gpu in linked.values() for speed in gpu.speed.values() if speed is not None}
    if len(speeds) > 1:
        return warn(f"links differ in speed: {', '.join(f'{speed:g}' for speed in sorted(speeds))} GB/s", RESET)
    first = next(gpu for gpu in linked.values() if gpu.up)
    return passed(
        f"{first.up} of {len(first.speed)} links are up on each of {len(linked)} GPUs, {min(speeds):g} GB/s each"
    )


def _down(gpu: Links) -> str:
    lost = [str(number) for number, speed in gpu.speed.items() if speed is None]
    return f"{len(lost)} of {len(gpu.speed)} links are not up ({', '.join(lost[:6])}{', ...' if len(lost) > 6 else ''})"


def _errors(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _asked(state)
    if isinstance(found, Verdict):
        return found
    if not _out(state.active["nvlink_errors"]).strip():
        return skip("its error counters are not told")
    most = {name: limit("nvlink_errors", spec.verify.thresholds, name) for name in {g.name for g in found.values()}}
    over = [
        (f"GPU {number} link {link}: {name} {count}", name in _GRAVE)
        for number, gpu in found.items()
        for link, counters in gpu.errors.items()
        for name, count in counters.items()
        if name not in _MILD and count > most[gpu.name]
    ]
    if not over:
        return passed(f"no link has counted more than {max(most.values())} errors since the driver was loaded")
    over.sort(key=lambda each: not each[1])
    told = f"{len(over)} counters of links are above their limit, first {over[0][0]}"
    evidence = "; ".join(text for text, _ in over[:8])
    return fail(told, evidence=evidence) if over[0][1] else warn(told, _WATCH, evidence)


_WATCH = "look again later (nvidia-smi nvlink -re sets them to 0): a count that grows is a bad link"


def _peers(spec: NodeSpec, state: NodeState) -> Verdict:
    answer = state.active.get("p2p")
    if answer is None:
        return skip("one GPU, no nvidia-smi, or no driver is loaded")
    if "unknown" in answer:
        return unknown(answer["unknown"])
    found = matrix(_out(answer))
    if not found:
        return unknown(f"nvidia-smi topo -p2p r: {_out(answer).strip()[:200] or 'no answer'}")
    not_so = {pair: why for pair, why in found.items() if why != "OK"}
    if not not_so:
        return passed(f"each of {len({one for one, _ in found})} GPUs reaches the memory of all others")
    (one, two), why = next(iter(not_so.items()))
    summary = f"GPU {one} does not reach the memory of GPU {two}: {_WORDS.get(why, why)}"
    evidence = f"{len(not_so)} of {len(found)} pairs"
    joined = _asked(state)
    if isinstance(joined, dict) and all(n in joined and joined[n].up for pair in not_so for n in pair):
        return fail(summary, evidence=evidence)
    return passed(f"{summary}; no NVLink joins them", evidence)


CHECKS = (
    check(
        "gpu.nvlink",
        "Links of a GPU are not up: NCCL takes fewer of them or PCIe, and the whole job waits for that GPU.",
        "nvidia-smi nvlink -s; nvidia-smi topo -m",
        "with NVSwitch: see gpu.fabric, reset all GPUs; with a bridge: seat it anew; then have GPU or bridge exchanged",
        _status,
        "gpu.fabric",
        active=True,
    ),
    check(
        "gpu.nvlink_errors",
        "NVLink counts errors. Packets that were sent anew cost time; a link that had to recover has stopped a job. "
        "The counters begin at 0 when the driver is loaded.",
        "nvidia-smi nvlink -e; dmesg | grep -E 'Xid.*: (74|14[4-9]|150),'",
        "drain the node, reset all GPUs; if the count grows again, have GPU, baseboard or bridge inspected",
        _errors,
        active=True,
    ),
    check(
        "gpu.p2p",
        "GPUs that NVLink joins cannot reach each other's memory: an IOMMU or ACS in the way, MIG that is on, or a "
        "driver without it. NCCL copies through the host instead.",
        "nvidia-smi topo -p2p r; nvidia-smi topo -m; NCCL_DEBUG=INFO: 'via P2P' or 'via SHM'",
        "switch MIG off on both; on bare metal switch ACS off or the IOMMU to pass-through (iommu=pt); then reboot",
        _peers,
        active=True,
    ),
)
