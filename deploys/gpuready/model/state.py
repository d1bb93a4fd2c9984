"""NodeState: a node as one probe saw it. Frozen, and equal after a round trip through JSON.

A part that could not be read is an :class:`Unknown` with the reason. A part that the node does not have is None.
Nothing here judges; components and checks do.
"""

import re

from pydantic import Field

from gpuready.base.errors import brief
from gpuready.base.facts import Answer, Cri, Facts, File, Package, Tool, Unit, Unknown
from gpuready.components.docker.state import Container, Docker
from gpuready.components.driver.state import Boots
from gpuready.components.ldso.state import Linker
from gpuready.components.wheels.state import Environment
from gpuready.model.kernel_log import KernelLog
from gpuready.model.leftovers import Leftovers
from gpuready.model.network import Network
from gpuready.model.slurm import SlurmNode

__all__ = [
    "OS",
    "Container",
    "Cri",
    "Docker",
    "Driver",
    "File",
    "Linker",
    "NodeState",
    "Package",
    "Tool",
    "Unit",
    "Unknown",
]


class OS(Facts):
    """/etc/os-release (os-release(5))."""

    id: str = ""
    id_like: tuple[str, ...] = ()
    version_id: str = ""
    name: str = ""


class Driver(Facts):
    """The NVIDIA driver: the loaded module, the files on disk, and the GPUs that it lists.

    ``owner``: where it came from: packages, runfile, mount (of the image or the platform), operator, or empty.
    ``excluded``: the GPUs that the driver leaves out, because an option of its module says so.
    ``pci``: NVIDIA's devices, each as ADDRESS CLASS ID DRIVER; the kernel driver that holds it, or ``none``.
    ``smi``: nvidia-smi -q -x without the supported clocks.
    """

    owner: str = ""
    module_version: str = ""
    proc_version: str = ""
    open_module: bool = False
    on_disk_version: str = ""
    nodes: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    smi: str | Unknown | None = None
    log: KernelLog | Unknown | None = None

    @property
    def loaded(self) -> str:
        """The version of the loaded driver; empty if none is loaded."""
        return self.proc_version or self.module_version

    @property
    def gpu_nodes(self) -> tuple[str, ...]:
        """The device nodes of GPUs."""
        return tuple(node for node in self.nodes if re.fullmatch(r"/dev/nvidia[0-9]+", node))

    @property
    def pci_gpus(self) -> tuple[str, ...]:
        """The lines of ``pci`` for GPUs: display and 3D controllers."""
        return self._of_class("0x0300", "0x0302")

    @property
    def pci_switches(self) -> tuple[str, ...]:
        """The lines of ``pci`` for NVSwitches up to Hopper; later ones are not PCI devices of the node."""
        return self._of_class("0x068000")

    def _of_class(self, *classes: str) -> tuple[str, ...]:
        rows = ((line, line.split()) for line in self.pci)
        return tuple(line for line, words in rows if len(words) > 1 and words[1].startswith(classes))


class Dma(Facts):
    """What decides how fast data gets from CPU to GPU and from GPU to NIC, besides the links.

    ``numa_nodes``: how many there are. ``numa_balancing``: kernel.numa_balancing; empty: the kernel has none.
    ``governors``: those of the CPUs' clocks; none: no frequency scaling. ``iommu``: the type of the IOMMU group by PCI
    address, for GPUs and RDMA devices; a device without a group is not in it.
    """

    numa_nodes: int = 0
    numa_balancing: str = ""
    governors: tuple[str, ...] = ()
    iommu: dict[str, str] = Field(default_factory=dict)


#: Stands in the view of the node that `apply --image` makes for itself (verbs/apply/image.py), and nowhere else.
IMAGE = "/run/gpuready.image"


