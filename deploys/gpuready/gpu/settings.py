"""Checks of a GPU's PCIe link, clocks, temperature and settings, from nvidia-smi -q -x.

Sources: nvidia-smi(1) (an idle link has a lower generation, so only its maximum counts); the health
checks of Azure HPC, DCGM and gpud.
"""

from gpuready.base.words import count
from gpuready.contract.check import Verdict, passed, skip, warn
from gpuready.gpu.gpus import RESET, Problem, check, each, listed, on
from gpuready.gpu.thresholds import limit
from gpuready.model.smi import Gpu
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def _pcie(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    (width, most), (generation, able) = gpu.width, gpu.generation
    if width is None or most is None:
        return None
    if width < most:
        remedy = "drain the node and power-cycle it; if that fails, reseat the GPU"
        return [Problem("fail", f"PCIe x{width} of x{most}", remedy)]
    if generation is not None and able is not None and generation < able:
        text = f"PCIe reaches only generation {generation} of {able}"
        return [Problem("warn", text, "check the PCIe settings in the BIOS")]
    return []


def _throttle(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    why = [reason.replace("_", " ") for reason in gpu.throttled]
    if not why:
        return []
    brake = "hw_power_brake_slowdown" in gpu.throttled
    remedy = "check the power supplies" if brake else "check fans, air flow or coolant, and the GPU's temperature"
    return [Problem("warn", f"clocks are reduced: {', '.join(why)}", remedy)]


def _temperature(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    if gpu.margin is None:
        return None
    least = limit("temperature_margin", spec.verify.thresholds, gpu.name)
    if gpu.margin > least:
        return []
    text = f"{gpu.temperature} C; the margin to the slowdown temperature is {gpu.margin} C"
    return [Problem("warn", text, "check fans, air flow or coolant")]


def _persistence(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    if gpu.persistence is None:
        return None
    remedy = "systemctl enable --now nvidia-persistenced; without that unit: nvidia-smi -pm 1 after each boot"
    return [] if gpu.persistence else [Problem("warn", "persistence mode is off", remedy)]


def _mig(spec: NodeSpec, gpu: Gpu) -> list[Problem] | None:
    now, next_ = gpu.mig
    if now is None:
        return None
    found = []
    if now and not gpu.mig_devices:
        remedy = "create the instances (nvidia-mig-parted apply, or nvidia-smi mig -cgi ... -C), then gpuready apply"
        found.append(Problem("fail", "MIG is on, but has no instance", remedy))
    if next_ is not None and now != next_:
        found.append(Problem("warn", f"MIG is {on(now)}, but {on(next_)} after the next reset", RESET))
    return found


def _uniform(spec: NodeSpec, state: NodeState) -> Verdict:
    found = listed(state)
    if len(found) < 2:
        return skip("there is only one GPU")
    names = {gpu.name for gpu in found}
    if len(names) > 1:
        return warn(f"different GPU models: {', '.join(sorted(names))}", "replace the GPU that does not belong there")
    firmware = {gpu.vbios for gpu in found}
    if len(firmware) > 1:
        seen = "; ".join(f"{gpu.bus}: {gpu.vbios}" for gpu in found)
        differ = f"VBIOS versions differ: {', '.join(sorted(firmware))}"
        return warn(differ, "flash all GPUs to the newer version", seen)
    return passed(f"{count(len(found), 'GPU')} {names.pop()}, VBIOS {firmware.pop()}")


CHECKS = (
    check(
        "gpu.pcie",
        "the PCIe links have all their lanes",
        "The PCIe link uses fewer lanes than GPU and slot have: copies take at least twice as long. An idle GPU lowers "
        "its link generation, so the check judges only the maximum.",
        "nvidia-smi --query-gpu=pci.bus_id,pcie.link.width.current,pcie.link.width.max --format=csv; lspci -vv: LnkSta",
        "power-cycle the node; if that fails, reseat the GPU or its riser",
        each(_pcie, "all PCIe lanes are used", "nvidia-smi reports no PCIe link width (a virtual GPU)"),
    ),
    check(
        "gpu.throttle",
        "no GPU is slowed down by heat or power",
        "The GPU reduces its clocks because of heat or power, and the whole training job waits for it.",
        "nvidia-smi -q -d PERFORMANCE",
        "heat: check fans, air flow, coolant; power brake: check the power supplies",
        each(_throttle, "no slowdown by heat or power brake", "nvidia-smi reports no reasons"),
    ),
    check(
        "gpu.temperature",
        "no GPU is close to its temperature limit",
        "A GPU is close to the temperature at which it slows down.",
        "nvidia-smi -q -d TEMPERATURE",
        "check fans, air flow or coolant (the limit is verify.thresholds.temperature_margin)",
        each(_temperature, "temperatures are below the limit", "nvidia-smi reports no temperature limit"),
    ),
    check(
        "gpu.uniform",
        "all GPUs of the node are alike",
        "The GPUs of the node differ in model or VBIOS: the slowest one sets the pace.",
        "nvidia-smi --query-gpu=pci.bus_id,name,vbios_version --format=csv",
        "replace or flash the GPU that differs",
        _uniform,
    ),
    check(
        "gpu.mig",
        "MIG has instances where it is on",
        "MIG instances do not survive a reset or reboot. The mode stays on, so programs find no GPU.",
        "nvidia-smi -L; nvidia-smi mig -lgi",
        "create the instances (nvidia-mig-parted apply), then gpuready apply to update the CDI spec",
        each(_mig, "MIG mode is set, and no change is pending", "this GPU has no MIG"),
    ),
    check(
        "gpu.persistence",
        "persistence mode is on",
        "Without persistence mode, the driver releases a GPU that no program uses: the next program starts seconds "
        "later, and GPU settings are lost.",
        "nvidia-smi --query-gpu=pci.bus_id,persistence_mode --format=csv; systemctl status nvidia-persistenced",
        "systemctl enable --now nvidia-persistenced",
        each(_persistence, "persistence mode is on", "nvidia-smi reports no persistence mode"),
    ),
)
