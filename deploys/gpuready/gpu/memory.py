"""What takes a GPU out of use: what the driver asks for, remapped rows, retired pages, memory errors.

Sources: nvidia-smi(1); NVIDIA's GPU memory error management (row remapping, page retirement); the health checks of
Azure HPC, DCGM and gpud for what is bad enough to take a node out.
"""

from __future__ import annotations

from gpuready.gpu.facts.smi import Gpu
from gpuready.gpu.gpus import RESET, Finding, check, each, on
from gpuready.gpu.thresholds import limit
from gpuready.spec.model import NodeSpec

REPLACE = "drain the node and have the GPU replaced"


def _recovery(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    if gpu.recovery is None:
        return None
    if gpu.recovery == "None":
        return []
    how = {"Reboot": "drain the node and reboot it", "Reset": RESET, "Drain and Reset": RESET}.get(gpu.recovery)
    return [Finding("fail", f"the driver asks for: {gpu.recovery}", how or "drain the node and do what it asks for")]


def _remap(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    if gpu.remap_pending is None and gpu.remap_failed is None:
        return None
    found = []
    if gpu.remap_failed:
        found.append(Finding("fail", "a row could not be remapped", REPLACE))
    if gpu.remap_pending:
        found.append(Finding("fail", "a row waits to be remapped, which takes a reset", RESET))
    return found


def _retired(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    if gpu.retired is None and gpu.retire_pending is None:
        return None
    found = []
    most = limit("retired_pages", spec.verify.thresholds, gpu.name)
    if gpu.retired is not None and gpu.retired >= most:
        found.append(Finding("fail", f"{gpu.retired} pages are retired, {most} are too many", REPLACE))
    if gpu.retire_pending:
        found.append(Finding("fail", "a page waits to be retired, which takes a reset", RESET))
    return found


def _ecc(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    if not gpu.ecc and not gpu.repairs:
        return None
    found = [
        Finding("fail", f"{count} errors that could not be corrected ({name})", RESET)
        for name, count in gpu.ecc.items()
        if count and name.startswith("volatile.") and not name.endswith("_corrected")
    ]
    for what in ("SRAM threshold exceeded", "unrepairable memory"):
        if gpu.repairs.get(what):
            found.append(Finding("fail", what, REPLACE))
    life = gpu.ecc.get("aggregate.sram_uncorrectable", 0)
    if life and not gpu.repairs.get("SRAM threshold exceeded"):
        # A driver that knows NVIDIA's threshold decides by it; an older one leaves it to us.
        status = "warn" if "SRAM threshold exceeded" in gpu.repairs else "fail"
        found.append(Finding(status, f"{life} SRAM errors over its life that could not be corrected", REPLACE))
    for name in ("sram_corrected", "dram_corrected"):
        count, most = gpu.ecc.get(f"aggregate.{name}", 0), limit(name, spec.verify.thresholds, gpu.name)
        if count > most:
            found.append(Finding("fail", f"{count} corrected errors ({name}), more than {most}", REPLACE))
    for what in ("channel repair pending", "TPC repair pending"):
        if gpu.repairs.get(what):
            found.append(Finding("warn", what, RESET))
    return found


def _ecc_mode(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    now, next_ = gpu.ecc_mode
    if now is None:
        return None
    if next_ is not None and now != next_:
        return [Finding("warn", f"ECC is {on(now)}, and {on(next_)} after a reset", RESET)]
    return [] if now else [Finding("warn", "ECC is off", "nvidia-smi -i BUS -e 1, then a reset of the GPU")]


CHECKS = (
    check(
        "gpu.recovery",
        "The driver itself says that a GPU has to be reset, drained or rebooted before it is used again.",
        "nvidia-smi --query-gpu=pci.bus_id,gpu_recovery_action --format=csv",
        "drain the node, and do what the driver asks for",
        each(_recovery, "the driver asks for no recovery", "this driver does not tell"),
    ),
    check(
        "gpu.remap",
        "A bad row of memory waits to be replaced by a spare one, or there is none left. Until then the next error "
        "ends the program again.",
        "nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv",
        "pending: reset the GPU; failure: have it replaced",
        each(_remap, "no row waits to be remapped", "this GPU does not remap rows (Ampere is the first)"),
    ),
    check(
        "gpu.retired",
        "Before Ampere bad pages are retired, 64 at the most, and only a reset takes them out of use.",
        "nvidia-smi -q -d PAGE_RETIREMENT",
        "pending: reset the GPU; too many: have it replaced (verify.thresholds.retired_pages is the limit)",
        each(_retired, "no page waits to be retired", "this GPU does not retire pages"),
    ),
    check(
        "gpu.ecc",
        "Memory errors: those that could not be corrected ended a program, many that were corrected say that the "
        "memory goes bad.",
        "nvidia-smi -q -d ECC",
        "uncorrectable: reset the GPU, and have it replaced if they come again (limits: verify.thresholds)",
        each(_ecc, "no memory errors to speak of", "no ECC counters: not supported, or off"),
    ),
    check(
        "gpu.eccmode",
        "Without ECC a flipped bit is a wrong result, and nobody is told.",
        "nvidia-smi --query-gpu=pci.bus_id,ecc.mode.current,ecc.mode.pending --format=csv",
        "nvidia-smi -e 1, then a reset of the GPU",
        each(_ecc_mode, "ECC is on", "this GPU has no ECC"),
    ),
)
