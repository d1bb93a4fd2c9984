"""NodeState: what a node is, as one probe saw it. Frozen, and the same after a round trip through JSON.

A part that could not be read is an :class:`Unknown` with the reason; a part that is not on the node is None.
Nothing here judges: that is for components and checks.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from gpuready.components.docker.state import Container, Docker
from gpuready.components.wheels.state import Environment
from gpuready.core.facts import Cri, Facts, File, Package, Tool, Unit, Unknown
from gpuready.gpu.facts.boots import Boots
from gpuready.gpu.facts.kernel_log import KernelLog
from gpuready.gpu.facts.leftovers import Leftovers
from gpuready.state.network import Network

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
    codename: str = ""
    name: str = ""


class Driver(Facts):
    """The NVIDIA driver: what the kernel runs, what is on disk, and what it sees.

    ``owner`` is where it came from: packages, runfile, mount (of the image or the platform), operator, or nothing.
    ``smi`` is nvidia-smi -q -x without the supported clocks.
    """

    owner: str = ""

    module_version: str = ""
    proc_version: str = ""
    open_module: bool = False
    on_disk_version: str = ""
    nodes: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    smi: str | Unknown | None = None
    log: KernelLog | Unknown | None = None
    installer_log: bool = False

    @property
    def loaded(self) -> str:
        """The version of the driver that the kernel runs; empty without one."""
        return self.proc_version or self.module_version

    @property
    def pci_gpus(self) -> tuple[str, ...]:
        """The lines of ``pci`` that are GPUs: display and 3D controllers."""
        return self._of_class("0x0300", "0x0302")

    @property
    def pci_switches(self) -> tuple[str, ...]:
        """Those that are NVSwitches of Hopper's time and before; later ones are no PCI devices of the node."""
        return self._of_class("0x068000")

    def _of_class(self, *classes: str) -> tuple[str, ...]:
        rows = ((line, line.split()) for line in self.pci)
        return tuple(line for line, words in rows if len(words) > 1 and words[1].startswith(classes))


class Linker(Facts):
    """The dynamic linker's view: cache, the driver libraries on disk, what the loader resolves."""

    cache: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    libs: dict[str, str] = Field(default_factory=dict)
    loader: str = ""


class NodeState(Facts):
    """Everything that one probe read. ``masked`` states plan and verify, but never apply.

    ``capabilities`` are root's, as CapEff has them; ``memlock`` is the limit of this very session.
    ``rdma_stuck``: why ``rdma`` could not be read. ``abandoned``: the probe's sections that were still running at its
    limit, but for those that no signal ends.
    ``unloaded``: files of containerd that are younger than its start, and a daemon.json that was changed since
    dockerd's. ``nccl``: lines of files that every login reads which set variables of NCCL, as FILE:LINE. ``netns``:
    who holds a network namespace other than the host's, where ib_core is loaded. ``initramfs``: images of installed
    kernels; ``initramfs_old`` are those that know nothing of our modprobe.d file. ``boot_options``: what each boot
    entry says of ib_core.
    ``wheels``: .dist-info directories of those that gpuready installed, and the hash that pip has there now.
    ``environments``: those that were asked about, by directory.
    """

    format: int = 1
    masked: bool = False
    os: OS = OS.model_construct()
    kernel: str = ""
    machine: str = ""
    boot_id: str = ""
    init: str = ""
    systemd: bool = False
    system_state: str = ""
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
    boots: Boots = Boots.model_construct()
    leftovers: Leftovers = Leftovers.model_construct()
    linker: Linker | Unknown = Linker.model_construct()
    rdma: dict[str, str] = Field(default_factory=dict)
    rdma_stuck: str = ""
    abandoned: tuple[str, ...] = ()
    network: Network | Unknown | None = None
    nccl: tuple[str, ...] = ()
    ib_netns_mode: str = ""
    netns: tuple[str, ...] = ()
    initramfs: tuple[str, ...] = ()
    initramfs_old: tuple[str, ...] = ()
    boot_options: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    cdi_missing: tuple[str, ...] = ()
    # In this order, because an Unknown's JSON would do for such a dictionary, too.
    wheels: Unknown | dict[str, str] = Field(default_factory=dict, union_mode="left_to_right")
    environments: dict[str, Environment] = Field(default_factory=dict)
    active: dict[str, Any] = Field(default_factory=dict)

    def sha256(self, path: str) -> str:
        """The hash of a file as ``sha`` in templates/lib/lib.sh.j2 prints it: ``absent`` where there is none."""
        return self.files[path].sha256 if path in self.files else "absent"

    def glob(self, prefix: str) -> dict[str, File]:
        """Files whose path starts with ``prefix``, in path order."""
        return {path: self.files[path] for path in sorted(self.files) if path.startswith(prefix)}
