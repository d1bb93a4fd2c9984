"""Check that Slurm offers the GPUs that the node has: their number and their type.

Sources: gres.conf(5) (with AutoDetect, Type must be a part of the name that NVML gives, in lower case; each MIG
instance is a GPU of its own), scontrol(1) and what Slurm 22.05 and 24.11 do with fewer devices than slurm.conf says:
the node is drained, and its state has INVALID_REG.
"""

import re

from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, gpu_count, has_gpu, passed, skip, unknown, warn
from gpuready.gpu.gpus import ROOTS, listed
from gpuready.model.smi import Gpu
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

#: A type that names a model, such as h100 or rtx6000. Any other word is a name that somebody chose.
_MODEL = re.compile(r"(?:gh|gb|rtx|[abhlptv])\d{1,4}[a-z]{0,2}")
_EDIT = "write Gres=gpu:{} at the node in slurm.conf and its devices in gres.conf, then restart slurmctld and slurmd"


def _gres(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.slurm is None:
        return skip("no slurmd runs on this node, or scontrol is not there")
    node = need.value(state.slurm)
    if has_gpu(state) and state.driver.smi is None:
        return unknown("nvidia-smi did not run, so the GPUs are not known")
    gpus = listed(state) if has_gpu(state) else ()
    here = sum(gpu.mig_devices if gpu.mig[0] else 1 for gpu in gpus)
    offered = sum(node.gpus.values())
    if not offered and not here:
        return skip("neither Slurm nor the node has GPUs")
    if offered > here or not offered:
        has = gpu_count(offered) if offered else "no GPU"
        return fail(f"Slurm has {has} for {node.name}, the node has {here}", _EDIT.format(here), node.state)
    if "INVALID_REG" in node.state:
        return fail(
            f"slurmd found other resources than slurm.conf has (state {node.state})",
            remedy="compare gres.conf with slurmd -G, and slurm.conf with slurmd -C; then restart slurmd",
        )
    if offered < here:
        return warn(f"Slurm offers {offered} of {gpu_count(here)}", _EDIT.format(here))
    wrong = [] if any(gpu.mig[0] for gpu in gpus) else _other_models(node.gpus, gpus)
    if wrong:
        return warn("; ".join(wrong), "write the type that slurmd -G prints into slurm.conf and gres.conf")
    return passed(f"Slurm offers {gpu_count(offered)}")


def _other_models(offered: dict[str, int], gpus: tuple[Gpu, ...]) -> list[str]:
    """Say which types of Slurm name a model of which the node has fewer GPUs."""
    names = [re.sub(r"[^a-z0-9]", "", gpu.name.lower()) for gpu in gpus]
    found = []
    for kind, number in offered.items():
        models = [word for word in re.split(r"[^a-z0-9]+", kind.lower()) if _MODEL.fullmatch(word)]
        fit = sum(all(model in name for model in models) for name in names)
        if fit < number:
            here = ", ".join(sorted({gpu.name for gpu in gpus}))
            found.append(f"Slurm has {gpu_count(number)} of type {kind}, the node has {fit} (nvidia-smi: {here})")
    return found


CHECKS = (
    Check(
        "slurm.gres",
        "Slurm offers the node's GPUs",
        Level.effective,
        "slurm.conf and gres.conf say how many GPUs of which type the node has. With more than there are, Slurm drains "
        "the node, or a job gets a GPU that is not there. With fewer, GPUs stay unused. With another type, a job that "
        "asks for a model runs on another one.",
        "scontrol show node NODE -o; slurmd -C; slurmd -G; nvidia-smi -L",
        "correct Gres= in slurm.conf and the devices in gres.conf, then restart slurmctld and slurmd",
        _gres,
        gpu=True,
        after=(*ROOTS, "gpu.count"),
        advisory=True,  # a controller that is down is no fault of the node
    ),
)
