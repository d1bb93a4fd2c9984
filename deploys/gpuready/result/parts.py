"""What one verb adds to the result: its keys in the document, and the form of each.

A verb defines its part beside the ``blocks`` that show it to people, and adds both here and to human.py.
"""

from typing import Any

from gpuready.inventory.listing import Listed
from gpuready.model.state import NodeState
from gpuready.result.attached import Attached
from gpuready.result.compat_report import JudgedImage
from gpuready.result.docker_args import Argument
from gpuready.result.fabric import Fabric
from gpuready.result.nccl import Nccl
from gpuready.result.status import Status
from gpuready.result.stress import LoadedGpu

#: What a host has: the form, and what it is.
OF_HOST: dict[str, tuple[Any, str]] = {
    "images": (tuple[JudgedImage, ...], "compat: the images."),
    "nccl": (Nccl, "nccl: the settings."),
    "docker_args": (tuple[Argument, ...], "docker-args: the options."),
    "state": (NodeState, "probe: the node's state, masked."),
    "attached": (tuple[Attached, ...], "rdma: what is on record."),
    "stress": (tuple[LoadedGpu, ...], "verify --level stress: the GPUs that were loaded."),
    "inventory": (Listed, "inventory: what it says of this host."),
    "status": (Status, "status: the node's record, and what changed since."),
}
#: What the whole run has.
OF_RUN: dict[str, tuple[Any, str]] = {
    "image": (JudgedImage, "compat without an inventory: the image."),
    "fabric": (Fabric, "fabric: the tests between hosts."),
}
