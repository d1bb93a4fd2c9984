"""Verdicts on what lies between CPU, GPUs and NICs: NUMA balancing, governors, IOMMU, and PCIe switches."""

from typing import Any

from gpuready.base.facts import Unknown
from gpuready.model.state import Dma, Driver, NodeState
from tests.components.rdma.test_rdma_verdicts import port
from tests.verdicts import Row, held, is_unknown, passes, skips, warns

PCI = ("0000:1b:00.0 0x030200 0x2335", "0000:43:00.0 0x030200 0x2335")
#: Two GPUs and a NIC below switches with ACS off, and on as the kernel turns it on: SV, RR, CR, UF.
ANSWER = """device 0000:1b:00.0 2937
acs 0000:19:00.0 0000
acs 0000:18:00.0 0000
device 0000:43:00.0 2937
acs 0000:41:02.0 0000
"""
REDIRECTS = ANSWER.replace("19:00.0 0000", "19:00.0 001d")


def node(pci: tuple[str, ...] = PCI, rdma: dict[str, str] | None = None, **dma: Any) -> NodeState:
    return NodeState(driver=Driver(pci=pci), rdma=rdma or {}, dma=Dma(**dma))


def told(out: str | None, rc: int = 0, pci: tuple[str, ...] = PCI) -> NodeState:
    said = {} if out is None else {"pcie": {"rc": rc, "out": out}}
    return node(pci).model_copy(update={"active": NodeState(active={"done": {}, **said}).active})


CUT = told("").model_copy(update={"active": {"pcie": Unknown(unknown="its answer is cut off")}})

VERDICTS: list[Row] = [
    passes("node.numa", "off, with 2 NUMA nodes", node(numa_nodes=2, numa_balancing="0")),
    passes("node.numa", "off", node(numa_nodes=2)),
    warns("node.numa", "kernel.numa_balancing is 1, with 2 NUMA nodes", node(numa_nodes=2, numa_balancing="1")),
    skips("node.numa", "one NUMA node", node(numa_nodes=1, numa_balancing="1")),
    skips("node.numa", "no NVIDIA GPU", node(pci=(), numa_nodes=2, numa_balancing="1")),
    passes("node.governor", "performance", node(governors=("performance",))),
    warns("node.governor", "governor powersave", node(governors=("performance", "powersave"))),
    skips("node.governor", "does not scale", node()),
    passes("pcie.iommu", "no IOMMU", node()),
    passes("pcie.iommu", "passes through: 2", node(iommu={"0000:1b:00.0": "identity", "0000:43:00.0": "identity"})),
    warns("pcie.iommu", "(DMA-FQ): 0000:1b:00.0", node(iommu={"0000:1b:00.0": "DMA-FQ", "0000:43:00.0": "identity"})),
    skips("pcie.iommu", "no RDMA port", node(pci=PCI[:1], iommu={"0000:1b:00.0": "DMA-FQ"})),
    warns("pcie.iommu", "(DMA)", node(pci=PCI[:1], rdma=port(), iommu={"0000:1b:00.0": "DMA"})),
    passes("pcie.acs", "to each other: 3", told(ANSWER)),
    warns("pcie.acs", "1 of 3 PCIe switch ports redirect", told(REDIRECTS)),
    passes("pcie.acs", "that let devices talk", told(REDIRECTS.replace("001d", "005d"))),  # ATS goes directly
    skips("pcie.acs", "no PCIe switch", told("device 0000:00:05.0 2937\n")),
    skips("pcie.acs", "virtual machine", told("")),
    skips("pcie.acs", "pciutils", told(None)),
    skips("pcie.acs", "one GPU and no RDMA port", told(REDIRECTS, pci=PCI[:1])),
    is_unknown("pcie.acs", "setpci gave no answer", told("no answer within 15 s\n", rc=124)),
    is_unknown("pcie.acs", "cut off", CUT),
    passes("pcie.ordering", "writes: 2", told(ANSWER)),
    warns("pcie.ordering", "1 of 2 GPUs and RDMA devices", told(ANSWER.replace("2937", "2927", 1))),
    is_unknown("pcie.ordering", "cut off", CUT),
]
test_verdict = held(VERDICTS)