class NodeState(Facts):
    """Everything that one probe read. A ``masked`` state can be planned and verified, but not applied.

    ``capabilities``: root's, from CapEff. ``memlock``: the limit of the probe's session.
    ``rdma_stuck``: why ``rdma`` could not be read. ``abandoned``: the probe's commands that still ran at its limit,
    without those in state D, which no signal ends.
    ``unloaded``: files of containerd that are newer than its start, and daemon.json if it is newer than dockerd's.
    ``nccl``: lines that set NCCL variables in files that every login reads, as FILE:LINE. ``netns``: the owners of
    network namespaces other than the host's, if ib_core is loaded. ``initramfs``: images of installed kernels.
    ``initramfs_old``: the images without gpuready's modprobe.d file. ``boot_options``: the ib_core options of each boot
    entry.
    ``slurm``: the node as Slurm's controller has it; None if no slurmd runs here.
    ``wheels``: .dist-info directories of the wheels that gpuready installed, and the hash that pip recorded there.
    ``environments``: the inspected Python environments, by directory.
    ``lock``: who changes the node now, as the node's lock names its owner. ``step``: the step that runs now.
    """

    format: int = 1
    masked: bool = False
    os: OS = OS.model_construct()
    kernel: str = ""
    machine: str = ""
    boot_id: str = ""
    init: str = ""
    systemd: bool = False
    cmdline: str = ""
    clock: int = 0
    uptime: int = 0
    dockerd_command: tuple[str, ...] = ()
    cloud_init: str = "none"
    reboot_required: bool = False
    have: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    memlock: str = ""
    capabilities: str = Field(default="", pattern=r"^[0-9a-f]*$")
    files: dict[str, File] = Field(default_factory=dict)
    not_files: tuple[str, ...] = ()
    packages: dict[str, Package] | Unknown = Field(default_factory=dict)
    units: dict[str, Unit] | Unknown = Field(default_factory=dict)
    docker: Docker | Unknown | None = None
    containerd: str | Unknown | None = None
    cri: Cri | Unknown | None = None
    crio: Cri | Unknown | None = None
    unloaded: tuple[str, ...] = ()
    tools: dict[str, Tool] | Unknown = Field(default_factory=dict)
    driver: Driver = Driver.model_construct()
    dma: Dma = Dma.model_construct()
    boots: Boots = Boots.model_construct()
    leftovers: Leftovers = Leftovers.model_construct()
    linker: Linker | Unknown = Linker.model_construct()
    rdma: dict[str, str] = Field(default_factory=dict)
    rdma_stuck: str = ""
    abandoned: tuple[str, ...] = ()
    network: Network | Unknown | None = None
    slurm: SlurmNode | Unknown | None = None
    nccl: tuple[str, ...] = ()
    ib_netns_mode: str = ""
    netns: tuple[str, ...] = ()
    initramfs: tuple[str, ...] = ()
    initramfs_old: tuple[str, ...] = ()
    boot_options: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    cdi_missing: tuple[str, ...] = ()
    # In this order, because an Unknown's JSON would also be valid for such a dictionary.
    wheels: Unknown | dict[str, str] = Field(default_factory=dict, union_mode="left_to_right")
    environments: dict[str, Environment] = Field(default_factory=dict)
    lock: str = ""
    step: str = ""
    active: dict[str, Answer | Unknown] = Field(default_factory=dict)

    @property
    def image(self) -> bool:
        """Tell whether this is an image that is being built: nothing runs, and the hardware is the builder's."""
        return IMAGE in self.files

    @property
    def lock_owner(self) -> str:
        """Who changes the node now, without the id of the run; empty: nobody."""
        return brief(self.lock.partition(" run=")[0])

    @property
    def installed(self) -> dict[str, Package]:
        """The installed packages by name; none if they could not be read."""
        return {} if isinstance(self.packages, Unknown) else self.packages

    @property
    def commands(self) -> dict[str, Tool]:
        """The commands in root's PATH by name; none if they could not be read."""
        return {} if isinstance(self.tools, Unknown) else self.tools

    def unit(self, name: str) -> Unit:
        """Return a unit, as systemctl shows one that does not exist if systemd does not have it or was not read."""
        found = None if isinstance(self.units, Unknown) else self.units.get(name)
        return found or Unit(load="not-found", active="inactive")

    def text(self, path: str) -> str:
        """Return the text of a file; empty if there is no file."""
        return self.files[path].text if path in self.files else ""

    def sha256(self, path: str) -> str:
        """Return a file's hash as ``sha`` in templates/lib/lib.sh.j2 prints it: ``absent`` if there is no file."""
        return self.files[path].sha256 if path in self.files else "absent"

    def glob(self, *prefixes: str) -> dict[str, File]:
        """Return the files whose path starts with one of ``prefixes``, sorted by path."""
        return {path: self.files[path] for path in sorted([path for path in self.files if path.startswith(prefixes)])}
