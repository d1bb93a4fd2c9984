"""Parse the measurements of templates/stress/stress.py.j2; compare them with limits and with other GPUs. Pure.

A node's answer is not trusted: a value of the wrong kind is None, never an exception. The comparison is robust: one
slow GPU moves neither the median of its model nor the median absolute deviation (MAD) from it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Any

from gpuready.base.documents import DocumentError, read_json
from gpuready.base.errors import brief
from gpuready.base.part import Amount, Count, OneOf, Part
from gpuready.base.words import count
from gpuready.gpu.thresholds import load

FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8")
#: Metric that is not a matrix product -> the kind of its margin.
_KINDS = {"memory": "memory", "to_gpu": "host", "from_gpu": "host", "peer": "peer", "reduce": "reduce"}
#: 1.4826 MAD is the standard deviation of a normal distribution; a value below the median by this many is an outlier.
_DEVIATIONS = 5 * 1.4826


@dataclass(frozen=True)
class Figure(Part):
    """verify --level stress: a figure of several passes."""

    median: Amount
    """The median, in ``unit``."""
    min: Amount
    """The slowest pass."""
    max: Amount
    """The fastest pass."""
    unit: str
    """The unit, such as GB/s."""

    def __str__(self) -> str:
        return f"{self.median:.{0 if self.median >= 100 else 1}f} {self.unit}"


@dataclass(frozen=True)
class Product(Part):
    """verify --level stress: the matrix products in one format."""

    checksum: str
    """The checksum of the first product."""
    different: Count
    """The passes whose bits differ from the first one."""
    residual: Amount
    """The relative error."""


@dataclass
class Gpu(Part):
    """verify --level stress: one GPU."""

    index: Count
    """Its number on the node, as nvidia-smi has it."""
    uuid: str
    """Its UUID."""
    slot: str
    """Its PCI address."""
    model: str
    """Its name, as nvidia-smi has it."""
    mig: bool
    """MIG is on."""
    capped: bool
    """Its power limit is below the default."""
    software: str = ""
    """The versions of torch, CUDA and NCCL; empty: torch did not start."""
    figures: dict[str, Figure] = field(default_factory=dict)
    """By fp32, tf32, bf16, fp16, fp8 (matrix products), memory, to_gpu, from_gpu, peer, reduce."""
    products: dict[Annotated[str, OneOf(FORMATS)], Product] = field(default_factory=dict)
    """The products of each format."""
    peer: str = ""
    """The GPU to which its copies are slowest."""
    errors: dict[str, str] = field(default_factory=dict)
    """What did not run, and why."""
    wrong: dict[str, str] = field(default_factory=dict)
    """Wrong results other than a product's."""

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.uuid}, {self.slot})"


@dataclass(frozen=True)
class Slow:
    """A GPU that is slower than the others of its model. ``count``: GPUs in the comparison, itself included."""

    host: str
    index: int
    metric: str
    value: float
    median: float
    mad: float
    count: int


def several(lines: Sequence[str]) -> str:
    """Return the first line, and how many more there are."""
    return lines[0] if len(lines) == 1 else f"{lines[0]} (and {len(lines) - 1} more)"


def why_not(runs: Mapping[str, tuple[int, str]], what: str) -> tuple[str, str]:
    """Return why nothing was loaded, and what helps; empty if it was. ``what``: the load in words."""
    if "busy" in runs:
        users = ", ".join(runs["busy"][1].split("\n")[:8]).strip(", ")[:400]
        return f"{what} did not run: the node is in use by {users}", ""
    why, _, fix = runs.get("refused", (0, ""))[1].strip().partition("\n")
    return why[:400], fix[:400]


