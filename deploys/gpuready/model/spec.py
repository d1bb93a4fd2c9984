"""NodeSpec, the expected state of a node: the whole schema of an inventory's ``gpuready:`` block, frozen.

The first value listed is always the default, and the defaults never page anyone: an empty spec installs the pinned
toolkit, registers ``nvidia`` in the engines on the node, and only observes the rest.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from gpuready.base.fields import (
    Allowed,
    Batch,
    Count,
    Date,
    Duration,
    Image,
    Labels,
    LdsoDirectories,
    Name,
    Off,
    Path,
    Text,
    Unit,
    Variable,
    Windows,
)
from gpuready.base.section import Section
from gpuready.components.containerd.spec import ContainerdSpec
from gpuready.components.crio.spec import CrioSpec
from gpuready.components.dcgm.spec import Dcgm
from gpuready.components.docker.spec import DockerSpec
from gpuready.components.driver.spec import Driver
from gpuready.components.monitoring.spec import Monitoring
from gpuready.components.nccl.spec import Nccl as Nccl
from gpuready.components.rdma.spec import Rdma
from gpuready.components.reconverge.spec import Reconverge
from gpuready.components.toolkit.spec import TOOLKIT_FLOOR as TOOLKIT_FLOOR
from gpuready.components.toolkit.spec import TOOLKIT_VERSION as TOOLKIT_VERSION
from gpuready.components.toolkit.spec import Toolkit
from gpuready.components.wheels.spec import TorchWheels
from gpuready.model.images import Images
from gpuready.model.verify import Level, Thresholds


class HardwareRdma(Section):
    """The RDMA ports that the node must have."""

    ports: Count | None = None
    """The number of active ports."""
    gbps: Count | None = None
    """The minimum rate of each active port in Gbit/s."""


class Hardware(Section):
    """The hardware that the node must have; verify reports a difference."""

    gpus: Literal["auto", "none"] | Count = "auto"
    """GPUs on the PCI bus: auto accepts any number, none means no GPUs, a number pins the count."""
    model: Text | None = None
    """Text that every GPU's product name must contain, such as H200."""
    nvswitch: Literal["auto"] | bool = "auto"
    """Whether NVSwitch connects the GPUs, so that a fabric manager is needed."""
    rdma: HardwareRdma = HardwareRdma.model_construct()
    """RDMA ports."""

    @property
    def expected_gpus(self) -> int | None:
        """The pinned number of GPUs; None with ``auto`` and ``none``."""
        return self.gpus if isinstance(self.gpus, int) else None

    @property
    def without_gpus(self) -> bool:
        return self.gpus == "none"


Owner = Literal["auto", "host", "operator", "image"]


class Owners(Section):
    """Who manages each part; gpuready changes only parts of the host, and observes the others."""

    driver: Owner = "auto"
    """The kernel driver and its libraries."""
    toolkit: Owner = "auto"
    """The NVIDIA Container Toolkit."""
    runtime: Owner = "auto"
    """The container engines' configuration."""


class Runtimes(Section):
    """The engines: auto configures an engine if it exists, absent ignores it, a mapping requires it."""

    docker: Literal["auto", "absent"] | DockerSpec = "auto"
    """Docker."""
    containerd: Literal["auto", "absent"] | ContainerdSpec = "auto"
    """containerd, as Kubernetes uses it."""
    crio: Literal["auto", "absent"] | CrioSpec = "auto"
    """CRI-O."""
    podman: Literal["auto", "absent"] = "auto"
    """Podman."""

    def requires(self, engine: Literal["docker", "containerd", "crio"]) -> bool:
        return not isinstance(getattr(self, engine), str)

    # The settings of an engine: the defaults if the spec does not name it.

    @property
    def docker_settings(self) -> DockerSpec:
        return self.docker if isinstance(self.docker, DockerSpec) else DockerSpec.model_construct()

    @property
    def containerd_settings(self) -> ContainerdSpec:
        return self.containerd if isinstance(self.containerd, ContainerdSpec) else ContainerdSpec.model_construct()

    @property
    def crio_settings(self) -> CrioSpec:
        return self.crio if isinstance(self.crio, CrioSpec) else CrioSpec.model_construct()

    @property
    def installs_docker(self) -> bool:
        return self.docker_settings.install == "distro"


class DrainCommands(Section):
    """Commands before and after a disruption; root's shell on the node runs them."""

    before: Text
    """Runs before the disruption; if it fails, nothing is disrupted."""
    after: Text
    """Runs after the disruption, even if a step failed."""


class Kubectl(Section):
    """Options of kubectl drain. By default, a pod with an emptyDir or without a controller prevents the drain."""

    delete_emptydir: bool = False
    """Also evict pods with an emptyDir volume, such as /dev/shm; the volume's data is lost."""
    force: bool = False
    """Also delete pods that no controller starts elsewhere."""
    selector: Labels | None = None
    """Evict only pods with these labels; the others stay and are still work that must not be disrupted."""
    grace: Annotated[int, Field(ge=0, le=86400), Allowed("seconds, from 0 to 86400")] | None = None
    """Seconds for a pod to end after it was asked to; by default, what the pod itself says."""


class DrainByKubectl(Section):
    """How kubectl drains the node, and how long that may take."""

    kubectl: Kubectl
    """Options of kubectl drain."""
    timeout: Duration = 1800
    """How long the pods may take to leave; then the node is uncordoned, and the change waits."""


