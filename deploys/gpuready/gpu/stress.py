"""The checks of ``verify --level stress``: each GPU computes correctly, keeps its memory intact, and is fast enough.

A plain ``verify`` leaves them out, because they load the GPUs. Each GPU is compared with its model's limit
(data/stress.yaml) and with the other GPUs of its model on all chosen hosts. The load has several passes, because the
mean of one pass hides a GPU that slows down at times (Guard, arXiv 2605.17879).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from gpuready.base.words import count
from gpuready.contract.check import Check, Judged, Level, Verdict, fail, passed, skip, unknown, waived, warn
from gpuready.gpu.stress_figures import (
    FORMATS,
    Floor,
    Gpu,
    Slow,
    cards,
    disagreeing,
    floor,
    floor_of_node,
    lost,
    measured,
    new_faults,
    off,
    outliers,
    several,
    unsteady,
    why_not,
)
from gpuready.gpu.thresholds import load
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

NO_TORCH = (
    "neither verify.torch nor verify.image is set, so no PyTorch can load the GPUs: set one, or add "
    "-e verify.torch=/opt/train/bin/python"
)
_REPLACE = "drain the node and run the test again; if the same GPU fails, replace it"
_SLOW = "compare its clocks, power and temperature under load: nvidia-smi -q -d PERFORMANCE,CLOCK,POWER -i INDEX"


@dataclass
class Node:
    """The result of the load on one node. ``skipped``, ``unknown``: why it did not run, or says nothing.

    ``fix``: what helps. ``wrong``: faults that are in no figure, each with its GPU.
    """

    skipped: str = ""
    unknown: str = ""
    fix: str = ""
    gpus: list[Gpu] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def node(runs: Mapping[str, tuple[int, str]]) -> Node:
    """Parse the records of templates/stress/stress.sh.j2."""
    why, fix = why_not(runs, "the load test")
    if why:
        return Node(unknown=why, fix=fix)
    rc, out = runs.get("stress", (1, "its output is incomplete"))
    before = runs.get("before", (0, ""))[1]
    if any(gpu.mig for gpu in cards(before)):
        return Node(skipped="MIG is on: there are no limits for a part of a GPU, and other parts may be in use")
    found = measured(before, out)
    if rc or isinstance(found, str):
        why = found if isinstance(found, str) else f"exit {rc}"
        return Node(unknown=f"the program did not finish: {'no answer in time' if rc in (124, 137) else why}")
    missing = lost(found, runs.get("after", (0, before)))
    for gpu in found:
        if gpu.uuid in missing:
            gpu.errors["end"] = missing[gpu.uuid]
    return Node(gpus=found, wrong=new_faults(runs, found, "under load"))


class Nodes:
    """All nodes of a run, compared with each other."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        gpus = {host: each.gpus for host, each in nodes.items()}
        self.slow = outliers(gpus)
        self.disagreeing = disagreeing(gpus)

    def judge(self, host: str, spec: NodeSpec, today: date) -> list[Judged]:
        """Judge one host."""
        found, done = self.nodes[host], []
        for each in CHECKS:
            if found.skipped:
                verdict = skip(found.skipped)
            elif each is RUN:
                verdict = _run(found)
            elif found.unknown or not found.gpus:
                verdict = skip(f"see {RUN.id}")
            else:
                verdict = _figures(each, found.gpus, self, host, spec)
            done.append(Judged(each, waived(each, spec, host, today, verdict)))
        return done


def _run(found: Node) -> Verdict:
    if found.unknown:
        return unknown(found.unknown, found.fix)
    if not found.gpus:
        return unknown("nvidia-smi lists no GPU")
    wrong = [f"{gpu}: {what}: {why}" for gpu in found.gpus for what, why in gpu.errors.items()] + found.wrong
    if wrong:
        return fail(several(wrong), 'drain the node; for an Xid, run gpuready explain "Xid N"', "\n".join(wrong[1:9]))
    return passed(f"GPUs under load: {len(found.gpus)}, without an error ({found.gpus[0].software})")


