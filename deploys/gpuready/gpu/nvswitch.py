"""Checks of NVSwitch and the fabric manager. Without it, GPUs behind an NVSwitch do not work (cuInit returns 802).

Switches up to Hopper are PCI devices of class 0680. Later ones are not PCI devices of the node: only the fabric state
of the GPUs shows them. Sources: NVIDIA's Fabric Manager user guide (its version is exactly that of the driver);
nvmlGpuFabricState_t in nvml.h.
"""

import re

from gpuready.core import need
from gpuready.core.check import EndCheck, Verdict, fail, gpu_count, passed, skip, unknown, warn
from gpuready.core.component import NotComparable
from gpuready.gpu.facts.smi import Gpu
from gpuready.gpu.gpus import ROOTS, check, companions, listed, of_version
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown

UNIT = "nvidia-fabricmanager.service"
_PACKAGE = re.compile(r"(nvidia-fabricmanager|nvidia-fabric-manager)(-[0-9]+)?(:\w+)?")
_BAD_HEALTH = {"bandwidth": "degraded", "route_unhealthy": "true", "access_timeout_recovery": "true"}


def _in_a_fabric(state: NodeState) -> list[Gpu] | Unknown:
    """Return the GPUs that are part of a fabric."""
    try:
        return [gpu for gpu in listed(state) if gpu.fabric_state is not None]
    except NotComparable as e:
        return Unknown(unknown=str(e))
    except EndCheck:  # no GPU
        return []


def switched(spec: NodeSpec, state: NodeState) -> bool:
    """Tell whether the GPUs are behind an NVSwitch, by the spec or by what the node shows."""
    members = _in_a_fabric(state)
    return bool(
        spec.hardware.nvswitch is True or state.driver.pci_switches or (members and not isinstance(members, Unknown))
    )


def _present(spec: NodeSpec, state: NodeState) -> Verdict:
    want, switches, members = spec.hardware.nvswitch, state.driver.pci_switches, _in_a_fabric(state)
    if want == "auto" and not switches and not members:
        return skip("no NVSwitch")
    if not switches:
        need.value(members)
    seen = f"{len(switches)} on the PCI bus" if switches else "the GPUs are part of a fabric"
    there = bool(switches or members)
    if want is True and not there:
        return fail("no NVSwitch: none on the PCI bus, and no GPU is part of a fabric")
    if want is False and there:
        remedy = "correct hardware.nvswitch in the spec, or use the right machine type"
        return fail(f"unexpected NVSwitch: {seen}", remedy)
    return passed(f"NVSwitch: {seen}" if there else "no NVSwitch, as the spec says")


def _version(spec: NodeSpec, state: NodeState) -> Verdict:
    if not state.driver.pci_switches:
        return skip("no NVSwitch on the PCI bus")
    driver = state.driver.loaded
    found = companions(state, _PACKAGE)
    if not found:
        return unknown("no fabric manager package is installed", "if it is installed another way: nv-fabricmanager -v")
    if any(of_version(version, driver) for version in found.values()):
        return passed(f"driver and fabric manager are {driver}")
    installed = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    return fail(f"the driver is {driver}, but the fabric manager is {installed}")


def _state(spec: NodeSpec, state: NodeState) -> Verdict:
    switches, members = state.driver.pci_switches, _in_a_fabric(state)
    if not switches and not members:
        return skip("no NVSwitch")
    unit = need.value(state.units).get(UNIT) if switches else None
    if switches and state.systemd and (unit is None or unit.active != "active"):
        return fail(f"{UNIT} is {unit.active if unit else 'not installed'}")
    gpus = need.value(members)
    wrong = [(gpu, why) for gpu in gpus if (why := _why(gpu))]
    if wrong:
        evidence = "; ".join(f"{gpu.bus}: {why}" for gpu, why in wrong[:8])
        return fail(f"{len(wrong)} of {len(gpus)} GPUs: {wrong[0][1]}", evidence=evidence)
    degraded = [f"{gpu.bus}: {name} {value}" for gpu in gpus for name, value in gpu.fabric_health.items()
            if value.lower() == _BAD_HEALTH.get(name)]  # fmt: skip
    if degraded:
        return warn(f"the fabric is degraded: {degraded[0]}", "drain the node, reset all GPUs", "; ".join(degraded[:8]))
    return passed(f"the fabric is complete for {gpu_count(len(gpus))}" if gpus else f"{UNIT} is active")


def _why(gpu: Gpu) -> str:
    if gpu.fabric_state != "Completed":
        return f"the fabric state is {gpu.fabric_state}"
    return "" if gpu.fabric_status == "Success" else f"the fabric status is {gpu.fabric_status or 'missing'}"


CHECKS = (
    check(
        "gpu.nvswitch",
        "The node has an NVSwitch that the spec excludes, or lacks one: a wrong machine type, or a switch tray is off.",
        "lspci -d 10de: -n | grep 0680; nvidia-smi -q | grep -A3 Fabric",
        "use the right machine type, or correct hardware.nvswitch in the spec",
        _present,
    ),
    check(
        "driver.fabricmanager",
        "The fabric manager must have exactly the driver's version. Another version stops at its start, and CUDA "
        "returns error 802 (system not yet initialized).",
        "nv-fabricmanager --version; cat /proc/driver/nvidia/version; journalctl -u nvidia-fabricmanager",
        "install the fabric manager of the driver's full version, then systemctl restart nvidia-fabricmanager",
        _version,
        after=("driver.loaded",),
    ),
    check(
        "gpu.fabric",
        "GPUs behind an NVSwitch wait for the fabric manager. Until it has trained the links, CUDA returns error 802.",
        "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric",
        "systemctl restart nvidia-fabricmanager; if that does not help, reset all GPUs or reboot",
        _state,
        after=(*ROOTS, "driver.fabricmanager"),
    ),
)
