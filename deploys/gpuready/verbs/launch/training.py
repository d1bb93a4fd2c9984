"""How each scheduler starts a training on several nodes.

With the c10d rendezvous, torchrun lends its store to the ranks. After a restart they read the addresses of the ranks
before them there, and connect to nobody (seen with PyTorch 2.15 and gloo, two nodes): the batch script turns that off.
Sources: PyTorch's documentation of torchrun (static and c10d rendezvous, restarts) and DistributedDataParallel, and
torch/distributed/elastic/rendezvous/dynamic_rendezvous.py (TORCH_DISABLE_SHARE_RDZV_TCP_STORE);
Slurm's sbatch and srun; Kubeflow's Training Operator v1 (PyTorchJob: the container's name, the variables WORLD_SIZE,
RANK, MASTER_ADDR and MASTER_PORT; without nprocPerNode, WORLD_SIZE counts pods); NVIDIA Run:ai's reference of
``runai training pytorch submit``, v2.24 to v3.0 (the master's GPUs, resources and variables have flags of their own);
run-ai/docs, runai-submit-dist-pytorch.md, for the older command line in docs/guides/training.md.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gpuready.base import resources
from gpuready.fabric.kubernetes import Workload, multus, pod_spec
from gpuready.fabric.launch import EXAMPLE, MASTER_PORT, NcclError
from gpuready.inventory.hosts import HostEntry
from gpuready.model.slurm import SlurmNode
from gpuready.model.state import NodeState
from gpuready.network import torch
from gpuready.network.nccl_settings import assignment
from gpuready.result.text import grouped

#: The script's directory in a container of a PyTorchJob, and that of its checkpoint.
_CODE, _DATA = "/opt/ddp", "/checkpoint"
#: If a rank is lost, the others end, and torchrun starts all of them again.
_HANDLING = {torch.VARIABLE: "1"}


def torchrun(gpus: int, script: Sequence[str]) -> str:
    """Return the shell command for an operator that sets WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT in each pod."""
    return (
        'torchrun --nnodes "${WORLD_SIZE}" --node-rank "${RANK}" --master-addr "${MASTER_ADDR}" '
        f'--master-port "${{MASTER_PORT}}" --nproc-per-node {gpus} {shlex.join(script)}'
    )


def slurm(gpus: int, nodes: int, script: Sequence[str], settings: Mapping[tuple[str, ...], dict[str, str]]) -> str:
    """Return a batch script. ``settings``: the environment of the nodes with these names in Slurm."""
    alike = len(settings) < 2
    common = next(iter(settings.values()), {}) if alike else {}
    return resources.document(
        "verbs/launch/ddp.sbatch",
        nodes=nodes,
        gpus=gpus,
        settings=[assignment(*item) for item in {**common, **_HANDLING}.items()],
        by_node="" if alike else shlex.quote(_by_node(settings)),
        port=MASTER_PORT,
        program=shlex.join(script),
    )


def _by_node(settings: Mapping[tuple[str, ...], dict[str, str]]) -> str:
    """Return the program that starts a task with the environment of its node."""
    cases = []
    for names, variables in settings.items():
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        cases.append(f"  {'|'.join(map(shlex.quote, names))}) {f'export {exports}' if exports else ':'} ;;\n")
    unknown = 'echo "no NCCL settings for node $SLURMD_NODENAME: print this script again, with it" >&2; exit 1'
    return f'case $SLURMD_NODENAME in\n{"".join(cases)}  *) {unknown} ;;\nesac\nexec "$@"'


def named(
    entries: Sequence[HostEntry], states: Mapping[str, NodeState], settings: Mapping[str, dict[str, str]]
) -> dict[tuple[str, ...], dict[str, str]]:
    """Return distinct settings by the nodes' names in Slurm, each with its short form, as Slurm usually has it.

    Raises :class:`NcclError` if nodes with different settings would have one name.
    """
    found: dict[str, dict[str, str]] = {}
    for entry in entries:
        name = _slurm_name(entry, states.get(entry.name))
        short, *domain = name.split(".")
        for each in dict.fromkeys((name, name if domain and short.isdigit() else short)):
            if found.setdefault(each, settings[entry.name]) != settings[entry.name]:
                raise NcclError(
                    f"{entry.name}: its NCCL settings differ from those of another node, and {each} is its name, too",
                    remedy="put Slurm's names into the spec: maintenance: {drain: slurm, node: NAME}",
                )
    shared: dict[tuple[tuple[str, str], ...], list[str]] = grouped(
        (tuple(v.items()), name) for name, v in found.items()
    )
    return {tuple(names): dict(variables) for variables, names in shared.items()}


def _slurm_name(entry: HostEntry, state: NodeState | None) -> str:
    """Return the node's name in Slurm: of the spec, as Slurm said, or that of the inventory."""
    said = entry.spec.maintenance.node if entry.spec.maintenance.drain == "slurm" else None
    seen = state.slurm.name if state is not None and isinstance(state.slurm, SlurmNode) else None
    return said or seen or entry.name


