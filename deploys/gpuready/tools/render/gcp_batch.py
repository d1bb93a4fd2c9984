"""Write a job for Google Cloud Batch on one VM with GPUs: a container with the nvidia runtime that finds the driver.

Batch on Container-Optimized OS installs the driver in /var/lib/nvidia, which a container's linker does not search:
torchrun with Triton fails with "libcuda.so cannot found!". So the job mounts the libraries where CUDA images look, sets
the directory for Triton, and adds the nvidia runtime to Docker before the container starts.
Sources: the Batch API's reference v1 (projects.locations.jobs: TaskGroup, TaskSpec, Runnable, Container,
AllocationPolicy) and Batch's documentation on GPUs (the mounts); Compute Engine's on GPU machine types; PyTorch's
documentation of torchrun.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuready.spec.model import NodeSpec
from gpuready.tools.run_args.arguments import shared_memory

#: Where Batch installs the driver on the VM, and where it is in the container.
DRIVER, INSIDE = "/var/lib/nvidia", "/usr/local/nvidia"
_RUNTIME = f"""set -e
if [ -d {DRIVER}/lib64 ]; then echo {DRIVER}/lib64 >/etc/ld.so.conf.d/nvidia.conf; ldconfig; fi
docker info --format '{{{{json .Runtimes}}}}' | grep -q '"nvidia"' && exit
nvidia-ctk runtime configure --runtime=docker
systemctl restart docker
"""


@dataclass(frozen=True)
class Job:
    """The parts of the job that the spec does not contain: the image, the VM, and the program with its arguments."""

    image: str
    machine_type: str
    script: tuple[str, ...]
    accelerator: str = ""
    boot_image: str = ""


def has_gpus(machine_type: str) -> bool:
    """Tell whether VMs of that type include GPUs (families A and G, such as a3-highgpu-8g, a4x- and g2-)."""
    return bool(re.match(r"[ag]\d+x?-", machine_type))


def job(wanted: Job, gpus: int, spec: NodeSpec) -> dict[str, Any]:
    """Return the job in the form of the API (``gcloud batch jobs submit --config``)."""
    policy: dict[str, Any] = {"machineType": wanted.machine_type}
    if wanted.accelerator:
        policy["accelerators"] = [{"type": wanted.accelerator, "count": str(gpus)}]
    if wanted.boot_image:
        policy["bootDisk"] = {"image": wanted.boot_image}
    group = {"taskCount": "1", "taskSpec": {"maxRetryCount": 0, "runnables": [*_runnables(wanted, gpus, spec)]}}
    return {
        "taskGroups": [group],
        "allocationPolicy": {"instances": [{"installGpuDrivers": True, "policy": policy}]},
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
    }


def _runnables(wanted: Job, gpus: int, spec: NodeSpec) -> Sequence[dict[str, Any]]:
    options = ("--runtime=nvidia", "--gpus=all", *shared_memory(spec, gpus).words)
    container = {
        "imageUri": wanted.image,
        "entrypoint": "torchrun",
        "commands": ["--standalone", f"--nproc-per-node={gpus}", *wanted.script],
        "options": shlex.join(options),
        "volumes": [f"{DRIVER}/{each}:{INSIDE}/{each}" for each in ("lib64", "bin")],
    }
    variables = {"TRITON_LIBCUDA_PATH": f"{INSIDE}/lib64"}
    return (
        {"displayName": "the nvidia runtime", "script": {"text": _RUNTIME}},
        {"displayName": "torchrun", "container": container, "environment": {"variables": variables}},
    )
