"""Checks of the wheels that gpuready installed: do they load in their environments, and do they support these GPUs?

None of them needs a GPU; the check gpu.torch runs PyTorch on one.
Sources: PyTorch's documentation of torch.cuda; CUDA's documentation on binary and PTX compatibility.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from gpuready.base import resources
from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.base.facts import Answer, Unknown
from gpuready.components.wheels.spec import TorchWheel
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.cuda.pytorch import NCCL_FLOOR, error_in
from gpuready.gpu.compat_host import gpus_of
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_ARCHITECTURE = re.compile(r"(sm|compute)_([0-9]{1,2})([0-9])[af]?")
_ORDER = ("fail", "unknown", "warn", "pass")


def _works(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.torch_wheels:
        return skip("no torch_wheels in the spec")
    found = [_one(one, state.active.get(f"wheel{number}"), state) for number, one in enumerate(spec.torch_wheels)]
    worst = min((verdict.status for verdict in found), key=_ORDER.index)
    said = [verdict for verdict in found if verdict.status == worst]
    remedy = next((verdict.remedy for verdict in said if verdict.remedy), "")
    return Verdict(worst, "; ".join(verdict.summary for verdict in said), "", remedy)


def _one(one: TorchWheel, answer: Answer | Unknown | None, state: NodeState) -> Verdict:
    where = f"{one.name} in {one.env}"
    if answer is None:
        return unknown(f"{where}: not checked")
    if isinstance(answer, Unknown):
        return unknown(f"{where}: {answer.unknown}")
    last = answer.out.strip().rpartition("\n")[2]
    try:
        told = read_json(last)
        told["version"], told["missing"]
    except (ValueError, TypeError, KeyError):
        return unknown(f"{where} did not answer: {last[:200] or 'exit ' + str(answer.rc)}")
    return _wrong(one, where, told, state) or passed(_summary(one, told))


def _wrong(one: TorchWheel, where: str, told: Mapping[str, Any], state: NodeState) -> Verdict | None:
    lacks = told["missing"] if isinstance(told["missing"], list) else []
    words = shlex.join(name.partition(" ")[0] for name in lacks)
    install = f"install them: {one.env}/bin/python -m pip install {words}"
    if error := error_in(told, "version"):
        return fail(f"{where}: {error}")
    if error := error_in(told, "torch") or error_in(told, "modules") or error_in(told, "imported"):
        return fail(brief(f"{where} cannot be imported: {error}", 400), install if lacks else "")
    if why := _not_for(told.get("architectures"), state):
        return fail(f"{where} {why}", "build it with TORCH_CUDA_ARCH_LIST for this GPU")
    if lacks:
        return warn(f"{where} lacks {', '.join(lacks[:8])}", install)
    nccl = told.get("nccl")
    if isinstance(nccl, list) and tuple(nccl) < NCCL_FLOOR:
        return warn(
            f"{where}: NCCL {'.'.join(map(str, nccl))} has no ncclRemoteError, so it cannot report a lost peer",
            f"build it with NCCL {'.'.join(map(str, NCCL_FLOOR))} or newer",
        )
    return None


def _not_for(architectures: object, state: NodeState) -> str:
    """Return why this build has no kernels for a GPU of the node; empty if it has.

    Binaries run on GPUs of the same major version, PTX on every later GPU.
    """
    if not isinstance(architectures, list) or not architectures:
        return ""
    built = [m for m in map(_ARCHITECTURE.fullmatch, map(str, architectures)) if m]
    for gpu in gpus_of(state):
        if not re.fullmatch(r"[0-9]{1,2}\.[0-9]", gpu.capability or ""):
            continue
        major, minor = map(int, str(gpu.capability).split("."))
        if not any(
            (int(m[2]), int(m[3])) <= (major, minor) and (m[1] == "compute" or int(m[2]) == major) for m in built
        ):
            return f"has no kernels for {gpu.name} (sm_{major}{minor}): it was built for {', '.join(architectures)}"
    return ""


def _summary(one: TorchWheel, told: Mapping[str, Any]) -> str:
    text = f"{one.name} {told['version']} in {one.env}"
    if told.get("cuda"):
        nccl = told.get("nccl")
        text += f", CUDA {told['cuda']}" + (f", NCCL {'.'.join(map(str, nccl))}" if isinstance(nccl, list) else "")
    return text


class AskWheels(Question, template="wheels/ask-wheels"):
    """Import each wheel in its environment."""

    environments: tuple[tuple[str, str], ...]
    program: str


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    if not spec.torch_wheels or spec.verify.level == "config":
        return ()
    environments = tuple((one.env, one.name) for one in spec.torch_wheels)
    limits = {f"wheel{number}": 125 for number in range(len(environments))}
    return (AskWheels(limits, environments, resources.document("wheels/smoke.py")),)


CHECKS = (
    Check(
        "wheels.works",
        "installed wheels load and run",
        Level.effective,
        "A wheel that gpuready installed does not load in its environment, lacks a dependency, has no kernels for this "
        "node's GPUs ('no kernel image is available', 209), or has an NCCL that does not report a lost peer.",
        "ENV/bin/python -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.nccl.version())'; "
        "ENV/bin/python -m pip check",
        "install its dependencies into the environment, or build the wheel for it",
        _works,
        component="wheels",
        active=True,
        after=("wheels.config",),
    ),
)