def _figures(check: Check, gpus: list[Gpu], nodes: Nodes, host: str, spec: NodeSpec) -> Verdict:
    metrics = METRICS[check.id]
    wrong = [line for gpu in gpus for line in _wrong(gpu, metrics, nodes, host)]
    below = [(floor, line) for gpu in gpus for floor, line in _below(gpu, metrics)]
    if check is REDUCE:
        below = _slow_reduce(gpus, spec)
    slow = [line for floor, line in below if floor.sure]
    slow += [_than_others(gpus, each) for each in nodes.slow if each.host == host and each.metric in metrics]
    if wrong or slow:
        return fail(several([*wrong, *slow]), _REPLACE if wrong else _SLOW, "\n".join([*wrong, *slow][1:9]))
    shown = [name for name in metrics if any(name in gpu.figures for gpu in gpus)]
    if not shown:
        return skip("the node has only one GPU" if check is REDUCE and len(gpus) == 1 else "not measured")
    summary = "; ".join(_range(gpus, name) for name in shown)
    if below:  # all of them unsure
        lines = [line for _, line in below]
        return warn(f"slow, but the limit is unsure: {several(lines)}", _SLOW, "\n".join([*lines[1:9], summary]))
    unsteady_ = [
        f"{gpu}: {name} fell to {gpu.figures[name].min:g}, median {gpu.figures[name]}"
        for gpu in gpus
        for name in metrics
        if name in FORMATS and name in gpu.figures and unsteady(gpu.figures[name])
    ]
    if unsteady_:
        return warn(f"slows down at times: {several(unsteady_)}", _SLOW, summary)
    return passed(summary)


def _wrong(gpu: Gpu, metrics: Iterable[str], nodes: Nodes, host: str) -> list[str]:
    """The wrong results of a GPU."""
    found = [f"{gpu}: {text}" for name, text in gpu.wrong.items() if name in metrics]
    for name, product in gpu.products.items():
        if name not in metrics:
            continue
        if product.different:
            found.append(
                f"{gpu}: {name}: the same product gave different bits in {count(product.different, 'pass', 'passes')}"
            )
        if off(name, product):
            most = load("stress")["residual"][name]
            found.append(f"{gpu}: {name}: the product is wrong (error {product.residual:g}, limit {most:g})")
        elif name in nodes.disagreeing.get((host, gpu.index), {}):
            found.append(f"{gpu}: {name}: wrong bits: {nodes.disagreeing[host, gpu.index][name]}")
    return found


def _below(gpu: Gpu, metrics: Iterable[str]) -> list[tuple[Floor, str]]:
    """The figures of a GPU that are below its model's limit, each with the limit."""
    found = []
    for name in metrics:
        limit = floor(gpu, name)
        if limit is not None and name in gpu.figures and gpu.figures[name].median < limit.least:
            found.append((limit, f"{gpu}: {name} {gpu.figures[name]}, limit {limit.least:.0f} ({limit.why})"))
    return found


def _slow_reduce(gpus: list[Gpu], spec: NodeSpec) -> list[tuple[Floor, str]]:
    """The all-reduce of the node if it is below its limit: one figure, that of the slowest GPU."""
    limit = floor_of_node(gpus, spec.verify.thresholds.all_reduce)
    figures = [gpu.figures["reduce"] for gpu in gpus if "reduce" in gpu.figures]
    slowest = min(figures, key=lambda figure: figure.median, default=None)
    if limit is None or slowest is None or slowest.median >= limit.least:
        return []
    return [(limit, f"all {len(gpus)} GPUs: {WORDS['reduce']} {slowest}, limit {limit.least:.0f} ({limit.why})")]


def _than_others(gpus: list[Gpu], slow: Slow) -> str:
    gpu = next(each for each in gpus if each.index == slow.index)
    share = 100 * (1 - slow.value / slow.median)
    whole = slow.metric == "reduce"
    who = f"all {len(gpus)} GPUs" if whole else str(gpu)
    than = f"the median of {slow.count} {'nodes' if whole else 'GPUs'} ({slow.median:.4g}, MAD {slow.mad:.2g})"
    than = f"the other {'node' if whole else 'GPU'} ({slow.median:.4g})" if slow.count == 2 else than
    what = f"copies to GPU {gpu.peer}" if slow.metric == "peer" else WORDS[slow.metric]
    figure = f"{what} {gpu.figures[slow.metric]}"
    return f"{who}: {figure}, {share:.0f} % below {than}"


