"""NodeState: what a node is, as one probe saw it. Frozen, and the same after a round trip through JSON.

A part that could not be read is an :class:`Unknown` with the reason; a part that is not on the node is None.
Nothing here judges: that is for components and checks.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gpuready.components.wheels.state import Environment
from gpuready.gpu.facts.boots import Boots
from gpuready.gpu.facts.kernel_log import KernelLog
from gpuready.gpu.facts.leftovers import Leftovers
from gpuready.state.network import Network


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Unknown(_Model):
    """A value that could not be read, and why. Never equal to any expected value."""

    unknown: str


class OS(_Model):
    """/etc/os-release (os-release(5))."""

    id: str = ""
    id_like: tuple[str, ...] = ()
    version_id: str = ""
    codename: str = ""
    name: str = ""


class File(_Model):
    """A configuration file. ``text`` holds UTF-8 with surrogateescape; ``realpath`` is set for a symbolic link."""

    text: str
    mode: int
    uid: int
    gid: int
    mtime: int
    realpath: str = ""

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode("utf-8", "surrogateescape")

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes, as ``sha256sum`` prints it on the node."""
        return hashlib.sha256(self.data).hexdigest()


class Package(_Model):
    """An installed package: full version, whether apt holds it, and who made it (dpkg's Maintainer, rpm's Vendor).

    ``transitional``: it is empty and only demands the package that took its place; so its summary says (dpkg alone).
    """

    version: str
    arch: str
    held: bool = False
    configured: bool = True
    maker: str = ""
    transitional: bool = False


class Unit(_Model):
    """Properties of a systemd unit, from ``systemctl show`` (systemd.unit(5), org.freedesktop.systemd1(5)).

    ``takes_along``: units that a restart of this one restarts, too. ``changed_us``: its last start, end or reload.
    ``starting``: systemd has a job that starts it, which waits or runs.
    """

    load: str
    active: str
    enabled: str = ""
    main_pid: int = 0
    invocation: str = ""
    need_daemon_reload: bool = False
    exec_start: tuple[str, ...] = ()
    drop_ins: tuple[str, ...] = ()
    started_us: int = 0
    changed_us: int = 0
    limit_memlock: str = ""
    process_memlock: str = ""
    kill_mode: str = ""
    takes_along: tuple[str, ...] = ()
    listen: str = ""
    starting: bool = False


class Container(_Model):
    """A running Docker container, as far as disruption needs it."""

    id: str
    name: str
    image: str
    runtime: str = ""
    gpu: bool = False
    restart: str = "no"
    pid: int = 0


class Docker(_Model):
    """The running engine's own answers (``docker info``, ``docker inspect``)."""

    version: str = ""
    runtimes: dict[str, str] = Field(default_factory=dict)
    default_runtime: str = ""
    live_restore: bool = False
    swarm: bool = False
    rootless: bool = False
    cgroup_driver: str = ""
    cdi_spec_dirs: tuple[str, ...] = ()
    root_dir: str = ""
    images: int = 0
    containers: tuple[Container, ...] = ()


class Cri(_Model):
    """What the containerd or CRI-O that runs answers; ``enable_cdi`` is None where it says nothing of it."""

    default_runtime: str
    runtimes: dict[str, dict[str, Any]]
    enable_cdi: bool | None = None
    cdi_spec_dirs: tuple[str, ...] = ()


class Driver(_Model):
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


class Tool(_Model):
    """A command on root's PATH: where, and the first line of its ``--version``."""

    path: str
    version_line: str = ""


class Linker(_Model):
    """The dynamic linker's view: cache, the driver libraries on disk, what the loader resolves."""

    cache: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    libs: dict[str, str] = Field(default_factory=dict)
    loader: str = ""


class NodeState(_Model):
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
    os: OS = OS()
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
    driver: Driver = Driver()
    boots: Boots = Boots()
    leftovers: Leftovers = Leftovers()
    linker: Linker | Unknown = Linker()
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
