"""Checks of NVLink between the GPUs of a node: links that are up, error counters, peer-to-peer access.

Sources: nvidia-smi(1), nvlink and topo; the health checks of Azure HPC, imbue and Meta's gcm (no inactive link, no
counted error); AWS's notes on NVLink 5 for the names of its counters.
"""

from gpuready.base.words import count
from gpuready.contract import need
from gpuready.contract.check import EndCheck, Verdict, fail, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.gpu.gpus import RESET, ROOTS, check
from gpuready.gpu.nvlink_output import Links, links, matrix
from gpuready.gpu.nvswitch import switched
from gpuready.gpu.thresholds import limit
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

#: The link itself was lost, not only a packet: the job that used it stalled or failed.
_GRAVE = ("Recovery Errors", "Link recovery failed events")
#: Another counter includes these errors, or no data was lost.
_MILD = ("Total link recovery events", "Effective Errors", "Symbol Errors")
_P2P_STATES = {
    "CNS": "the chipset does not support it",
    "GNS": "the GPU does not support it",
    "TNS": "the topology does not support it",
    "NS": "not supported",
    "DR": "the driver disables it",
    "U": "for an unknown reason",
}


def _links(state: NodeState) -> dict[int, Links]:
    names = ("nvlink", "nvlink_errors")
    if not set(names) <= set(state.active):
        raise EndCheck(skip("nvidia-smi is missing, or no driver is loaded"))
    answers = [need.answer(state, name) for name in names]
    found = links(*(answer.out for answer in answers))
    if not any(gpu.speed for gpu in found.values()):
        failed = [answer for answer in answers if answer.rc]
        output = failed[0].out.strip()[:200] if failed else ""
        if not failed or "not supported" in output.lower():
            raise EndCheck(skip("no GPU has NVLink"))
        raise EndCheck(unknown(f"nvidia-smi nvlink: {output or 'no answer'}"))
    return found


def _status(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _links(state)
    linked = {number: gpu for number, gpu in found.items() if gpu.speed}
    down = {number: gpu for number, gpu in linked.items() if gpu.up < len(gpu.speed)}
    evidence = "; ".join(f"GPU {n}: {_down(gpu)}" for n, gpu in list(down.items())[:8])
    if down and switched(spec, state):
        worst = max(down.values(), key=lambda gpu: len(gpu.speed) - gpu.up)
        return fail(f"{len(down)} of {len(linked)} GPUs: {_down(worst)}", evidence=evidence)
    if not any(gpu.up for gpu in linked.values()):
        return skip("the GPUs have NVLink ports, but no switch or bridge connects them")
    for name in {gpu.name for gpu in linked.values()}:
        alike = [gpu for gpu in linked.values() if gpu.name == name]
        if len({gpu.up for gpu in alike}) > 1:
            counts = ", ".join(str(gpu.up) for gpu in alike)
            return fail(f"GPUs of one model have different numbers of links up: {counts}", evidence=evidence)
    speeds = {speed for gpu in linked.values() for speed in gpu.speed.values() if speed is not None}
    if len(speeds) > 1:
        return warn(f"links differ in speed: {', '.join(f'{speed:g}' for speed in sorted(speeds))} GB/s", RESET)
    first = next(gpu for gpu in linked.values() if gpu.up)
    each = f"{first.up} of {len(first.speed)} links are up on each of {len(linked)} GPUs"
    return passed(f"{each}, {min(speeds):g} GB/s each")


def _down(gpu: Links) -> str:
    lost = [str(number) for number, speed in gpu.speed.items() if speed is None]
    return f"{len(lost)} of {len(gpu.speed)} links are down ({', '.join(lost[:6])}{', ...' if len(lost) > 6 else ''})"


def _errors(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _links(state)
    if not need.answer(state, "nvlink_errors").out.strip():
        return skip("nvidia-smi prints no NVLink error counters")
    most = {name: limit("nvlink_errors", spec.verify.thresholds, name) for name in {g.name for g in found.values()}}
    over = [
        (f"GPU {number} link {link}: {name} {count}", name in _GRAVE)
        for number, gpu in found.items()
        for link, counters in gpu.errors.items()
        for name, count in counters.items()
        if name not in _MILD and count > most[gpu.name]
    ]
    if not over:
        return passed(f"no link has counted more than {count(max(most.values()), 'error')} since the driver was loaded")
    over.sort(key=lambda each: not each[1])
    above = count(len(over), "NVLink counter is above its limit", "NVLink counters are above their limit")
    summary = f"{above}, the first is {over[0][0]}"
    evidence = "; ".join(text for text, _ in over[:8])
    return fail(summary, evidence=evidence) if over[0][1] else warn(summary, _WATCH, evidence)


_WATCH = "check again later (nvidia-smi nvlink -re resets the counters): a counter that grows means a bad link"


def _peers(spec: NodeSpec, state: NodeState) -> Verdict:
    if "p2p" not in state.active:
        return skip("there is one GPU, nvidia-smi is missing, or no driver is loaded")
    answer = need.answer(state, "p2p")
    found = matrix(answer.out)
    if not found:
        return unknown(f"nvidia-smi topo -p2p r: {answer.out.strip()[:200] or 'no answer'}")
    broken = {pair: why for pair, why in found.items() if why != "OK"}
    if not broken:
        return passed(f"each of {len({one for one, _ in found})} GPUs can access the memory of all others")
    (one, two), why = next(iter(broken.items()))
    summary = f"GPU {one} cannot access the memory of GPU {two}: {_P2P_STATES.get(why, why)}"
    evidence = f"{len(broken)} of {len(found)} pairs"
    try:
        joined = _links(state)
    except EndCheck:  # without NVLink
        joined = {}
    if all(n in joined and joined[n].up for pair in broken for n in pair):
        return fail(summary, evidence=evidence)
    return passed(f"{summary}; no NVLink connects them", evidence)


class AskLinks(Question, template="gpu/ask-links"):
    """Ask nvidia-smi for NVLink and peer-to-peer access."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskLinks({"nvlink": 30, "nvlink_errors": 30, "p2p": 30}),)


CHECKS = (
    check(
        "gpu.nvlink",
        "all NVLinks are up",
        "NVLinks of a GPU are down: NCCL uses fewer links or PCIe, and the whole job waits for that GPU.",
        "nvidia-smi nvlink -s; nvidia-smi topo -m",
        "with NVSwitch: see gpu.fabric, reset all GPUs; with a bridge: reseat it; else replace the GPU or bridge",
        _status,
        after=(*ROOTS, "gpu.fabric"),
        active=True,
    ),
    check(
        "gpu.nvlink_errors",
        "NVLink counted no errors",
        "NVLink counted errors since the driver was loaded. Packets that are sent again cost time. A link that had to "
        "recover has stalled or stopped a job.",
        "nvidia-smi nvlink -e; dmesg | grep -E 'Xid.*: (74|14[4-9]|150),'",
        "drain the node, reset all GPUs; if the count grows again, have the GPU, baseboard or bridge inspected",
        _errors,
        active=True,
    ),
    check(
        "gpu.p2p",
        "GPUs access each other's memory",
        "GPUs that NVLink connects cannot access each other's memory: an IOMMU or ACS blocks it, MIG is on, or the "
        "driver does not support it. NCCL copies through the host instead.",
        "nvidia-smi topo -p2p r; nvidia-smi topo -m; NCCL_DEBUG=INFO: 'via P2P' or 'via SHM'",
        "turn MIG off on both GPUs; on bare metal, turn ACS off or the IOMMU to pass-through (iommu=pt); reboot",
        _peers,
        active=True,
    ),
)