def _range(gpus: list[Gpu], name: str) -> str:
    """The figures of all GPUs in a few words: ``bf16 702 to 741 TFLOP/s``."""
    values = sorted((gpu.figures[name] for gpu in gpus if name in gpu.figures), key=lambda figure: figure.median)
    low, high = values[0], values[-1]
    span = str(low) if str(low) == str(high) else f"{str(low).split()[0]} to {high}"
    return f"{WORDS[name]} {span}"


def summary(found: Node) -> str:
    """All figures of a node in one line; empty if there are none."""
    models = Counter(gpu.model for gpu in found.gpus if gpu.figures)
    if not models:
        return ""
    shown = [_range(found.gpus, name) for name in WORDS if any(name in gpu.figures for gpu in found.gpus)]
    return f"under load: {', '.join(f'{count} {model}' for model, count in models.items())}: {'; '.join(shown)}"


def _alone(spec: NodeSpec, state: NodeState) -> Verdict:
    return skip("runs only with gpuready verify --level stress")


def check(id: str, title: str, cause: str, confirm: str, fix: str, *after: str, component: str = "") -> Check:
    """Build a check of GPUs under load, which a plain ``verify`` skips."""
    return Check(id, title, Level.stress, cause, confirm, fix, _alone, component, gpu=True, active=True, after=after)


#: Metric -> how a report names it.
WORDS = {
    **{name: name for name in FORMATS},
    "memory": "memory",
    "to_gpu": "host to GPU",
    "from_gpu": "GPU to host",
    "peer": "GPU to GPU",
    "reduce": "all-reduce, bus bandwidth",
}
RUN = check(
    "stress.run",
    "idle GPUs can be loaded, without an error",
    "The load test could not run, or failed: something uses the GPUs, the PyTorch of verify.torch or verify.image does "
    "not work, a GPU hung or lost its context, or the driver reported an error (Xid, uncorrectable memory error) under "
    "load.",
    "nvidia-smi; dmesg | grep -E 'NVRM|Xid'",
    "in use: drain the node first; Xid: gpuready explain 'Xid N'",
)
COMPUTE = check(
    "stress.compute",
    "every GPU computes right, and as fast as the others",
    "A GPU computes wrong results, or multiplies more slowly than its model's limit or than the other GPUs. A result "
    "is wrong if it changes between passes, differs from the other GPUs of the model, or is too far from the exact "
    "product.",
    "gpuready verify -i INVENTORY --level stress --seconds 60",
    "wrong: drain the node and replace the GPU; slow: look at clocks, power and temperature under load",
    RUN.id,
)
MEMORY = check(
    "stress.memory",
    "GPU memory keeps what is written, and is fast enough",
    "A GPU's memory returns other values than were written, or copies more slowly than its model's limit.",
    "nvidia-smi -q -d ECC,ROW_REMAPPER",
    "wrong: drain the node, reset the GPU and run the test again; if it fails again, replace the GPU; slow: look at "
    "clocks and temperature under load",
    RUN.id,
)
COPIES = check(
    "stress.copies",
    "copies to and between GPUs are right and fast enough",
    "Copies between host and GPU, or between GPUs, change the data or are slower than on the other GPUs: a PCIe link "
    "with fewer lanes, a GPU behind another socket, a lost NVLink.",
    "nvidia-smi topo -m; nvidia-smi -q | grep -A3 'Link Width'; nvidia-smi nvlink -s",
    "see gpu.pcie, gpu.nvlink and gpu.p2p; compare the slots",
    RUN.id,
)
REDUCE = check(
    "stress.reduce",
    "the sum over all GPUs of the node is right and fast enough",
    "The sum over all GPUs of the node is wrong, or slower than on other nodes with these GPUs or than the limit "
    "(verify.thresholds.all_reduce), because NVLink, the fabric manager or peer access differs.",
    "NCCL_DEBUG=INFO with nccl-tests' all_reduce_perf, on the node alone",
    "see gpu.fabric, gpu.nvlink and gpu.p2p",
    RUN.id,
)
METRICS = {
    COMPUTE.id: FORMATS,
    MEMORY.id: ("memory",),
    COPIES.id: ("to_gpu", "from_gpu", "peer"),
    REDUCE.id: ("reduce",),
}
CHECKS = (RUN, COMPUTE, MEMORY, COPIES, REDUCE)
