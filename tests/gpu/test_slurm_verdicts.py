"""Verdicts on Slurm's GPUs: lines of scontrol from Slurm 24.11.5 and 22.05.8, on the recorded H200."""

import pytest

from gpuready.model.slurm import SlurmNode, slurm_node
from gpuready.model.state import NodeState, Unknown
from tests.gpu.test_gpu_verdicts import XML, smi, twice
from tests.verdicts import GPU, fails, held, is_unknown, passes, skips, state, warns

#: slurmctld and slurmd on one machine, cut in the middle; its Gres and State are put in.
SHOWN = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=20.45 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres={} NodeAddr=127.0.0.1 NodeHostName=n1 Version=24.11.5 RealMemory=1 AllocMem=0 "
    "FreeMem=14119 Sockets=2 Boards=1 State={} ThreadsPerCore=1 Partitions=gpu CurrentWatts=0 AveWatts=0 "
    "Reason=bad Gres=gpu:9 State=DOWN [root@2026-11-28T14:30:25]\n"
)


def offered(gres: str, node: NodeState | None = None, now: str = "IDLE") -> NodeState:
    """A node, by default with one H200, of which Slurm has these GPUs."""
    return (node or smi(XML)).model_copy(update={"slurm": slurm_node(SHOWN.format(gres, now))})


TWO = twice("", "")
MIG = smi(XML.replace("<current_mig>Disabled", "<current_mig>Enabled"))
VERDICTS = [
    skips("slurm.gres", "no slurmd runs", smi(XML)),
    skips("slurm.gres", "neither Slurm nor the node", offered("(null)", state())),
    is_unknown("slurm.gres", "no answer", smi(XML, slurm=Unknown(unknown="slurm: exit 124: scontrol gave no answer"))),
    is_unknown("slurm.gres", "not known", offered("gpu:1", state({"pci": (GPU,)}))),
    passes("slurm.gres", "Slurm offers 1 GPU", offered("gpu:1")),
    passes("slurm.gres", "Slurm offers 1 GPU", offered("gpu:h200:1(S:0-1),shard:8(S:0,2)")),
    passes("slurm.gres", "Slurm offers 1 GPU", offered("gpu:nvidia_h200:1")),
    passes("slurm.gres", "Slurm offers 1 GPU", offered("gpu:big:1")),
    passes("slurm.gres", "Slurm offers 1 GPU", offered("gpu:h200:no_consume:1(S:0)")),
    passes("slurm.gres", "Slurm offers 1 GPU", offered("gpu:no_consume:1")),
    passes("slurm.gres", "Slurm offers 2 GPUs", offered("gpu:h200:1,gpu:big:1(S:0)", TWO)),
    warns("slurm.gres", "Slurm offers 1 of 2 GPUs", offered("gpu:h200:1", TWO)),
    warns("slurm.gres", "1 GPU of type h100, the node has 0 (nvidia-smi: NVIDIA H200)", offered("gpu:h100:1")),
    fails("slurm.gres", "Slurm has 8 GPUs for n1, the node has 1", offered("gpu:h200:8(S:0-1)")),
    fails("slurm.gres", "Slurm has 2 GPUs for n1, the node has 0", offered("gpu:2", state())),
    fails("slurm.gres", "Slurm has no GPU for n1, the node has 1", offered("(null)")),
    fails("slurm.gres", "INVALID_REG", offered("gpu:h200:1", now="IDLE+DRAIN+INVALID_REG")),
    fails("slurm.gres", "Slurm has 1 GPU for n1, the node has 0", offered("gpu:1", MIG)),
]
test_verdict = held(VERDICTS)


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu", {"": 1}),
        ("gpu:4", {"": 4}),
        ("gpu:h100:4(S:0-1),gpu:a100:2(IDX:4,5)", {"h100": 4, "a100": 2}),
        ("craynetwork:4,gpu:1g.10gb:7", {"1g.10gb": 7}),
        ("nogpu:3", {}),
    ],
)
def test_what_scontrol_says_of_gres(gres: str, gpus: dict[str, int]) -> None:
    assert slurm_node(SHOWN.format(gres, "MIXED+DRAIN")) == SlurmNode(name="n1", state="MIXED+DRAIN", gpus=gpus)
    assert slurm_node("") is None