def cards(text: str) -> list[Gpu]:
    """Parse nvidia-smi's rows: index, UUID, bus, name, MIG mode, power limit and its default, uncorrected errors."""
    found = []
    for line in text.splitlines()[:64]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 8 and re.fullmatch("[0-9]{1,4}", cells[0]) and re.fullmatch(r"GPU-[0-9a-f-]{36}", cells[1]):
            limit, usual = _number(cells[5]), _number(cells[6])
            capped = limit is not None and usual is not None and limit < usual
            slot = cells[2][-12:].lower()
            found.append(Gpu(int(cells[0]), cells[1], slot, cells[3][:80], cells[4] == "Enabled", capped))
    return found


def lost(gpus: Sequence[Gpu], after: tuple[int, str]) -> dict[str, str]:
    """UUID of each GPU that nvidia-smi does not list any more -> its answer. ``after``: its exit code and rows."""
    rc, rows = after
    listed = {card.uuid for card in cards(rows)}
    why = "gives no answer" if rc in (124, 137) else f"exit {rc}" if rc else "does not list it"
    return {gpu.uuid: f"nvidia-smi after the load: {why}" for gpu in gpus if rc or gpu.uuid not in listed}


def uncorrected(text: str) -> dict[str, int]:
    """The uncorrected memory errors of each GPU since the driver was loaded, from the same rows."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()[:64]]
    return {row[1]: int(row[7]) for row in rows if len(row) == 8 and re.fullmatch("[0-9]{1,15}", row[7])}


def new_faults(runs: Mapping[str, tuple[int, str]], gpus: Iterable[Gpu], when: str) -> list[str]:
    """Return the memory errors that each GPU counted under load, and the Xids in the kernel log. ``when``: in words."""
    before, after = (uncorrected(runs.get(name, (0, ""))[1]) for name in ("before", "after"))
    grown = [(gpu, after.get(gpu.uuid, 0) - before.get(gpu.uuid, 0)) for gpu in gpus]
    found = [f"{gpu}: {count(more, 'uncorrected memory error')} {when}" for gpu, more in grown if more > 0]
    xids = runs.get("xids", (0, ""))[1].strip()[:2000].splitlines()
    return found + ([f"{count(len(xids), 'new Xid')} in the kernel log: {xids[0][:160]}"] if xids else [])


def measured(before: str, out: str) -> list[Gpu] | str:
    """Return the GPUs with what the program measured; or why it measured nothing."""
    try:
        report = read_json(out.strip().rpartition("\n")[2])
    except (ValueError, DocumentError):
        report = None
    rows = report.get("gpus") if isinstance(report, dict) else None
    if not isinstance(rows, list):
        return brief(out.strip().rpartition("\n")[2], 300) or "the program printed nothing"
    by_uuid = {gpu.uuid: gpu for gpu in cards(before)}
    for row in rows:
        if isinstance(row, dict) and (gpu := by_uuid.get(str(row.get("uuid")))) is not None:
            _fill(gpu, row)
    return list(by_uuid.values())


def _fill(gpu: Gpu, row: Mapping[str, Any]) -> None:
    begun = _part(gpu, row, "begin", "torch")
    gpu.software = (
        f"torch {begun.get('torch')}, CUDA {begun.get('cuda')}, NCCL {begun.get('nccl')}"[:80] if begun else ""
    )
    products = _part(gpu, row, "products", "matrix products")
    for name in FORMATS:
        found = _part(gpu, products, name, name)
        if _keep(gpu, name, found, "TFLOP/s"):
            residual = _number(found.get("residual"))
            gpu.products[name] = Product(
                str(found.get("checksum"))[:32], int(_number(found.get("different")) or 0), residual or 0.0
            )
    memory = _part(gpu, row, "memory", "memory")
    _keep(gpu, "memory", memory, "GB/s")
    for piece in dicts(memory.get("wrong"))[:1]:
        words, pieces = str(piece.get("words"))[:20], str(memory.get("pieces_wrong"))[:20]
        values = f"{_hex(piece.get('read'))} read where {_hex(piece.get('expected'))} was written"
        gpu.wrong["memory"] = f"{values} (words of one piece: {words}; pieces with errors: {pieces})"
    host = _part(gpu, row, "host", "host copies")
    for name in ("to_gpu", "from_gpu"):
        _keep(gpu, name, host.get(name), "GB/s")
    if host.get("wrong") is True:
        gpu.wrong["to_gpu"] = "a copy to the GPU and back differs from the original"
    peers = _part(gpu, row, "peers", "peer copies")
    for other in list(peers)[:64]:
        copy = _part(gpu, peers, other, f"copy to GPU {str(other)[:4]}")
        figure, slowest = _figure(copy, "GB/s"), gpu.figures.get("peer")
        if figure is not None and (slowest is None or figure.median < slowest.median):
            gpu.figures["peer"], gpu.peer = figure, str(other)[:4]
        if copy.get("wrong") is True:
            gpu.wrong["peer"] = f"a copy to GPU {str(other)[:4]} differs from the original"
    reduced = _part(gpu, row, "reduce", "all-reduce")
    if _keep(gpu, "reduce", reduced, "GB/s") and reduced.get("sum") != [reduced.get("expected")] * 2:
        gpu.wrong["reduce"] = f"the sum is {str(reduced.get('sum'))[:60]}, expected {str(reduced.get('expected'))[:20]}"


def _part(gpu: Gpu, row: Mapping[str, Any], name: str, words: str) -> Mapping[str, Any]:
    """Return a phase's answer. If the phase failed, return {} and store the reason in ``errors``."""
    found = row.get(name)
    if not isinstance(found, dict):
        return {}
    if "error" in found:
        gpu.errors[words] = brief(str(found["error"]), 200)
        return {}
    return found


