"""``gpuready launch HOW``: print what starts a training on several nodes. Starts and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuready.cli.complete import files
from gpuready.cli.options import EXIT_CODES, RDMA_RESOURCE, STATE, HostVerb, Number, hosts, probe_options
from gpuready.fabric.launch import EXAMPLE, MASTER_PORT
from gpuready.network import torch

if TYPE_CHECKING:
    from gpuready.cli.request import Request
    from gpuready.fabric.kubernetes import Workload

F = TypeVar("F", bound=Callable[..., Any])
_HELP = """Print the commands or the job that start a training on several nodes. Starts and changes nothing.

\b
  gpuready launch hosts -i hosts.yaml -- train.py --epochs 3     the torchrun line of each host
  gpuready launch slurm -i hosts.yaml -- train.py > train.sbatch
  gpuready launch env -- train.py                                for operators that set RANK, WORLD_SIZE, MASTER_ADDR

Without a script, the lines start ddp.py: gpuready example ddp > ddp.py.
"""
_HOSTS = """Print the torchrun line of each host, with its NCCL settings. Reads the hosts.

\b
  gpuready launch hosts -i hosts.yaml -- train.py --epochs 3
  gpuready launch hosts -i hosts.yaml --state states.json -- train.py

The first host of the inventory is rank 0 and the master.
"""
_ENV = """Print the torchrun line for operators that set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in each pod.

\b
  gpuready launch env -i hosts.yaml --state states.json -- train.py
"""
_SLURM = """Print a batch script for sbatch.

\b
  gpuready launch slurm -i hosts.yaml --state states.json -- train.py > train.sbatch
"""
_KUBERNETES = """Print a PyTorchJob and the example script, for kubectl apply.

\b
  gpuready launch kubernetes -i hosts.yaml --state states.json
"""
_RUNAI = """Print runai training pytorch submit, for NVIDIA Run:ai.

\b
  gpuready launch runai -i hosts.yaml --state states.json -- train.py
"""
_GCP_BATCH = """Print a job for Google Cloud Batch. It starts torchrun in a container, on one VM with GPUs.

\b
  gpuready launch gcp-batch -i hosts.yaml --limit job --machine-type a3-highgpu-8g -- train.py > job.json
