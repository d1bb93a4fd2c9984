"""NodeSpec, what a node should be: the whole schema of an inventory's ``gpuready:`` block, frozen.

The first value listed is the default, everywhere, and the defaults never page anyone: an empty spec installs
the pinned toolkit, registers ``nvidia`` in the engines that are there, and only observes the rest. What the
schema knows but this release does not do yet is refused by :mod:`gpuready.spec.not_yet`, by name.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuready.components.containerd.spec import ContainerdSpec
from gpuready.components.crio.spec import CrioSpec
from gpuready.components.docker.spec import DockerSpec
from gpuready.components.driver.spec import Driver
from gpuready.components.monitoring.spec import Monitoring
from gpuready.components.nccl.spec import Nccl
from gpuready.components.rdma.spec import Rdma
from gpuready.components.reconverge.spec import Reconverge
from gpuready.components.toolkit.spec import TOOLKIT_FLOOR, TOOLKIT_VERSION, FloorException, Repository, Toolkit
from gpuready.components.wheels.spec import TorchWheels
from gpuready.core.fields import (
    Allowed,
    Batch,
    Count,
    Date,
    Image,
    LdsoDirectories,
    Name,
    Off,
    Path,
    Text,
    Unit,
    Variable,
)
from gpuready.core.section import Section
from gpuready.spec.images import Images
from gpuready.spec.runtimes import Runtimes
from gpuready.spec.verify import Level, Thresholds

__all__ = [
    "TOOLKIT_FLOOR",
    "TOOLKIT_VERSION",
    "ContainerdSpec",
    "CrioSpec",
    "DockerSpec",
    "FloorException",
    "Nccl",
    "NodeSpec",
    "Rdma",
    "Repository",
    "Runtimes",
    "Toolkit",
    "Waiver",
]


class HardwareRdma(Section):
    """The RDMA ports that the node must have."""

    ports: Count | None = None
    """How many active ports."""
    gbps: Count | None = None
    """The least rate of each active port in Gbit/s."""


class Hardware(Section):
    """What the node must have; a difference is reported, never mended."""

    gpus: Literal["auto", "none"] | Count = "auto"
    """GPUs on the PCI bus: auto takes what is found, none means without GPUs, a number pins the count."""
    model: Text | None = None
    """Every GPU's product name must contain this, such as H200."""
    nvswitch: Literal["auto"] | bool = "auto"
    """Whether the GPUs hang on NVSwitch, so that a fabric manager is needed."""
    rdma: HardwareRdma = HardwareRdma()
    """RDMA ports."""


Owner = Literal["auto", "host", "operator", "image"]


class Owners(Section):
    """Who manages each part; whatever is not the host's is only observed."""

    driver: Owner = "auto"
    """The kernel driver and its libraries."""
    toolkit: Owner = "auto"
    """The NVIDIA Container Toolkit."""
    runtime: Owner = "auto"
    """The container engines' configuration."""


class DrainCommands(Section):
    """Commands around a disruption; root's shell runs them on the node."""

    before: Text
    """Runs before it; when it fails, nothing is disturbed."""
    after: Text
    """Runs after it, also when a step failed."""


class Maintenance(Section):
    """What may be disturbed, and when; the command line can only narrow it."""

    restart: Literal["idle", "never", "drained"] = "idle"
    """When an engine may be restarted: while nothing would be hit, never, or after the node was drained."""
    reboot: Literal["never", "idle", "drained"] = "never"
    """When the node may be rebooted, after all else: never, while nothing would be hit, or after it was drained."""
    reboot_timeout: Annotated[int, Field(ge=30, le=7200), Allowed("seconds, from 30 to 7200")] = 1200
    """Seconds within which a node must be back from a reboot."""
    drain: Literal["none", "kubectl", "slurm"] | DrainCommands = "none"
    """How work is moved away first; used with restart: drained and reboot: drained."""
    node: Unit | None = None
    """The node's name in Kubernetes or Slurm; unless given, the host's in the inventory, for Slurm its hostname."""
    ignore: tuple[Image, ...] = Field(default=(), strict=False)
    """Images whose containers do not count as work; without a tag, all tags of it."""
    batch: Batch | None = None
    """How many hosts are disturbed at once: a number, a percentage, or steps such as 1,25%."""
    spread_by: Variable | None = None
    """A host variable; no two hosts with the same value at once."""

    @model_validator(mode="after")
    def _drained_by_something(self) -> Maintenance:
        if "drained" in (self.restart, self.reboot) and self.drain == "none":
            word = "restart" if self.restart == "drained" else "reboot"
            at = {"at": word, "allowed": "drained together with drain: kubectl | slurm | {before, after}"}
            raise PydanticCustomError("floor", "nothing says how the node is drained", at)
        return self


class Waiver(Section):
    """A check whose failure is known and accepted for a while."""

    check: Name
    """The check's id, such as gpu.count."""
    host: Name = "*"
    """The inventory name it is for; * and ? match."""
    reason: Text
    """The reason, shown with the result."""
    until: Date
    """The last day on which it holds."""


class Verify(Section):
    """How far verify goes."""

    level: Level = "effective"
    """Ask the engines, read only files, or start a container too; `gpuready fabric` tests pairs of hosts."""
    image: Image | None = None
    """The image of the smoke container; it must be on the node, it is never pulled."""
    torch: Path | None = None
    """The python of an environment with PyTorch on the node: its owner multiplies and reduces on the GPU."""
    waive: tuple[Waiver, ...] = Field(default=(), strict=False)
    """Failures to accept."""
    thresholds: Thresholds = Thresholds()
    """Limits of the fabric tests and of GPUs."""


class NodeSpec(Section):
    """What a node should be; the first value of each key is its default."""

    hardware: Hardware = Hardware()
    """What the node must have."""
    owners: Owners = Owners()
    """Who manages what."""
    toolkit: Toolkit = Toolkit()
    """The NVIDIA Container Toolkit."""
    driver: Driver = Driver()
    """The kernel driver."""
    ldso: Literal["auto"] | Off | LdsoDirectories = "auto"
    """Driver libraries in the linker cache: auto finds them, off leaves ld.so alone, or these directories."""
    memlock: Literal["auto", "unlimited", "unmanaged"] = "auto"
    """Locked memory of logins, containers and Slurm jobs: auto is unlimited only where an RDMA port exists."""
    runtimes: Runtimes = Runtimes()
    """The container engines."""
    rdma: Rdma = Rdma()
    """The RDMA stack."""
    nccl: Nccl = Nccl()
    """NCCL."""
    monitoring: Monitoring = Monitoring()
    """What the node tells a monitoring system."""
    reconverge: Reconverge = Reconverge()
    """After a driver update."""
    torch_wheels: TorchWheels = Field(default=(), strict=False)
    """Python wheels on this machine, such as a PyTorch of one's own, and the environments on the node for them."""
    maintenance: Maintenance = Maintenance()
    """What may be disturbed."""
    images: Images = Field(default=(), strict=False)
    """Images that run here, by reference or as {ref, cuda}: verify says of each whether it will run."""
    verify: Verify = Verify()
    """How far verify goes."""
