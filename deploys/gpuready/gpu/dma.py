"""Checks of what lies between CPU, GPUs and NICs besides the links: IOMMU, PCIe switches, page migration, CPU clocks.

Sources: NVIDIA's NCCL guide (GPU troubleshooting: ACS, IOMMU) and Grace CPU benchmarking guide (numa_balancing,
governor); Linux' pci_regs.h (bits of ACS and of the device control register) and its ABI of iommu_groups.
"""

import functools
import re

from gpuready.contract import need
from gpuready.contract.check import Check, EndCheck, Level, Verdict, has_gpu, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Dma, NodeState
from gpuready.network.ports import ports

#: ACS control: requests or completions between two ports of a switch go up to the root, or only where a table says;
#: unless addresses that a device has translated itself (ATS) may go directly.
_REDIRECTS, _DIRECT = 0x04 | 0x08 | 0x20, 0x40
#: Device control: the device may mark its writes as relaxed.
_RELAXED = 0x10
#: A line of the answer: what, PCI address, the register.
_LINE = re.compile(r"^(acs|device) ([0-9a-f:.]{1,20}) ([0-9a-f]{1,8})$", re.M)


def _node(state: NodeState) -> Dma:
    if not has_gpu(state):
        raise EndCheck(skip("no NVIDIA GPU on this node"))
    return state.dma


def _pairs(state: NodeState) -> None:
    """End the check on a node with one GPU and no RDMA port: no device has another one to talk to."""
    if len(state.driver.pci_gpus) + len(ports(state)) < 2:
        raise EndCheck(skip("one GPU and no RDMA port: no device talks to another one"))


def _numa(spec: NodeSpec, state: NodeState) -> Verdict:
    dma = _node(state)
    if dma.numa_nodes < 2:
        return skip("the node has one NUMA node")
    if dma.numa_balancing in ("", "0"):
        return passed(f"off, with {dma.numa_nodes} NUMA nodes")
    return warn(f"kernel.numa_balancing is {dma.numa_balancing}, with {dma.numa_nodes} NUMA nodes")


def _governor(spec: NodeSpec, state: NodeState) -> Verdict:
    governors = _node(state).governors
    if not governors:
        return skip("the kernel does not scale the CPUs' clocks: a virtual machine, or the firmware does it")
    if others := [name for name in governors if name != "performance"]:
        return warn(f"CPUs have the governor {', '.join(others)}")
    return passed("all CPUs have the governor performance")