"""
#: Nodes, if no inventory says how many.
_NODES = 2
_SCRIPT = click.argument("script", nargs=-1, metavar="[-- SCRIPT ARGS...]", shell_complete=files)


@click.group("launch", help=_HELP, epilog=EXIT_CODES, no_args_is_help=True)
def command() -> None:
    """The group."""


@command.command("hosts", cls=HostVerb, help=_HOSTS)
@probe_options
@STATE
@click.option("--master-port", "port", type=Number(1024, 65535), default=MASTER_PORT, show_default=True,
              help="Port on which rank 0 listens.")  # fmt: skip
@click.option(
    "--master-addr", "address", metavar="ADDRESS", default="", help="Default: the first fabric address of rank 0."
)
@click.option("--nproc-per-node", "processes", type=Number(1, 1024), help="Default: the GPUs of each host.")
@click.option("--async-error-handling", "handling", type=click.Choice(tuple(torch.VALUES)), default=torch.DEFAULT,
              show_default=True, help=f"{torch.VARIABLE}: what a rank does when another rank is lost.")  # fmt: skip
@_SCRIPT
def _hosts(
    state: str | None, script: tuple[str, ...], port: int, processes: int | None, address: str, handling: str,
    **given: Any,
) -> int:  # fmt: skip
    from gpuready.cli.request import request
    from gpuready.cli.workload import nccl_settings
    from gpuready.fabric.launch import Job
    from gpuready.verbs.launch.lines import add_lines, check_address

    check_address(address)
    wanted = request("launch hosts", **given)
    run, found = nccl_settings(wanted, state)
    add_lines(run, wanted, Job(script, port, processes, address, handling), found)
    return wanted.deliver(run)


@command.command("env", cls=HostVerb, help=_ENV)
@hosts
@STATE
@_SCRIPT
def _env(state: str | None, script: tuple[str, ...], **given: Any) -> None:
    from gpuready.verbs.launch.training import plain

    wanted, _ = _workload("env", state, given, "gpus")
    _print(plain(wanted, script or (EXAMPLE,)))


@command.command("slurm", cls=HostVerb, help=_SLURM)
@hosts
@STATE
@_SCRIPT
def _slurm(state: str | None, script: tuple[str, ...], **given: Any) -> None:
    from gpuready.cli.sink import say
    from gpuready.verbs.launch.training import slurm

    wanted, nodes = _workload("slurm", state, given, "gpus", "nodes")
    if not wanted.on_host:
        how = "gpuready nccl --output env prints those for TCP" if state else "--state FILE adds those for RDMA"
        say(f"note: the script has no NCCL settings; {how}", err=True)
    _print(slurm(wanted, nodes, script or (EXAMPLE,)))


@command.command("kubernetes", cls=HostVerb, help=_KUBERNETES)
@hosts
@STATE
@RDMA_RESOURCE
def _kubernetes(state: str | None, rdma_resource: str, **given: Any) -> None:
    from gpuready.fabric import kubernetes
    from gpuready.verbs.launch.training import pytorch_job

    found = _chosen("kubernetes", state, given)
    wanted, nodes, notes = _agreed(found, state, "nodes")
    head = kubernetes.head("launch kubernetes", wanted, rdma_resource) + [f"Replace: {note}." for note in notes]
    head += ["RuntimeClass nvidia and the networks rdma-N are those of gpuready render kubernetes: apply them first."]
    head += ["The checkpoint outlives the container, but not the pod: put a volume in place of the emptyDir."]
    _print(kubernetes.document(head, pytorch_job(wanted, nodes, rdma_resource)))


@command.command("runai", cls=HostVerb, help=_RUNAI)
@hosts
@STATE
@RDMA_RESOURCE
@_SCRIPT
def _runai(state: str | None, rdma_resource: str, script: tuple[str, ...], **given: Any) -> None:
    from gpuready.verbs.launch.training import runai

    more = f"PROJECT, and {rdma_resource} (--rdma-resource)"
    wanted, nodes = _workload("runai", state, given, "image", "gpus", "network", "nodes", more=more)
    _print(runai(wanted, nodes, script or (EXAMPLE,), rdma_resource))


@command.command("gcp-batch", cls=HostVerb, help=_GCP_BATCH)
@hosts
@click.option("--machine-type", default="", metavar="TYPE", help="Machine type of the VM, such as a3-highgpu-8g.")
@click.option("--accelerator", default="", metavar="TYPE", help="GPUs to attach, for machine types without GPUs.")
@click.option("--boot-image", default="", metavar="IMAGE", help="Boot image. Default: that of Batch for --system.")
@click.option("--system", type=click.Choice(("debian", "cos")), default="debian", show_default=True,
              help="System of the VM: Debian or Container-Optimized OS.")  # fmt: skip
@_SCRIPT
def _gcp_batch(
    machine_type: str, accelerator: str, boot_image: str, system: str, script: tuple[str, ...], **given: Any
) -> None:
    from gpuready.cli.request import request
    from gpuready.cli.workload import chooses
    from gpuready.verbs.launch import gcp_batch

    job = gcp_batch.Job(machine_type, script, accelerator, boot_image, system)
    entries = request("launch gcp-batch", **given).entries if chooses(given) else ()
    _print(gcp_batch.document(job, entries))


def _print(text: str) -> None:
    from gpuready.cli.sink import say

    say(text.rstrip())


def _chosen(target: str, state: str | None, given: dict[str, Any]) -> Request | None:
    """Return the request, or None without an inventory: then placeholders stand for what only hosts know."""
    from gpuready.cli.request import request
    from gpuready.cli.workload import chooses

    return request(f"launch {target}", **given) if state is not None or chooses(given) else None


def _agreed(found: Request | None, state: str | None, *needed: str) -> tuple[Workload, int, list[str]]:
    """Return what the hosts need, their number, and what the user must replace in the text."""
    from gpuready.cli.workload import agreed

    entries = found.entries if found else ()
    wanted, _ = agreed(entries, state)
    notes = [wanted.placeholders[name] for name in needed if name in wanted.placeholders]
    if "nodes" in needed and not entries:
        notes.append(f"{_NODES} nodes (-i counts the hosts)")
    return wanted, len(entries) or _NODES, notes


def _workload(
    target: str, state: str | None, given: dict[str, Any], *needed: str, more: str = ""
) -> tuple[Workload, int]:
    """As :func:`_agreed`; notes on stderr say what to replace."""
    from gpuready.cli.sink import say

    wanted, nodes, notes = _agreed(_chosen(target, state, given), state, *needed)
    for note in (*notes, more) if more else notes:
        say(f"note: replace {note}", err=True)
    return wanted, nodes
