"""Write one file that runs inside a container or pod: it tests what NCCL needs there, and prints NCCL's settings.

It is a shell script with a Python program in it. The program is made of gpuready's own modules, so that the rules for
HCAs and GIDs exist once. They import nothing but the standard library and a base class of pydantic, for which the
program has a stand-in.
"""

import importlib
import inspect
from typing import Any

from gpuready.base import resources
from gpuready.fabric.launch import LEAST_SHM_GIB
from gpuready.model.spec import NodeSpec

#: Each after those that it imports.
MODULES = (
    "gpuready.base.errors",
    "gpuready.model.network",
    "gpuready.network.ports",
    "gpuready.network.gid",
    "gpuready.network.rdma_choice",
    "gpuready.network.tcp_choice",
    "gpuready.network.nccl_settings",
    "gpuready.network.in_container",
)


def values(spec: NodeSpec) -> dict[str, Any]:
    """Return what the file takes from a spec, by its keys."""
    nccl = {**spec.nccl.model_dump(), "finds_gid": spec.nccl.finds_gid}
    return {"nccl": nccl, "hardware.rdma.ports": spec.hardware.rdma.ports}


def program(spec: NodeSpec) -> str:
    modules = [(name, inspect.getsource(importlib.import_module(name))) for name in MODULES]
    nccl, ports = map(repr, values(spec).values())
    return resources.document("verbs/render/pod-check.py", modules=modules, nccl=nccl, ports=ports)


def script(spec: NodeSpec) -> str:
    """Return the file (POSIX sh)."""
    tcp = spec.nccl.transport == "tcp"
    return resources.script("verbs/render/pod-check", program=program(spec), shm=LEAST_SHM_GIB, tcp=tcp)
