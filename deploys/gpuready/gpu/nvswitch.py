"""Checks of NVSwitch and of what manages it. Without that, GPUs behind an NVSwitch do not work (cuInit returns 802).

Up to Hopper, switches are PCI devices of class 0680, and the fabric manager manages them. On HGX B200 and B300 they are
no PCI devices of the node: the fabric manager needs NVLSM and the module ib_umad. In GB200 and GB300 racks it runs on
the switch trays, and the nodes run IMEX (imex.py). A virtual machine may have such GPUs, but the fabric manager is
outside of it: so the fabric state of the GPUs counts first.
Sources: NVIDIA's Fabric Manager user guide (its version is exactly that of the driver); cuda/data/gpus.yaml for NVLink
5; nvmlGpuFabricState_t in nvml.h; kubernetes-sigs/dra-driver-nvidia-gpu#626 (2025-09: complete, but unhealthy).
"""

import re

from gpuready.contract import need
from gpuready.contract.check import EndCheck, Verdict, fail, gpu_count, passed, skip, unknown, warn
from gpuready.contract.component import NotComparable
from gpuready.gpu import bus
from gpuready.gpu.compat_host import nvlink5
from gpuready.gpu.gpus import ROOTS, check, companions, listed, of_version
from gpuready.gpu.thresholds import FABRIC_COMPLETE
from gpuready.model.smi import Gpu
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

_PACKAGE = re.compile(r"(nvidia-fabricmanager|nvidia-fabric-manager)(-[0-9]+)?(:\w+)?")
_NVLSM = re.compile(r"nvlsm(:\w+)?")
_WHERE = {"baseboard": "NVLink 5, on the board of the GPUs", "rack": "NVLink 5, in the switch trays of the rack"}
_BAD_HEALTH = {
    "bandwidth": "degraded", "route_unhealthy": "true", "access_timeout_recovery": "true", "summary": "unhealthy",
}  # fmt: skip


def in_a_fabric(state: NodeState) -> list[Gpu] | Unknown:
    """Return the GPUs that are part of a fabric."""
    try:
        return [gpu for gpu in listed(state) if gpu.fabric_state is not None]
    except NotComparable as e:
        return Unknown(unknown=str(e))
    except EndCheck:  # no GPU
        return []


def place_of(spec: NodeSpec, state: NodeState) -> str:
    """Return where the NVLink 5 switches are, unless the spec says that there are none."""
    return "" if spec.hardware.nvswitch is False else nvlink5(state)


def _complete(state: NodeState) -> bool:
    """Tell whether GPUs are part of a fabric, and each is ready."""
    members = need.value(in_a_fabric(state))
    return bool(members) and not any(_why(gpu) for gpu in members)


def switched(spec: NodeSpec, state: NodeState) -> bool:
    """Tell whether the GPUs are behind an NVSwitch, by the spec or by what the node shows."""
    members = in_a_fabric(state)
    return bool(
        spec.hardware.nvswitch is True or state.driver.pci_switches or (members and not isinstance(members, Unknown))
    )


def _present(spec: NodeSpec, state: NodeState) -> Verdict:
    want, switches, members = spec.hardware.nvswitch, state.driver.pci_switches, in_a_fabric(state)
    place = place_of(spec, state)
    if want == "auto" and not switches and not members and not place:
        return skip("no NVSwitch")
    if not switches and not place:
        need.value(members)
    seen = f"{len(switches)} on the PCI bus" if switches else _WHERE.get(place, "the GPUs are part of a fabric")
    there = bool(switches or members or place)
    if want is True and not there:
        return fail("no NVSwitch: none on the PCI bus, and no GPU is part of a fabric")
    if want is False and there:
        remedy = "correct hardware.nvswitch in the spec, or use the right machine type"
        return fail(f"unexpected NVSwitch: {seen}", remedy)
    return passed(f"NVSwitch: {seen}" if there else "no NVSwitch, as the spec says")


def _version(spec: NodeSpec, state: NodeState) -> Verdict:
    place = place_of(spec, state)
    if place == "rack":
        return skip("the fabric manager runs on the switch trays of the rack")
    if not state.driver.pci_switches and not place:
        return skip("no NVSwitch on the PCI bus")
    driver = state.driver.loaded
    found = companions(state, _PACKAGE)
    complete = bool(place) and _complete(state)
    if not found and complete:
        return skip("the fabric is complete, and its fabric manager is not a package of this node")
    if not found and place:
        return fail("no fabric manager package is installed", _NVLINK5_FIX)
    if not found:
        return unknown("no fabric manager package is installed", "if it is installed another way: nv-fabricmanager -v")
    if not any(of_version(version, driver) for version in found.values()):
        installed = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
        return fail(f"the driver is {driver}, but the fabric manager is {installed}")
    if place and not complete and (lacking := _lacking(state)):
        return fail(f"the fabric manager cannot work: {' and '.join(lacking)}", _NVLINK5_FIX)
    return passed(f"driver and fabric manager are {driver}")


