"""Choose the ``docker run`` options that give a container a node's GPUs, enough shared memory, and RDMA.

Sources: docker run's reference; the NVIDIA Container Toolkit's guide (NVIDIA_VISIBLE_DEVICES, CDI device names);
PyTorch's documentation (workers share tensors through /dev/shm); ibv_reg_mr(3) (locked memory).
"""

from collections.abc import Sequence

from gpuready.base.errors import GpureadyError
from gpuready.components.cdi.spec_files import KIND, specs
from gpuready.components.memlock import component
from gpuready.fabric.launch import shared_memory
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, NodeState, Unknown
from gpuready.verbs.render.part import Argument


class NoGpusError(GpureadyError):
    """No container gets GPUs on this node."""

    kind = "docker"
    exit_code = 3

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="gpuready apply, or plan to see why not")


def arguments(spec: NodeSpec, state: NodeState) -> tuple[Argument, ...]:
    """Return the options for the node's current state. Raises :class:`NoGpusError` if its Docker gives no GPUs."""
    count = spec.hardware.expected_gpus or len(state.driver.gpus)
    return (*_gpus(spec, state), _shared_memory(spec, count), *_rdma(spec, state))


def _gpus(spec: NodeSpec, state: NodeState) -> tuple[Argument, ...]:
    docker = state.docker
    if isinstance(docker, Unknown):
        raise NoGpusError(f"cannot read Docker's state: {docker.unknown}")
    if docker is None:
        raise NoGpusError("no Docker runs on this node")
    devices = f"--device={KIND}=all"
    if "nvidia" not in docker.runtimes:
        if _has_cdi(docker, state):
            return (Argument((devices,), "Docker has no nvidia runtime, but injects CDI devices itself"),)
        raise NoGpusError("Docker has neither the nvidia runtime nor a CDI spec: run gpuready apply")
    if spec.toolkit.hardened:
        if _has_cdi(docker, state):
            return (Argument((devices,), "toolkit.hardened: NVIDIA_VISIBLE_DEVICES is ignored"),)
        mount = ("--runtime=nvidia", "--volume=/dev/null:/var/run/nvidia-container-devices/all")
        return (Argument(mount, "toolkit.hardened: the runtime reads the list of GPUs from mounts"),)
    if docker.default_runtime == "nvidia":
        return (Argument(("--gpus=all",), "nvidia is Docker's default runtime"),)
    return (Argument(("--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=all"), "the nvidia runtime, and all GPUs"),)


def _has_cdi(docker: Docker, state: NodeState) -> bool:
    return any(one.kind == KIND and one.path.rpartition("/")[0] in docker.cdi_spec_dirs for one in specs(state))


def _shared_memory(spec: NodeSpec, gpus: int) -> Argument:
    why = "PyTorch's workers and NCCL use shared memory; Docker's default is 64 MiB"
    if spec.runtimes.docker_settings.shm_size is not None:
        why = "runtimes.docker.shm_size in the spec"
    return Argument((f"--shm-size={shared_memory(spec, gpus)}",), why)


def _rdma(spec: NodeSpec, state: NodeState) -> Sequence[Argument]:
    ports = sorted({path.split("/")[4] for path in state.rdma if "/ports/" in path})
    if not ports:
        reason = component.wanted(spec, state)
        return [Argument(("--ulimit=memlock=-1:-1",), reason)] if reason else []
    found = [
        Argument(("--device=/dev/infiniband",), f"RDMA devices: {', '.join(ports)}"),
        Argument(
            ("--ulimit=memlock=-1:-1",), "RDMA locks its buffers in memory; with a lower limit, NCCL falls back to TCP"
        ),
    ]
    if state.ib_netns_mode != "N":
        found.append(
            Argument(("--network=host",), "the ranks need the host's addresses and the interfaces of the GIDs")
        )
    return found