def _keep(gpu: Gpu, name: str, found: Any, unit: str) -> bool:
    figure = _figure(found, unit)
    if figure is not None:
        gpu.figures[name] = figure
    return figure is not None


def _figure(found: Any, unit: str) -> Figure | None:
    values = [_number(found.get(name)) if isinstance(found, dict) else None for name in ("median", "min", "max")]
    known = [value for value in values if value is not None]
    return Figure(known[0], known[1], known[2], unit) if len(known) == 3 else None


def _number(value: Any) -> float | None:
    """A finite number from 0, of JSON or of nvidia-smi's text."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", value, re.A):
        value = float(value)
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if good else None


def dicts(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list; an empty list for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _hex(value: Any) -> str:
    return f"0x{value & 0xFFFFFFFF:08x}" if isinstance(value, int) else "?"


# --- limits


@dataclass(frozen=True)
class Floor:
    """The least allowed figure. ``why``: where it comes from. ``sure``: a lower figure is a fault, not just a hint."""

    least: float
    why: str
    sure: bool = True


def floor(gpu: Gpu, metric: str) -> Floor | None:
    """Return the limit of a GPU's figure; None if the model, or this GPU's state, has none."""
    entry = _row(gpu)
    peak = entry.get(metric)
    if not peak or metric == "reduce":
        return None
    table = load("stress")
    share = table["memory_fraction"] if metric == "memory" else entry["fraction"]
    share = min(share, table["fp8_fraction"]) if metric == "fp8" else share
    return Floor(peak * share, f"peak of {gpu.model}: {peak:g}", entry.get("sure", True))


def floor_of_node(gpus: Sequence[Gpu], given: float | None) -> Floor | None:
    """Return the limit of the all-reduce over a node's GPUs. ``given``: that of the spec.

    The table's limits were measured with some number of GPUs of one model, and hold for nothing else.
    """
    if given is not None:
        return Floor(given, "verify.thresholds.all_reduce")
    table, rows = load("stress"), [_row(gpu) for gpu in gpus]
    if len(gpus) != table["reduce_gpus"] or not all(row is rows[0] and "reduce" in row for row in rows):
        return None
    peak = rows[0]["reduce"]
    return Floor(peak * table["reduce_fraction"], f"Azure's for {gpus[0].model}, with larger messages: {peak:g}")


def _row(gpu: Gpu) -> Mapping[str, Any]:
    """Return the row of the GPU's model; an empty one if its state or model has none."""
    rows = [] if gpu.mig or gpu.capped else load("stress")["models"]
    return next((row for row in rows if re.fullmatch(row["match"], gpu.model)), {})


