"""Write a job for Google Cloud Batch on one VM with GPUs: a container that finds the driver.

The VM's image decides how. On Debian, the driver is where the linker searches, and the nvidia runtime brings it into
the container; a first step installs the toolkit if the image lacks it. On Container-Optimized OS there is no toolkit,
and the driver is in /var/lib/nvidia: the job mounts it where CUDA images search, and names the directory for Triton,
which otherwise fails with "libcuda.so cannot found!" (2.1 and older ignore the variable). Neither works on the other:
on Debian, Docker would create the mounted directories empty; on Container-Optimized OS nothing can be installed.
Sources: the Batch API's reference v1 (projects.locations.jobs: TaskGroup, TaskSpec, Runnable, Container,
AllocationPolicy; Disk.image: batch-debian, batch-cos) and Batch's documentation on GPUs (the mounts, --privileged);
Compute Engine's on GPU machine types; triton pull request 2582 (TRITON_LIBCUDA_PATH); PyTorch's documentation of
torchrun; the NVIDIA Container Toolkit's installation guide (apt).
"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuready.base import resources
from gpuready.base.errors import UsageError
from gpuready.components.toolkit.state import PACKAGES
from gpuready.fabric.launch import shared_memory
from gpuready.inventory.hosts import HostEntry
from gpuready.model.images import named
from gpuready.model.spec import NodeSpec

#: Where Batch installs the driver on the VM, and where it is in the container.
DRIVER, INSIDE = "/var/lib/nvidia", "/usr/local/nvidia"
#: The VM's system -> Batch's image of it.
IMAGES = {"debian": "batch-debian", "cos": "batch-cos"}
_OF_OTHERS = {"debian": re.compile(r"(^|[/-])cos([/-]|$)"), "cos": re.compile(r"debian|ubuntu|rocky|centos|rhel")}


@dataclass(frozen=True)
class Job:
    """The parts of the job that the spec does not contain: the VM, and the program with its arguments."""

    machine_type: str
    script: tuple[str, ...]
    accelerator: str = ""
    boot_image: str = ""
    system: str = "debian"

    @property
    def contradiction(self) -> bool:
        """Whether the boot image is one of another system."""
        return bool(_OF_OTHERS[self.system].search(self.boot_image))


def has_gpus(machine_type: str) -> bool:
    """Tell whether VMs of that type include GPUs (families A and G, such as a3-highgpu-8g, a4x- and g2-)."""
    return bool(re.match(r"[ag]\d+x?-", machine_type))


def document(wanted: Job, entries: Sequence[HostEntry]) -> str:
    """Return the job of the one chosen host, as JSON. Raises UsageError that names all that is missing at once."""
    missing: dict[str, str] = {}
    if len(entries) != 1:
        choose = "choose one with --limit" if entries else "-i INVENTORY"
        missing[f"exactly one host, but {len(entries)} are chosen"] = choose
    if not wanted.machine_type:
        missing["a machine type"] = "--machine-type, such as a3-highgpu-8g"
    if not wanted.script:
        missing["a script"] = "-- train.py"
    if len(entries) != 1:
        raise UsageError(f"gcp-batch needs {'; '.join(missing)}", remedy="; ".join(missing.values()))
    (entry,) = entries
    spec = entry.spec
    image = spec.verify.image or next((one.ref for one in named(spec.images)), "")
    gpus, key = spec.hardware.expected_gpus, spec.toolkit.repo.key
    if not image:
        missing["an image"] = f"verify: {{image: IMAGE}} in the spec of {entry.name}"
    if not gpus:
        missing["the number of GPUs"] = f"hardware: {{gpus: NUMBER}} in the spec of {entry.name}"
    if wanted.system != "cos" and "://" not in key:
        missing["a URL of the toolkit's key"] = "toolkit: {repo: {key: https://...}}"
    if wanted.machine_type and not wanted.accelerator and not has_gpus(wanted.machine_type):
        missing["GPUs (this machine type has none)"] = (
            "--accelerator, such as nvidia-tesla-t4, or another --machine-type"
        )
    if missing or gpus is None:
        raise UsageError(
            f"{entry.name} ({entry.source}): the Batch job needs {'; '.join(missing)}",
            remedy="; ".join(missing.values()),
        )
    if wanted.contradiction:
        other = "cos" if wanted.system == "debian" else "debian"
        raise UsageError(
            f"--boot-image {wanted.boot_image} is of another system than --system {wanted.system}, whose driver is "
            "elsewhere",
            remedy=f"--system {other}",
        )
    return json.dumps(job(wanted, image, gpus, spec), indent=2)


def job(wanted: Job, image: str, gpus: int, spec: NodeSpec) -> dict[str, Any]:
    """Return the job in the form of the API (``gcloud batch jobs submit --config``)."""
    boot_disk = {"image": wanted.boot_image or IMAGES[wanted.system]}
    policy: dict[str, Any] = {"machineType": wanted.machine_type, "bootDisk": boot_disk}
    if wanted.accelerator:
        policy["accelerators"] = [{"type": wanted.accelerator, "count": str(gpus)}]
    group = {"taskCount": "1", "taskSpec": {"maxRetryCount": 0, "runnables": [*_runnables(wanted, image, gpus, spec)]}}
    return {
        "taskGroups": [group],
        "allocationPolicy": {"instances": [{"installGpuDrivers": True, "policy": policy}]},
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
    }


def _runnables(wanted: Job, image: str, gpus: int, spec: NodeSpec) -> Sequence[dict[str, Any]]:
    memory = f"--shm-size={shared_memory(spec, gpus)}"
    container = {
        "imageUri": image,
        "entrypoint": "torchrun",
        "commands": ["--standalone", f"--nproc-per-node={gpus}", *wanted.script],
    }
    if wanted.system == "cos":
        container |= {
            "options": shlex.join(("--privileged", memory)),
            "volumes": [f"{DRIVER}/{each}:{INSIDE}/{each}" for each in ("lib64", "bin")],
        }
        variables = {"TRITON_LIBCUDA_PATH": f"{INSIDE}/lib64"}
        return ({"displayName": "torchrun", "container": container, "environment": {"variables": variables}},)
    container["options"] = shlex.join(("--runtime=nvidia", "--gpus=all", memory))
    repo, packages = spec.toolkit.repo, tuple(f"{name}={spec.toolkit.version}-1" for name in PACKAGES)
    script = resources.script(
        "verbs/launch/batch-runtime", url=repo.url, key=repo.key, fingerprint=repo.fingerprint, packages=packages
    )
    return (
        {"displayName": "the nvidia runtime", "script": {"text": script}},
        {"displayName": "torchrun", "container": container},
    )
