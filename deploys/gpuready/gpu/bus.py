"""Tell which GPUs on the PCI bus the driver should drive, and which services their fabric needs. Pure.

A GPU that stops answering stays on the bus, so the bus shows that nvidia-smi lists too few. Not every GPU there is the
driver's: vfio-pci hands one to a virtual machine, nouveau may hold one, an option of the module excludes one, and a
display adapter may be too old for the driver.
Sources: NVIDIA/aicr#1858 and NVIDIA/NVSentinel#684 (7 of 8 GPUs, all 8 on the bus); the driver's README
(/proc/driver/nvidia, "GPU Excluded"); sysfs-bus-pci (drivers, physfn); cuda/data/gpus.yaml for what a driver supports;
NVIDIA's Fabric Manager user guide.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from gpuready.base.versions import leading
from gpuready.cuda import tables
from gpuready.gpu.compat_host import nvlink5
from gpuready.model.state import NodeState

FABRIC_MANAGER = "nvidia-fabricmanager.service"


@dataclass(frozen=True)
class Unlisted:
    """A GPU on the bus that nvidia-smi does not list. ``lost``: it should."""

    address: str
    lost: bool
    why: str

    def __str__(self) -> str:
        return f"{self.address}: {self.why}"


def unlisted(state: NodeState, listed: Collection[str]) -> tuple[Unlisted, ...]:
    """Return the GPUs on the bus that are not in ``listed`` (bus ids). A driver must be loaded.

    A state of an older gpuready does not say which driver holds a GPU, so nothing is known of its GPUs.
    """
    known = {_plain(bus) for bus in listed}
    rows = [row for line in state.driver.pci_gpus if len(row := line.split()) == 4]
    return tuple(_judged(bus, id, holder, state) for bus, _, id, holder in rows if _plain(bus) not in known)


def expected(state: NodeState) -> int:
    """Return how many GPUs nvidia-smi should list. Before a driver is loaded, those that it may get."""
    if not state.driver.loaded:
        holders = (line.split()[3:] for line in state.driver.pci_gpus)
        return sum(holder in ([], ["none"], ["nouveau"]) for holder in holders)
    return len(driven(state)) + sum(each.lost for each in unlisted(state, state.driver.gpus))


def driven(state: NodeState) -> list[str]:
    """Return the GPUs that the driver lists itself, without those that it leaves out."""
    return [gpu for gpu in state.driver.gpus if gpu not in state.driver.excluded]


def fabric_services(state: NodeState) -> tuple[str, ...]:
    """Return the services that GPUs behind an NVSwitch need on this node.

    The switches of NVLink 5 are not on the bus. In a virtual machine, the fabric manager runs outside. So with
    NVLink 5, the service counts only if it is enabled on this node.
    """
    managed = state.driver.pci_switches or (
        nvlink5(state) == "baseboard" and state.unit(FABRIC_MANAGER).enabled == "enabled"
    )
    return (FABRIC_MANAGER,) if managed and state.systemd else ()


def _plain(bus: str) -> str:
    """Drop the zeros in front of the domain: sysfs has four digits, nvidia-smi has eight."""
    return bus.lower().lstrip("0")


def _judged(address: str, id: str, holder: str, state: NodeState) -> Unlisted:
    if holder not in ("nvidia", "none"):
        return Unlisted(address, False, f"{holder} holds it")
    if address in state.driver.excluded:
        return Unlisted(address, False, "an option of the nvidia module excludes it")
    if holder == "nvidia":
        return Unlisted(address, True, "the driver holds it, but nvidia-smi does not list it")
    gpu = tables.device(int(id, 16)) if re.fullmatch(r"0x[0-9a-f]{4}", id) else tables.Device()
    if not gpu.architecture:
        return Unlisted(address, False, f"no driver holds it, and its device id {id} is not known")
    if leading(state.driver.loaded, 1) > (tables.driver_branches(gpu.architecture)[1],):
        return Unlisted(address, False, f"driver {state.driver.loaded} does not support {gpu.model} any more")
    if gpu.open_module == "never" and state.driver.open_module:
        return Unlisted(address, False, f"the open kernel module does not support {gpu.model}")
    return Unlisted(address, True, "no driver holds it")