_NVLINK5_FIX = (
    "driver: {policy: install} installs all of it; by hand: install nvlsm and the fabric manager of the driver's full "
    "version, modprobe ib_umad and list it in /etc/modules-load.d, then systemctl restart nvidia-fabricmanager"
)


def _lacking(state: NodeState) -> list[str]:
    """Return what an NVLink 5 board lacks beside the fabric manager."""
    lacking = [] if companions(state, _NVLSM) else ["NVLSM (package nvlsm) is not installed"]
    return lacking + ([] if "ib_umad" in state.marks else ["the kernel module ib_umad is not loaded"])


def _state(spec: NodeSpec, state: NodeState) -> Verdict:
    members, place = in_a_fabric(state), place_of(spec, state)
    if not state.driver.pci_switches and not members and place != "baseboard":
        return skip("no NVSwitch")
    services = set(bus.fabric_services(state))
    if place == "baseboard" and state.systemd and not _complete(state):
        services.add(bus.FABRIC_MANAGER)
    for name in services:
        unit = need.value(state.units).get(name)
        if unit is None or unit.active != "active":
            return fail(f"{name} is {unit.active if unit and unit.load != 'not-found' else 'not installed'}")
    gpus = need.value(members)
    wrong = [(gpu, why) for gpu in gpus if (why := _why(gpu))]
    if wrong:
        evidence = "; ".join(f"{gpu.bus}: {why}" for gpu, why in wrong[:8])
        return fail(
            f"{len(wrong)} of {gpu_count(len(gpus))}: {wrong[0][1]}", _TRAYS if place == "rack" else "", evidence
        )
    degraded = [f"{gpu.bus}: {name} {value}" for gpu in gpus for name, value in gpu.fabric_health.items()
            if value.lower() == _BAD_HEALTH.get(name)]  # fmt: skip
    if degraded:
        return warn(f"the fabric is degraded: {degraded[0]}", "drain the node, reset all GPUs", "; ".join(degraded[:8]))
    return passed(f"the fabric is complete for {gpu_count(len(gpus))}" if gpus else f"{bus.FABRIC_MANAGER} is active")


_TRAYS = (
    "look at the fabric manager on the switch trays of the rack (NVOS), at the cables, and at other nodes; then reset "
    "all GPUs or reboot"
)


def _why(gpu: Gpu) -> str:
    state, status = FABRIC_COMPLETE
    if gpu.fabric_state != state:
        return f"the fabric state is {gpu.fabric_state}"
    return "" if gpu.fabric_status == status else f"the fabric status is {gpu.fabric_status or 'missing'}"


CHECKS = (
    check(
        "gpu.nvswitch",
        "the node has an NVSwitch, or none, as expected",
        "The node has an NVSwitch that the spec excludes, or lacks one: a wrong machine type, or a switch tray is off.",
        "lspci -d 10de: -n | grep 0680; nvidia-smi -q | grep -A3 Fabric",
        "use the right machine type, or correct hardware.nvswitch in the spec",
        _present,
    ),
    check(
        "driver.fabricmanager",
        "the fabric manager has the driver's version, and what it needs",
        "The fabric manager must have exactly the driver's version. On HGX B200 and B300, it also needs NVLSM (NVLink "
        "Subnet Manager) and the kernel module ib_umad. Otherwise it stops at its start, and CUDA returns error 802 "
        "(system not yet initialized).",
        "nv-fabricmanager --version; cat /proc/driver/nvidia/version; journalctl -u nvidia-fabricmanager; lsmod"
        " | grep ib_umad",
        "install the fabric manager of the driver's full version, then systemctl restart nvidia-fabricmanager",
        _version,
        after=("driver.loaded",),
    ),
    check(
        "gpu.fabric",
        "the fabric manager has trained the links",
        "GPUs behind an NVSwitch wait for the fabric manager, which in GB200 and GB300 racks runs on the switch trays. "
        "Until it has trained the links, CUDA returns error 802.",
        "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric",
        "systemctl restart nvidia-fabricmanager; if that does not help, reset all GPUs or reboot",
        _state,
        after=(*ROOTS, "driver.fabricmanager"),
    ),
)
