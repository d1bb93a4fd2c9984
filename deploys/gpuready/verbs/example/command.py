"""``gpuready example``: print a training script, or what starts it on several nodes. Changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuready.cli.complete import files
from gpuready.cli.options import RDMA_RESOURCE, STATE, HostVerb, hosts

if TYPE_CHECKING:
    from gpuready.cli.request import Request

_HELP = """Print a PyTorch training script for several nodes (DistributedDataParallel, synthetic data), or its launcher.

\b
  gpuready example ddp -o ddp.py                            the script, into a file
  gpuready example ddp --launch hosts -i hosts.yaml         the torchrun line of each host
  gpuready example ddp --launch env                         for operators that set RANK, WORLD_SIZE, MASTER_ADDR
  gpuready example ddp --launch slurm -i hosts.yaml         a batch script, for sbatch; -o ddp.sbatch writes a file
  gpuready example ddp --launch kubernetes -i hosts.yaml    a PyTorchJob and the script, for kubectl apply
  gpuready example ddp --launch runai -i hosts.yaml         runai training pytorch submit

-i gives the number of nodes, GPUs and the image; --state gives NCCL's settings. Without them, it prints placeholders.
The training resumes from its checkpoint when a rank was lost. Without GPUs, it uses gloo.
"""
#: The name of the script in each launch; and the number of nodes without an inventory.
_NAME, _NODES = "ddp.py", 2


@click.command("example", cls=HostVerb, help=_HELP)
@click.argument("what", type=click.Choice(["ddp"]))
@hosts
@STATE
@click.option("-o", "--file", metavar="FILE", shell_complete=files,
              help="Write to FILE, which must not exist: the script, or with --launch what launches it.")  # fmt: skip
@click.option("--launch", type=click.Choice(["hosts", "env", "slurm", "kubernetes", "runai"]),
              help=f"Print what launches the training, instead of the script. It starts {_NAME}.")  # fmt: skip
@RDMA_RESOURCE
def command(
    what: str, file: str | None, launch: str | None, state: str | None, rdma_resource: str, **given: Any
) -> int:
    """The exit code."""
    from gpuready.base.errors import UsageError
    from gpuready.cli.output import write_new
    from gpuready.cli.request import request
    from gpuready.cli.sink import say, write_stdout
    from gpuready.verbs.example import training

    if launch is None and (given["inventory"] or state is not None):
        raise UsageError("the script is the same for all hosts", remedy="--launch FORM, or leave -i and --state out")
    if launch == "hosts" and file:
        raise UsageError("--launch hosts prints a report, not a file", remedy=f"-o {file} without --launch: the script")
    if launch == "hosts" and given["inventory"]:
        return _run_nccl(launch=True, script=(_NAME,), state=state, **given)
    found = request("example ddp", **given) if given["inventory"] or launch == "hosts" or state is not None else None
    text = _form(launch, found, state, rdma_resource) if launch else training.script()
    if not file:
        write_stdout(text)
        return 0
    path = Path(file).expanduser()
    exists = UsageError(f"{path} exists, and example overwrites nothing", remedy="another name: -o FILE")
    write_new(path, text, exists)
    say(f"wrote {file}" if launch else f"wrote {file}; next: gpuready example ddp --launch FORM", err=True)
    return 0


def _run_nccl(**given: Any) -> int:
    """Run ``gpuready nccl`` with these options, and return its exit code."""
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)
    nccl = root.command.get_command(root, "nccl")
    assert nccl is not None
    code: int = root.invoke(nccl, **given)
    return code


#: What is a placeholder in each form, if nothing says it; in a PyTorchJob, comments name it.
_SHOWN = {"env": ("gpus",), "slurm": ("gpus",), "runai": ("image", "gpus", "network")}


def _form(launch: str, found: Request | None, state: str | None, resource: str) -> str:
    from gpuready.cli.sink import say
    from gpuready.cli.workload import agreed
    from gpuready.fabric import kubernetes
    from gpuready.verbs.example import training

    entries = found.entries if found else ()
    wanted, _ = agreed(entries, state)
    nodes = len(entries) or _NODES
    notes = [wanted.placeholders[name] for name in _SHOWN.get(launch, ()) if name in wanted.placeholders]
    notes += [] if entries or launch == "env" else [f"{nodes} nodes (-i counts the hosts)"]
    notes += [f"PROJECT, and {resource} (--rdma-resource)"] if launch == "runai" else []
    for note in notes if launch != "kubernetes" else ():
        say(f"note: replace {note}", err=True)
    if launch == "slurm" and not wanted.on_host:
        say("note: the script has no settings of NCCL: --state FILE adds those of the hosts", err=True)
    if launch == "slurm":
        return training.slurm(wanted, nodes, _NAME)
    if launch == "env":
        return training.plain(wanted, _NAME)
    if launch == "runai":
        return training.runai(wanted, nodes, _NAME, resource)
    head = kubernetes.head("example ddp", wanted, resource) + [f"Replace: {note}." for note in notes]
    head += ["RuntimeClass nvidia and the networks rdma-N are those of gpuready render k8s: apply them first."]
    head += ["The checkpoint outlives the container, but not the pod: put a volume in place of the emptyDir."]
    return kubernetes.document(head, training.pytorch_job(wanted, nodes, _NAME, resource))
