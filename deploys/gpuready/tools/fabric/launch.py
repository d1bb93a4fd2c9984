"""The torchrun line of every node: rank by rank, in the order of the inventory, over the fabric.

Each line names its own settings, because names of HCAs and interfaces may differ between nodes; what /etc/nccl.conf of
the node says already is left out. Sources: PyTorch's documentation of torchrun (static rendezvous); ip-sysctl.rst for
the ports that Linux takes for connections of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface, ip_network

from gpuready.components.nccl import conf
from gpuready.network import torch
from gpuready.network.nccl_settings import Settings
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

#: PyTorch's own default, and the first port of net.ipv4.ip_local_port_range.
MASTER_PORT, EPHEMERAL = 29500, 32768
PLACEHOLDER = "YOUR_SCRIPT.py"


@dataclass(frozen=True)
class Launch:
    """The line of one node."""

    rank: int
    environment: dict[str, str]
    argv: tuple[str, ...]
    processes: int

    def __str__(self) -> str:
        """As a shell takes it."""
        return " ".join([*(assignment(*item) for item in self.environment.items()), shlex.join(self.argv)])


def assignment(name: str, value: str) -> str:
    """A variable for any shell; zsh takes a bare ``=NAME`` for the path of a command."""
    return f"{name}='{value}'" if value.startswith("=") and "'" not in value else f"{name}={shlex.quote(value)}"


@dataclass(frozen=True)
class Job:
    """What the user says of it; ``processes`` and ``address`` take the place of what is found."""

    script: tuple[str, ...]
    port: int = MASTER_PORT
    processes: int | None = None
    address: str = ""
    handling: str = torch.DEFAULT


class NoLaunch(Exception):
    """Why a node has no line, as one phrase."""


def gpus(spec: NodeSpec, state: NodeState) -> int:
    """How many processes a node runs: its GPUs; NoLaunch where they cannot be counted, or are not all there."""
    found, pinned = len(state.driver.gpus), spec.hardware.gpus
    if isinstance(pinned, int) and found != pinned:
        raise NoLaunch(f"{found} of {pinned} GPUs are there (hardware.gpus)")
    if not found:
        raise NoLaunch("the driver lists no GPU; say how many processes: --nproc-per-node N")
    return found


def master(first: Settings, job: Job) -> str:
    """The address of rank 0 on the fabric."""
    up = {each.port.name for each in first.choices.chosen}
    usable = (each.address for each in first.fabric if each.address is not None and each.port.name in up)
    found = job.address or next(map(str, usable), "")
    if not found:
        raise NoLaunch("no port of rank 0 that is up has an IP address; say where it listens: --master-addr ADDRESS")
    return found


def line(rank: int, nodes: int, address: str, job: Job, spec: NodeSpec, state: NodeState, told: Settings) -> Launch:
    """The line of one node; raises NoLaunch."""
    processes = job.processes or gpus(spec, state)
    options = {
        "--nnodes": nodes,
        "--node-rank": rank,
        "--nproc-per-node": processes,
        "--master-addr": address,
        "--master-port": job.port,
    }
    words = [word for name, value in options.items() for word in (name, str(value))]
    argv = ("torchrun", *words, *(job.script or (PLACEHOLDER,)))
    return Launch(rank, {**unwritten(told.variables, state), torch.VARIABLE: job.handling}, argv, processes)


def unwritten(variables: Mapping[str, str], state: NodeState) -> dict[str, str]:
    """What /etc/nccl.conf of the node does not say yet; all of it where it says something else of our variables."""
    said = conf.effective(state.files[conf.CONF].text) if conf.CONF in state.files else {}
    return {} if all(said.get(name) == value for name, value in variables.items()) else dict(variables)


def notes(address: str, job: Job, told: Sequence[Settings], lines: Sequence[Launch]) -> list[list[str]]:
    """For each node what should be known about its line."""
    found: list[list[str]] = []
    for each, launch in zip(told, lines, strict=True):
        nets = [ip_network(port.network) for port in each.fabric if port.network]
        told_here = []
        if nets and not job.address and not any(ip_interface(address).ip in net for net in nets):
            said = ", ".join(map(str, nets))
            told_here.append(f"its fabric ({said}) does not hold the master's address {address}: there must be a route")
        if not (set(launch.environment) - {torch.VARIABLE}):
            told_here.append(f"NCCL's settings come from {conf.CONF}, which a container does not see")
        found.append(told_here)
    return found