def _iommu(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _node(state).iommu
    _pairs(state)
    if not found:
        return passed("no IOMMU is between GPUs, NICs and memory")
    if translated := sorted(address for address, kind in found.items() if kind != "identity"):
        kinds = ", ".join(sorted({found[address] for address in translated}))
        return warn(f"the IOMMU translates addresses ({kinds}): {', '.join(translated[:16])}")
    return passed(f"devices whose addresses the IOMMU passes through: {len(found)}")


def _registers(state: NodeState) -> dict[str, dict[str, int]]:
    """Return the registers by what they are of, and by address."""
    _node(state)
    _pairs(state)
    if "done" in state.active and "pcie" not in state.active:
        raise EndCheck(skip("setpci is not installed (package pciutils), or no driver is loaded"))
    answer = need.answer(state, "pcie")
    if answer.rc in (124, 137):
        raise EndCheck(unknown("setpci gave no answer"))
    found = _parsed(answer.out)
    if not found["device"]:
        raise EndCheck(skip("no device shows its PCIe registers: a virtual machine's, or none of PCIe"))
    return found


@functools.lru_cache(maxsize=64)  # two checks read the same answer
def _parsed(text: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {"acs": {}, "device": {}}
    for what, address, value in _LINE.findall(text):
        found[what][address] = int(value, 16)
    return found


def _acs(spec: NodeSpec, state: NodeState) -> Verdict:
    switches = _registers(state)["acs"]
    if not switches:
        return skip("no PCIe switch with ACS is above a GPU or an RDMA device")
    redirect = sorted(port for port, value in switches.items() if value & _REDIRECTS and not value & _DIRECT)
    if redirect:
        return warn(f"{len(redirect)} of {len(switches)} PCIe switch ports redirect traffic between devices to the CPU",
                    evidence=", ".join(f"{port} {switches[port]:04x}" for port in redirect[:16]))  # fmt: skip
    return passed(f"PCIe switch ports that let devices talk to each other: {len(switches)}")


def _ordering(spec: NodeSpec, state: NodeState) -> Verdict:
    devices = _registers(state)["device"]
    if strict := sorted(address for address, value in devices.items() if not value & _RELAXED):
        return warn(f"{len(strict)} of {len(devices)} GPUs and RDMA devices may not relax the order of their writes",
                    evidence=", ".join(strict[:16]))  # fmt: skip
    return passed(f"GPUs and RDMA devices that may relax the order of their writes: {len(devices)}")


class AskPcie(Question, template="gpu/ask-pcie"):
    """Read the registers of GPUs, RDMA devices and the switches above them."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskPcie({"pcie": 15}),)


CHECKS = (
    Check(
        "node.numa",
        "the kernel does not move pages between NUMA nodes by itself",
        Level.effective,
        "Automatic NUMA balancing unmaps pages to see who uses them, and moves them. Programs with much memory stall, "
        "and so do GPUs that wait for them, or that read host memory over a coherent link (Grace).",
        "cat /proc/sys/kernel/numa_balancing (0: off); ls -d /sys/devices/system/node/node*",
        "sysctl -w kernel.numa_balancing=0, and the same line in /etc/sysctl.d/90-numa.conf; bind ranks to the NUMA "
        "node of their GPU (nvidia-smi topo -m)",
        _numa,
    ),
    Check(
        "node.governor",
        "the CPUs do not slow down to save power",
        Level.effective,
        "With another governor than performance, a CPU that only launches kernels or polls a NIC seems idle, and runs "
        "slowly: small transfers and launches take longer, and ranks differ.",
        "cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor | sort | uniq -c",
        "cpupower frequency-set -g performance; to keep it: tuned-adm profile hpc-compute (RHEL), or cpufrequtils or "
        "linux-cpupower with a service (Debian, Ubuntu)",
        _governor,
    ),
    Check(
        "pcie.iommu",
        "no IOMMU translates what GPUs and NICs send",
        Level.effective,
        "An IOMMU that translates sends what devices exchange through the CPU, and each new mapping costs time: "
        "GPUDirect (P2P and RDMA) is slow, or hangs. In pass-through mode it does not.",
        "cat /sys/bus/pci/devices/ADDRESS/iommu_group/type (identity: pass-through; DMA and DMA-FQ: it translates)",
        "boot with iommu=pt (Arm: iommu.passthrough=1), or turn VT-d or AMD-Vi off in the BIOS, if this node runs no "
        "virtual machines",
        _iommu,
    ),
    Check(
        "pcie.acs",
        "PCIe switches let GPUs and NICs talk to each other",
        Level.effective,
        "With ACS redirection, a switch sends what a GPU writes to a NIC or to another GPU below it up to the CPU and "
        "back: GPUDirect is slow, or hangs. The kernel turns it on with an IOMMU.",
        "setpci -s PORT ECAP_ACS+6.w (bits 2, 3 and 5 redirect); lspci -vvv | grep ACSCtl (ReqRedir+)",
        "turn ACS off in the BIOS; or after each boot, for each port: setpci -s PORT ECAP_ACS+6.w=0000. A node that "
        "gives its devices to virtual machines needs ACS: there use ATS on the NIC",
        _acs,
        active=True,
        advisory=True,
    ),
    Check(
        "pcie.ordering",
        "GPUs and RDMA devices may relax the order of their writes",
        Level.effective,
        "Without relaxed ordering, a write waits for the ones before it. RDMA to the memory of a GPU in another PCIe "
        "branch, and in virtual machines, then reaches only a part of the line rate.",
        "lspci -vvv -s ADDRESS | grep RlxdOrd; setpci -s ADDRESS CAP_EXP+8.w (bit 4)",
        "turn relaxed ordering on in the BIOS; for one device until the next boot: setpci -s ADDRESS "
        "CAP_EXP+8.w=10:10. Leave it off if the kernel turned it off for a faulty root port (dmesg | grep -i relaxed)",
        _ordering,
        active=True,
        advisory=True,
    ),
)
