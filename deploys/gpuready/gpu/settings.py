"""A GPU's link, clocks, heat and settings, from nvidia-smi -q -x.

Sources: nvidia-smi(1) (the generation of an idle link is lower, so only the highest possible one counts); the health
checks of Azure HPC, DCGM and gpud.
"""

from __future__ import annotations

from gpuready.core.check import Verdict, passed, skip, warn
from gpuready.gpu.facts.smi import Gpu
from gpuready.gpu.gpus import RESET, Finding, check, each, listed, on
from gpuready.gpu.thresholds import limit
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState


def _pcie(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    (width, most), (generation, able) = gpu.width, gpu.generation
    if width is None or most is None:
        return None
    if width < most:
        return [Finding("fail", f"PCIe x{width} of x{most}", "drain the node, power-cycle it; then reseat the GPU")]
    if generation is not None and able is not None and generation < able:
        return [Finding("warn", f"PCIe goes no further than generation {generation} of {able}", "look at the BIOS")]
    return []


def _throttle(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    why = [reason.replace("_", " ") for reason in gpu.throttled]
    if not why:
        return []
    brake = "hw_power_brake_slowdown" in gpu.throttled
    cure = "look at the power supplies" if brake else "look at fans, air or coolant, and the GPU's temperature"
    return [Finding("warn", f"clocks are lowered: {', '.join(why)}", cure)]


def _temperature(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    if gpu.margin is None:
        return None
    least = limit("temperature_margin", spec.verify.thresholds, gpu.name)
    if gpu.margin > least:
        return []
    return [
        Finding("warn", f"{gpu.temperature} C: {gpu.margin} C before it slows down", "look at fans, air or coolant")
    ]


def _persistence(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    if gpu.persistence is None:
        return None
    cure = "systemctl enable --now nvidia-persistenced; without that unit: nvidia-smi -pm 1 after each boot"
    return [] if gpu.persistence else [Finding("warn", "persistence mode is off", cure)]


def _mig(spec: NodeSpec, gpu: Gpu) -> list[Finding] | None:
    now, next_ = gpu.mig
    if now is None:
        return None
    found = []
    if now and not gpu.mig_devices:
        cure = "make the instances again (nvidia-mig-parted apply, or nvidia-smi mig -cgi ... -C), then gpuready apply"
        found.append(Finding("fail", "MIG is on, and there is no instance", cure))
    if next_ is not None and now != next_:
        found.append(Finding("warn", f"MIG is {on(now)}, and {on(next_)} after a reset", RESET))
    return found


def _uniform(spec: NodeSpec, state: NodeState) -> Verdict:
    found = listed(state)
    if isinstance(found, Verdict):
        return found
    if len(found) < 2:
        return skip("one GPU")
    names = {gpu.name for gpu in found}
    if len(names) > 1:
        return warn(f"different GPUs: {', '.join(sorted(names))}", "have the one that does not belong there exchanged")
    firmware = {gpu.vbios for gpu in found}
    if len(firmware) > 1:
        seen = "; ".join(f"{gpu.bus}: {gpu.vbios}" for gpu in found)
        return warn(f"VBIOS versions differ: {', '.join(sorted(firmware))}", "have all flashed to the newer one", seen)
    return passed(f"{len(found)} GPUs {names.pop()}, VBIOS {firmware.pop()}")


CHECKS = (
    check(
        "gpu.pcie",
        "The PCIe link has fewer lanes than GPU and slot have: copies take twice as long or worse. The generation "
        "falls when a GPU idles, so only the highest possible one is judged.",
        "nvidia-smi --query-gpu=pci.bus_id,pcie.link.width.current,pcie.link.width.max --format=csv; lspci -vv: LnkSta",
        "power-cycle the node; then reseat the GPU or its riser",
        each(_pcie, "all PCIe lanes are used", "the width of the PCIe link is not told (a virtual GPU)"),
    ),
    check(
        "gpu.throttle",
        "The GPU lowers its clocks because of heat or power, and a whole training run waits for it.",
        "nvidia-smi -q -d PERFORMANCE",
        "heat: fans, air, coolant; power brake: the power supplies",
        each(_throttle, "no slowdown by heat or power brake", "not told"),
    ),
    check(
        "gpu.temperature",
        "A GPU is about to slow down by heat.",
        "nvidia-smi -q -d TEMPERATURE",
        "look at fans, air or coolant (verify.thresholds.temperature_margin is the limit)",
        each(_temperature, "cool enough", "its temperature limits are not told"),
    ),
    check(
        "gpu.uniform",
        "GPUs of one node differ in model or VBIOS: the slowest one sets the pace.",
        "nvidia-smi --query-gpu=pci.bus_id,name,vbios_version --format=csv",
        "have the odd one exchanged or flashed",
        _uniform,
    ),
    check(
        "gpu.mig",
        "Instances of MIG do not outlive a reset or reboot: the mode stays on, and no program finds a GPU.",
        "nvidia-smi -L; nvidia-smi mig -lgi",
        "make the instances again (nvidia-mig-parted apply), then gpuready apply for the CDI spec",
        each(_mig, "MIG is as it will be", "this GPU has no MIG"),
    ),
    check(
        "gpu.persistence",
        "Without persistence the driver lets go of a GPU when nobody uses it: programs start seconds later, and "
        "settings are lost.",
        "nvidia-smi --query-gpu=pci.bus_id,persistence_mode --format=csv; systemctl status nvidia-persistenced",
        "systemctl enable --now nvidia-persistenced",
        each(_persistence, "persistence mode is on", "not told"),
    ),
)