def unsteady(figure: Figure) -> bool:
    """Tell whether one pass was far slower than the others: a GPU that throttles now and then has a good median."""
    return bool(figure.min < load("stress")["steady"] * figure.median)


# --- comparison


def margin(metric: str) -> float:
    """Return the largest share by which a GPU may be slower than the median of its model."""
    share: float = load("stress")["margin"][_KINDS.get(metric, "product")]
    return share


def outliers(nodes: Mapping[str, Sequence[Gpu]]) -> list[Slow]:
    """Return the GPUs of all hosts that are slower than the others of their model.

    An outlier is below the median by more than the metric's margin and by more than five deviations. With two GPUs
    there is no majority: the slower one is an outlier if it is slower by more than the margin.
    """
    pools: dict[tuple[str, bool, str, int], list[tuple[str, int, float]]] = defaultdict(list)
    for host, gpus in nodes.items():
        for gpu in gpus:
            for metric, figure in gpu.figures.items():
                # The speed of an all-reduce depends on the number of GPUs, and is one figure of the whole node.
                size = len(gpus) if metric in ("reduce", "peer") else 0
                pools[gpu.model, gpu.capped, metric, size].append((host, gpu.index, figure.median))
    found = []
    for (_, _, metric, _), members in pools.items():
        if metric == "reduce":
            members = _of_nodes(members)
        values = [value for *_, value in members]
        middle, mad, limit = least(values, margin(metric))
        for host, index, value in members:
            if value < limit:
                found.append(Slow(host, index, metric, value, middle, mad, len(values)))
    return found


def least(values: Sequence[float], share: float) -> tuple[float, float, float]:
    """Return the median (of two values, the higher one), the MAD, and the value below which one is an outlier."""
    middle = max(values) if len(values) == 2 else median(values)
    mad = 0.0 if len(values) == 2 else median(abs(value - middle) for value in values)
    return middle, mad, min(middle * (1 - share), middle - _DEVIATIONS * mad)


def _of_nodes(members: Iterable[tuple[str, int, float]]) -> list[tuple[str, int, float]]:
    """One figure for each node: that of its slowest GPU."""
    slowest: dict[str, tuple[str, int, float]] = {}
    for each in members:
        slowest[each[0]] = min(slowest.get(each[0], each), each, key=lambda member: member[2])
    return list(slowest.values())


def off(name: str, product: Product) -> bool:
    """Tell whether a product's error is above the limit of its format."""
    return bool(product.residual > load("stress")["residual"][name])


def disagreeing(nodes: Mapping[str, Sequence[Gpu]]) -> dict[tuple[str, int], dict[str, str]]:
    """Return, by host and GPU, the formats whose product has other bits than on most GPUs of the model, and why."""
    pools: dict[tuple[str, str, str], list[tuple[str, int, str]]] = defaultdict(list)
    for host, gpus in nodes.items():
        for gpu in gpus:
            for name, product in gpu.products.items():
                if not off(name, product):  # otherwise it is wrong in any case
                    pools[gpu.model, gpu.software, name].append((host, gpu.index, product.checksum))
    found: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for (_, _, name), members in pools.items():
        ((common, count), *others) = Counter(checksum for *_, checksum in members).most_common()
        if not others:
            continue
        majority = 2 * count > len(members)
        for host, index, checksum in members:
            if not majority:
                found[host, index][name] = f"{len(others) + 1} different results on {len(members)} GPUs"
            elif checksum != common:
                found[host, index][name] = f"{count} of {len(members)} GPUs agree on another result"
    return dict(found)
