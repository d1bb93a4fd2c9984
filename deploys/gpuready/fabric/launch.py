"""Write the torchrun command of every node: one rank a node, in inventory order, over the fabric.

Each command has its own settings, because names of HCAs and interfaces may differ between nodes. Settings that
/etc/nccl.conf of the node already contains are omitted.

Sources: PyTorch's documentation of torchrun (static rendezvous); ip-sysctl.rst for
the ephemeral ports of Linux.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_interface, ip_network

from gpuready.base.errors import GpureadyError
from gpuready.base.part import Count, Part
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network import nccl_conf as conf
from gpuready.network import torch
from gpuready.network.nccl_settings import Settings, assignment

#: PyTorch's own default, and the first port of net.ipv4.ip_local_port_range.
MASTER_PORT, EPHEMERAL = 29500, 32768
#: The script that a line starts if the user names none: what ``gpuready example ddp`` prints.
EXAMPLE = "ddp.py"
#: PyTorch's workers need more shared memory than Docker's 64 MiB: one GiB for each GPU, and at least this.
LEAST_SHM_GIB = 4


@dataclass(frozen=True)
class Launch(Part):
    """launch hosts: the command of one node."""

    rank: Count
    """Its rank; 0 is the master."""
    environment: dict[str, str]
    """The variables of the command."""
    argv: tuple[str, ...]
    """The words of the command."""
    processes: Count = 0
    """The processes on this node; 0: unknown."""

    def __str__(self) -> str:
        """Return it as a shell command."""
        return " ".join([*(assignment(*item) for item in self.environment.items()), shlex.join(self.argv)])


@dataclass(frozen=True)
class Job:
    """The user's options. ``processes`` and ``address`` override what the nodes report."""

    script: tuple[str, ...]
    port: int = MASTER_PORT
    processes: int | None = None
    address: str = ""
    handling: str = torch.DEFAULT


class NcclError(GpureadyError):
    """The reason why a node has no settings of NCCL, or no command, as one phrase."""

    kind = "nccl"
    exit_code = 3


def gpus(spec: NodeSpec, state: NodeState) -> int:
    """Return the number of processes on a node: its GPUs. Raises NcclError if it is unknown or GPUs are missing."""
    found, pinned = len(state.driver.gpus), spec.hardware.expected_gpus
    if pinned is not None and found != pinned:
        raise NcclError(f"{found} of {pinned} GPUs are present (hardware.gpus)")
    if not found:
        raise NcclError("the driver lists no GPU; give the number of processes with --nproc-per-node N")
    return found


def shared_memory(spec: NodeSpec, count: int) -> str:
    """Return the size of /dev/shm in a container with so many GPUs: that of the spec, else what PyTorch needs."""
    return str(spec.runtimes.docker_settings.shm_size or f"{max(LEAST_SHM_GIB, count)}g")


def master(first: Settings, job: Job) -> str:
    """Return the address of rank 0 on the fabric; raises NcclError."""
    up = {each.port.name for each in first.choices.chosen}
    usable = [each.address for each in first.fabric if each.address is not None and each.port.name in up]
    usable += [wire.address.ip for wire in first.wires]
    found = job.address or next(map(str, usable), "")
    if not found:
        raise NcclError("no active port of rank 0 has an IP address; give its address with --master-addr ADDRESS")
    return found


def line(rank: int, nodes: int, address: str, job: Job, spec: NodeSpec, state: NodeState, told: Settings) -> Launch:
    """The line of one node; raises NcclError."""
    processes = job.processes or gpus(spec, state)
    options = {
        "--nnodes": nodes,
        "--node-rank": rank,
        "--nproc-per-node": processes,
        "--master-addr": address,
        "--master-port": job.port,
    }
    words = [word for name, value in options.items() for word in (name, str(value))]
    argv = ("torchrun", *words, *(job.script or (EXAMPLE,)))
    environment = {**unwritten(told.variables, state), **told.environment, torch.VARIABLE: job.handling}
    return Launch(rank, environment, argv, processes)


def unwritten(variables: Mapping[str, str], state: NodeState) -> dict[str, str]:
    """Return no variables if /etc/nccl.conf of the node has all of them with these values, else all variables."""
    configured = conf.effective(state.files[conf.CONF].text) if conf.CONF in state.files else {}
    return {} if all(configured.get(name) == value for name, value in variables.items()) else dict(variables)


def notes(address: str, job: Job, told: Settings, launch: Launch) -> Iterator[str]:
    """Yield the notes on the command of a node."""
    nets = [ip_network(port.network) for port in told.fabric if port.network]
    nets += [wire.address.network for wire in told.wires]
    if nets and not job.address and not any(ip_interface(address).ip in net for net in nets):
        networks = ", ".join(map(str, nets))
        yield (
            f"its fabric ({networks}) does not contain the master address {address}: it needs a route "
            "(gpuready fabric --tests tcp_connect shows whether it has one)"
        )
    if not (set(launch.environment) - {torch.VARIABLE, *told.environment}):
        yield f"NCCL's settings come from {conf.CONF}, which a container does not see"
