"""What ``docker run`` needs on a node so that a container gets its GPUs, enough shared memory, and RDMA; each with why.

Sources: docker run's reference; the NVIDIA Container Toolkit's guide (NVIDIA_VISIBLE_DEVICES, CDI device names);
PyTorch's documentation (workers share tensors through /dev/shm); ibv_reg_mr(3) (locked memory).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gpuready.components.cdi.spec_files import KIND, specs
from gpuready.components.memlock import component
from gpuready.spec.model import NodeSpec
from gpuready.state.model import Docker, NodeState, Unknown

#: PyTorch's workers want more than Docker's 64 MiB; a GiB for each GPU, and never less than this.
LEAST_SHM_GIB = 4


class NoGpus(Exception):
    """No way is known in which a container gets GPUs on this node."""


@dataclass(frozen=True)
class Argument:
    """Words of the command line, and why they are there."""

    words: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        """As a shell takes them."""
        return shlex.join(self.words)


def arguments(spec: NodeSpec, state: NodeState) -> tuple[Argument, ...]:
    """For this node as it is now; :class:`NoGpus` where its Docker gives no GPUs."""
    return (*_gpus(spec, state), shared_memory(spec, _count(spec, state)), *_rdma(spec, state))


def _gpus(spec: NodeSpec, state: NodeState) -> tuple[Argument, ...]:
    docker = state.docker
    if isinstance(docker, Unknown):
        raise NoGpus(f"Docker was not understood: {docker.unknown}")
    if docker is None:
        raise NoGpus("no Docker runs on this node")
    devices = f"--device={KIND}=all"
    if "nvidia" not in docker.runtimes:
        if _has_cdi(docker, state):
            return (Argument((devices,), "Docker has no runtime nvidia, and injects CDI devices by itself"),)
        raise NoGpus("Docker has no runtime nvidia, and no CDI spec that it reads: gpuready apply brings them")
    if spec.toolkit.hardened:
        if _has_cdi(docker, state):
            return (Argument((devices,), "toolkit.hardened: NVIDIA_VISIBLE_DEVICES is not heard"),)
        mount = ("--runtime=nvidia", "--volume=/dev/null:/var/run/nvidia-container-devices/all")
        return (Argument(mount, "toolkit.hardened: the list of GPUs is taken from mounts"),)
    if docker.default_runtime == "nvidia":
        return (Argument(("--gpus=all",), "nvidia is Docker's default runtime"),)
    return (Argument(("--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all"), "the runtime nvidia, and all GPUs"),)


def _has_cdi(docker: Docker, state: NodeState) -> bool:
    return any(one.kind == KIND and one.path.rpartition("/")[0] in docker.cdi_spec_dirs for one in specs(state))


def shared_memory(spec: NodeSpec, gpus: int) -> Argument:
    """The spec's size, else one that PyTorch's workers do not fill at once."""
    docker = spec.runtimes.required_docker
    if docker is not None and docker.shm_size is not None:
        return Argument((f"--shm-size={docker.shm_size}",), "runtimes.docker.shm_size of the spec")
    return Argument(
        (f"--shm-size={max(LEAST_SHM_GIB, gpus)}g",),
        "workers of PyTorch and NCCL share memory; Docker's default is 64 MiB",
    )


def _count(spec: NodeSpec, state: NodeState) -> int:
    return spec.hardware.expected_gpus or len(state.driver.gpus)


def _rdma(spec: NodeSpec, state: NodeState) -> Sequence[Argument]:
    ports = sorted({path.split("/")[4] for path in state.rdma if "/ports/" in path})
    if not ports:
        return (
            [Argument(("--ulimit=memlock=-1:-1",), component.wanted(spec, state))]
            if component.wanted(spec, state)
            else []
        )
    found = [
        Argument(("--device=/dev/infiniband",), f"RDMA devices: {', '.join(ports)}"),
        Argument(("--ulimit=memlock=-1:-1",), "RDMA pins its buffers: with less NCCL falls back to TCP"),
    ]
    if state.ib_netns_mode != "N":
        found.append(Argument(("--network=host",), "the ranks' addresses, and the interfaces that GIDs belong to"))
    return found
