"""PyTorch in the environment that the spec names (verify.torch): does it see the GPUs, multiply, and reduce by NCCL?

Its own warning is shown, because is_available() alone hides the number of CUDA's error. Sources: PyTorch's
documentation of torch.cuda and torch.distributed; NCCL's release notes (ncclRemoteError, 2.13.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.core.documents import read_json
from gpuready.core.errors import brief
from gpuready.cuda.pytorch import NCCL_FLOOR, error_in
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

_PRODUCT, _REDUCED = 64.0**3 * 4, 1.0


def _python(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.verify.torch:
        return skip("no environment of PyTorch is named (verify.torch)")
    answer = state.active.get("python", {"rc": 1, "out": "it was not looked for"})
    said = str(answer["out"]).strip()
    if answer["rc"]:
        return unknown(said)
    return fail(f"verify.torch: {said}") if said else passed(f"{spec.verify.torch} is there")


def _torch(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.verify.torch:
        return skip("no environment of PyTorch is named (verify.torch)")
    if not state.driver.loaded:
        return skip("no nvidia module is loaded")
    answer = state.active.get("torch")
    if answer is None or "unknown" in answer:
        return unknown((answer or {}).get("unknown", "it was not asked"))
    out = str(answer.get("out", "")).strip()
    try:
        told = read_json(out.rpartition("\n")[2])
    except ValueError:
        told = None
    if not isinstance(told, dict):
        why = out.rpartition("\n")[2][:200] or f"exit {answer.get('rc')}"
        return unknown(f"{spec.verify.torch} did not answer: {why}")
    return _wrong(told, spec) or _rather_old(told) or passed(_summary(told))


def _wrong(told: Mapping[str, Any], spec: NodeSpec) -> Verdict | None:
    said = "; ".join(map(str, told.get("warnings", [])))
    if error := error_in(told, "torch"):
        return fail(
            brief(f"{spec.verify.torch} cannot import torch: {error}", 400), "name the environment's own python"
        )
    name = f"torch {told['torch']}"
    if told.get("cuda") is None:
        return fail(f"{name} was built without CUDA", "install a build for CUDA: its version ends in +cuNNN")
    if told.get("available") is not True:
        return fail(brief(f"{name} sees no GPU: {said or error_in(told, 'available') or 'it gives no reason'}", 400))
    want = spec.hardware.gpus if isinstance(spec.hardware.gpus, int) else None
    if want is not None and told.get("count") != want:
        return fail(f"{name} sees {told.get('count')} of {want} GPUs", "CUDA_VISIBLE_DEVICES, MIG, or a lost GPU")
    for key, right, what in (("product", _PRODUCT, "a product"), ("reduced", _REDUCED, "an all-reduce by NCCL")):
        if error := error_in(told, key):
            built = ", ".join(told.get("architectures") or ())
            return fail(brief(f"{name}: {what} on the GPU failed: {error}", 400), evidence=f"built for {built}")
        if told.get(key) != right:
            return fail(
                f"{name}: {what} on the GPU is {told.get(key)}, not {right}", "the GPU computes wrongly: drain it"
            )
    if error := error_in(told, "triton"):
        return fail(brief(f"{name}: Triton finds no libcuda: {error}", 400), "see libcuda.triton")
    return None


def _rather_old(told: Mapping[str, Any]) -> Verdict | None:
    nccl = told.get("nccl")
    if isinstance(nccl, list) and tuple(nccl) < NCCL_FLOOR:
        return warn(
            f"{_summary(told)}: this NCCL has no ncclRemoteError, so a lost peer is not told",
            f"a build of torch with NCCL {'.'.join(map(str, NCCL_FLOOR))} or newer",
        )
    return None


def _summary(told: Mapping[str, Any]) -> str:
    nccl = told.get("nccl")
    version = ".".join(map(str, nccl)) if isinstance(nccl, list) else "not known"
    return f"torch {told['torch']} for CUDA {told.get('cuda')}, NCCL {version}, GPUs: {told.get('count')}"


CHECKS = (
    Check(
        "gpu.python",
        Level.effective,
        "The Python that verify.torch names is not on the node: another path, a directory, or an environment that was "
        "never made there. It is looked for also where nothing of CUDA works.",
        "ls -lL PYTHON",
        "name the environment's own python (verify: {torch: /opt/train/bin/python}), or make the environment",
        _python,
        gpu=True,
        active=True,
    ),
    Check(
        "gpu.torch",
        Level.effective,
        "The named PyTorch does not work with this node: a build without CUDA, newer than the driver (35, 'driver "
        "version is insufficient'), not made for this GPU ('no kernel image is available'), or its CUDA does not come "
        "up (803, 804); NCCL before 2.13.4 does not tell a lost peer.",
        "PYTHON -c 'import torch; print(torch.version.cuda, torch.cuda.is_available(), torch.cuda.nccl.version())'",
        "gpuready compat --image-cuda VERSION -i INVENTORY tells what the driver takes; install a build that fits it",
        _torch,
        gpu=True,
        active=True,
        after=("gpu.python", "driver.loaded", "driver.match", "libcuda.init"),
    ),
)