def _drain_form(value: Any) -> str:
    """Return the tag of one form, so that errors are of that form only. No key of a mapping looks like a tag."""
    if isinstance(value, str):
        return "(word)"
    if isinstance(value, DrainByKubectl):  # when it is written
        return "(kubectl)"
    return "(kubectl)" if isinstance(value, dict) and {"kubectl", "timeout"} & set(value) else "(commands)"


class Maintenance(Section):
    """The disruptions that are allowed, and when; the command line can only restrict them further."""

    restart: Literal["idle", "never", "drained"] = "idle"
    """When an engine may be restarted: if nothing running is affected, never, or after the node is drained."""
    reboot: Literal["never", "idle", "drained"] = "never"
    """When the node may be rebooted, as the last step: never, if nothing running is affected, or after a drain."""
    reboot_timeout: Annotated[int, Field(ge=30, le=7200), Allowed("seconds, from 30 to 7200")] = 1200
    """Seconds that a reboot may take until the node is back."""
    drain: Annotated[
        Annotated[Literal["none", "kubectl", "slurm"], Tag("(word)")]
        | Annotated[DrainCommands, Tag("(commands)")]
        | Annotated[DrainByKubectl, Tag("(kubectl)")],
        Discriminator(_drain_form),
    ] = "none"
    """How to drain the node; used with restart: drained and reboot: drained."""
    node: Unit | None = None
    """The node's name in Kubernetes or Slurm; by default the name in the inventory, and for Slurm the hostname."""
    ignore: tuple[Image, ...] = Field(default=(), strict=False)
    """Images whose containers may be disrupted; without a tag, all tags of the image."""
    window: Windows = ()
    """When drains, restarts and reboots may begin, such as Sat 22:00-06:00 Europe/Berlin, or a list; by default always.
    """
    batch: Batch | None = None
    """How many hosts are disrupted at once: a number, a percentage, or steps such as 1,25%."""
    spread_by: Variable | None = None
    """A host variable; hosts with the same value are never disrupted at once."""

    @model_validator(mode="after")
    def _drained_by_something(self) -> Maintenance:
        if "drained" in (self.restart, self.reboot) and self.drain == "none":
            key = "restart" if self.restart == "drained" else "reboot"
            at = {"at": key, "allowed": "drained together with drain: kubectl | slurm | {before, after}"}
            raise PydanticCustomError("floor", "needs maintenance.drain", at)
        return self


class Waiver(Section):
    """A failing check that is accepted until a date."""

    check: Name
    """The check's id, such as gpu.count."""
    host: Name = "*"
    """The host's name in the inventory; * and ? match."""
    reason: Text
    """The reason; shown with the result."""
    until: Date
    """The last day of the waiver."""


class Verify(Section):
    """How deep verify tests."""

    level: Level = "effective"
    """config: only files; effective: also engines, and a container if image is set; smoke: notes if it is not set."""
    image: Image | None = None
    """The image of the smoke container; without verify.torch, of the load test. It must be on the node: no pull."""
    torch: Path | None = None
    """The python of a PyTorch environment on the node, run as its owner. For the load test, it overrides image."""
    waive: tuple[Waiver, ...] = Field(default=(), strict=False)
    """Failing checks to accept."""
    thresholds: Thresholds = Thresholds.model_construct()
    """Limits of the fabric tests and of GPUs."""


class NodeSpec(Section):
    """The expected state of a node; the first value of each key is its default."""

    hardware: Hardware = Hardware.model_construct()
    """The hardware that the node must have."""
    owners: Owners = Owners.model_construct()
    """Who manages each part."""
    toolkit: Toolkit = Toolkit.model_construct()
    """The NVIDIA Container Toolkit."""
    driver: Driver = Driver.model_construct()
    """The kernel driver."""
    ldso: Literal["auto"] | Off | LdsoDirectories = "auto"
    """Driver libraries in the linker cache: auto finds them, off changes nothing, a list gives the directories."""
    memlock: Literal["auto", "unlimited", "unmanaged"] = "auto"
    """Locked memory of logins, containers and Slurm jobs: auto is unlimited only on nodes with an RDMA port."""
    runtimes: Runtimes = Runtimes.model_construct()
    """The container engines."""
    rdma: Rdma = Rdma.model_construct()
    """The RDMA stack."""
    nccl: Nccl = Nccl.model_construct()
    """NCCL."""
    monitoring: Monitoring = Monitoring.model_construct()
    """What the node reports to a monitoring system."""
    dcgm: Dcgm = Dcgm.model_construct()
    """NVIDIA's Data Center GPU Manager (DCGM)."""
    reconverge: Reconverge = Reconverge.model_construct()
    """Actions after a driver update."""
    gate: bool = False
    """Whether to install gpuready-verify, which tells Slurm or Kubernetes on the node if GPU jobs may start."""
    torch_wheels: TorchWheels = Field(default=(), strict=False)
    """Python wheels, such as your own PyTorch, and their environments on the node."""
    maintenance: Maintenance = Maintenance.model_construct()
    """The disruptions that are allowed, and when."""
    images: Images = Field(default=(), strict=False)
    """Images that run on the node, by reference or as {ref, cuda}; verify checks that each of them can run."""
    verify: Verify = Verify.model_construct()
    """How deep verify tests."""