def pytorch_job(wanted: Workload, nodes: int, resource: str) -> list[dict[str, Any]]:
    """Return a ConfigMap with the example, and the PyTorchJob that runs it on ``nodes`` pods."""
    script = (f"{_CODE}/{EXAMPLE}", "--checkpoint", f"{_DATA}/ddp.pt")
    command = ("sh", "-c", f"exec {torchrun(wanted.gpus, script)}")
    volumes = (
        ({"name": "code", "configMap": {"name": "ddp"}}, _CODE),
        ({"name": "checkpoint", "emptyDir": {}}, _DATA),
    )
    pod = pod_spec(wanted, command, name="pytorch", resource=resource, variables=_HANDLING, volumes=volumes)
    template = {"metadata": multus(wanted), "spec": pod} if wanted.attachments else {"spec": pod}
    counts = {"Master": 1, "Worker": nodes - 1}
    replicas = {
        kind: {"replicas": count, "restartPolicy": "OnFailure", "template": template}
        for kind, count in counts.items()
        if count
    }
    example = resources.document("verbs/example/ddp.py", measure=False)
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ddp"}, "data": {EXAMPLE: example}},
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "ddp"},
            "spec": {
                "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 10},
                "pytorchReplicaSpecs": replicas,
            },
        },
    ]


def runai(wanted: Workload, nodes: int, script: Sequence[str], resource: str) -> str:
    """Return the command that submits the training to NVIDIA Run:ai; the image must contain the script."""
    line = f"sh -c {shlex.quote(torchrun(wanted.gpus, script))}"
    options: list[tuple[str, ...]] = [
        ("--project", "PROJECT"),
        ("--image", wanted.image),
        *((("--workers", str(nodes - 1)),) if nodes > 1 else ()),
        ("--gpu-devices-request", str(wanted.gpus)),
        ("--master-gpu-devices-request", str(wanted.gpus)),
        ("--large-shm",),
        ("--restart-policy", "OnFailure"),
        ("--master-restart-policy", "OnFailure"),
        *_fabric(wanted, resource),
        *_both("--environment-variable", "--master-environment-variable", {**wanted.variables, **_HANDLING}),
        ("--master-command", line),
    ]
    words = [" ".join(map(shlex.quote, option)) for option in options]
    return " \\\n  ".join(["runai training pytorch submit ddp", *words, f"--command -- {line}"]) + "\n"


def _fabric(wanted: Workload, resource: str) -> list[tuple[str, ...]]:
    if not wanted.rdma:
        return []
    found: list[tuple[str, ...]] = [("--capability", "IPC_LOCK")]
    found += _both("--extended-resource", "--master-extended-resource", {resource: "1"})
    if wanted.attachments:
        chosen = ",".join(f"rdma-{n}@net{n}" for n, _ in enumerate(wanted.attachments, 1))
        found.append(("--annotation", f"k8s.v1.cni.cncf.io/networks={chosen}"))
    return found


def _both(workers: str, master: str, values: Mapping[str, str]) -> list[tuple[str, ...]]:
    return [(flag, f"{name}={value}") for name, value in values.items() for flag in (workers, master)]


def plain(wanted: Workload, script: Sequence[str]) -> str:
    """Return the line for operators that set the variables, with the settings of NCCL that are known in front."""
    known = _HANDLING if "network" in wanted.placeholders else {**wanted.variables, **_HANDLING}
    found = [assignment(*item) for item in known.items()]
    return " ".join([*found, torchrun(wanted.gpus, script)]) + "\n"
