"""Checks of GPU memory: recovery actions, remapped rows, retired pages and ECC errors.

Sources: nvidia-smi(1); NVIDIA's GPU memory error management (row remapping, page retirement); the health checks of
Azure HPC, DCGM and gpud for the limits at which a node is taken out of service.
"""

from gpuready.base.words import count
from gpuready.gpu.gpus import RESET, Problem, check, each, on
from gpuready.gpu.thresholds import limit
from gpuready.model.smi import Gpu
from gpuready.model.spec import NodeSpec

REPLACE = "drain the node and replace the GPU"


def _recovery(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    if gpu.recovery is None:
        return None
    if gpu.recovery == "None":
        return []
    known = {"Reboot": "drain the node and reboot it", "Reset": RESET, "Drain and Reset": RESET}
    remedy = known.get(gpu.recovery, "drain the node and do what the driver asks for")
    return [Problem("fail", f"the driver asks for: {gpu.recovery}", remedy)]


def _remap(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    if gpu.remap_pending is None and gpu.remap_failed is None:
        return None
    found = []
    if gpu.remap_failed:
        found.append(Problem("fail", "a row could not be remapped", REPLACE))
    if gpu.remap_pending:
        found.append(Problem("fail", "a row remapping is pending until the next reset", RESET))
    return found


def _retired(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    if gpu.retired is None and gpu.retire_pending is None:
        return None
    found = []
    most = limit("retired_pages", spec.verify.thresholds, gpu.name)
    if gpu.retired is not None and gpu.retired >= most:
        found.append(Problem("fail", f"{count(gpu.retired, 'page')} retired (limit: {most})", REPLACE))
    if gpu.retire_pending:
        found.append(Problem("fail", "a page retirement is pending until the next reset", RESET))
    return found


def _ecc(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    if not gpu.ecc and not gpu.repairs:
        return None
    found = [
        Problem("fail", f"{count(number, 'uncorrectable memory error')} ({name})", RESET)
        for name, number in gpu.ecc.items()
        if number and name.startswith("volatile.") and not name.endswith("_corrected")
    ]
    for what in ("SRAM threshold exceeded", "unrepairable memory"):
        if gpu.repairs.get(what):
            found.append(Problem("fail", what, REPLACE))
    life = gpu.ecc.get("aggregate.sram_uncorrectable", 0)
    if life and not gpu.repairs.get("SRAM threshold exceeded"):
        # A newer driver compares the count with NVIDIA's threshold itself. With an older one, any error counts.
        status = "warn" if "SRAM threshold exceeded" in gpu.repairs else "fail"
        found.append(Problem(status, f"{count(life, 'uncorrectable SRAM error')} over its lifetime", REPLACE))
    for name in ("sram_corrected", "dram_corrected"):
        number, most = gpu.ecc.get(f"aggregate.{name}", 0), limit(name, spec.verify.thresholds, gpu.name)
        if number > most:
            found.append(Problem("fail", f"{count(number, 'corrected memory error')} ({name}), limit {most}", REPLACE))
    for what in ("channel repair pending", "TPC repair pending"):
        if gpu.repairs.get(what):
            found.append(Problem("warn", what, RESET))
    return found


def _ecc_mode(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    now, next_ = gpu.ecc_mode
    if now is None:
        return None
    if next_ is not None and now != next_:
        return [Problem("warn", f"ECC is {on(now)}, but {on(next_)} after the next reset", RESET)]
    return [] if now else [Problem("warn", "ECC is off", "nvidia-smi -i BUS -e 1, then reset the GPU")]


CHECKS = (
    check(
        "gpu.recovery",
        "no GPU needs a reset, a drain or a reboot",
        "The driver reports that a GPU needs a reset, a drain or a reboot before it is used again.",
        "nvidia-smi --query-gpu=pci.bus_id,gpu_recovery_action --format=csv",
        "drain the node and do what the driver asks for",
        each(_recovery, "the driver asks for no recovery", "this driver reports no recovery action"),
    ),
    check(
        "gpu.remap",
        "no memory row waits to be replaced",
        "A bad memory row waits to be replaced by a spare one at the next reset, or no spare row is left. Until the "
        "reset, every error in that row ends the program that hits it.",
        "nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv",
        "pending: reset the GPU; failure: replace it",
        each(_remap, "no row remapping is pending", "this GPU does not remap rows (Ampere and later do)"),
    ),
    check(
        "gpu.retired",
        "few retired memory pages",
        "GPUs before Ampere retire bad memory pages, at most 64. A page stays in use until the next reset.",
        "nvidia-smi -q -d PAGE_RETIREMENT",
        "pending: reset the GPU; too many: replace it (the limit is verify.thresholds.retired_pages)",
        each(_retired, "no page retirement is pending", "this GPU does not retire pages"),
    ),
    check(
        "gpu.ecc",
        "no memory errors",
        "The GPU counted memory errors. An uncorrectable error ends the program that hit it. Many corrected errors are "
        "a sign of failing memory.",
        "nvidia-smi -q -d ECC",
        "uncorrectable: reset the GPU, and replace it if the errors return (limits: verify.thresholds)",
        each(_ecc, "memory errors are within their limits", "no ECC counters: ECC is off or not supported"),
    ),
    check(
        "gpu.eccmode",
        "ECC is on",
        "Without ECC, a flipped bit silently gives a wrong result.",
        "nvidia-smi --query-gpu=pci.bus_id,ecc.mode.current,ecc.mode.pending --format=csv",
        "nvidia-smi -e 1, then reset the GPU",
        each(_ecc_mode, "ECC is on", "this GPU has no ECC"),
    ),
)
