"""Checks of the PyTorch that verify.torch names: it sees the GPUs, computes on them, and reduces with NCCL.

Messages quote PyTorch's own warning, because is_available() hides CUDA's error number. Sources: PyTorch's
documentation of torch.cuda and torch.distributed; NCCL's release notes (ncclRemoteError, 2.13.4).
"""

from collections.abc import Mapping
from typing import Any

from gpuready.base import resources
from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.contract import need
from gpuready.contract.check import Verdict, fail, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.cuda.pytorch import NCCL_FLOOR, error_in
from gpuready.gpu.gpus import check
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_NOT_NAMED = "the spec names no PyTorch environment (verify.torch)"
_PRODUCT, _REDUCED = 64.0**3 * 4, 1.0


def _python(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.verify.torch:
        return skip(_NOT_NAMED)
    answer = need.answer(state, "python")
    output = answer.out.strip()
    if answer.rc:
        return unknown(output)
    return fail(f"verify.torch: {output}") if output else passed(f"{spec.verify.torch} exists")


def _torch(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.verify.torch:
        return skip(_NOT_NAMED)
    need.driver(state)
    answer = need.answer(state, "torch")
    out = answer.out.strip()
    try:
        report = read_json(out.rpartition("\n")[2])
    except ValueError:
        report = None
    if not isinstance(report, dict):
        why = out.rpartition("\n")[2][:200] or f"exit {answer.rc}"
        return unknown(f"{spec.verify.torch} did not answer: {why}")
    return _wrong(report, spec) or _old_nccl(report) or passed(_summary(report))


def _wrong(report: Mapping[str, Any], spec: NodeSpec) -> Verdict | None:
    warnings = "; ".join(map(str, report.get("warnings", [])))
    if error := error_in(report, "torch"):
        why = brief(f"{spec.verify.torch} cannot import torch: {error}", 400)
        return fail(why, "set verify.torch to the environment's own python")
    name = f"torch {report['torch']}"
    if report.get("cuda") is None:
        return fail(f"{name} was built without CUDA", "install a CUDA build of torch: its version ends in +cuNNN")
    if report.get("available") is not True:
        return fail(brief(f"{name} sees no GPU: {warnings or error_in(report, 'available') or 'no reason given'}", 400))
    want = spec.hardware.expected_gpus
    if want is not None and report.get("count") != want:
        remedy = "check CUDA_VISIBLE_DEVICES, MIG and nvidia-smi"
        return fail(f"{name} sees {report.get('count')} of {want} GPUs", remedy)
    for key, right, what in (("product", _PRODUCT, "a matrix product"), ("reduced", _REDUCED, "an NCCL all-reduce")):
        if error := error_in(report, key):
            built = ", ".join(report.get("architectures") or ())
            return fail(brief(f"{name}: {what} on the GPU failed: {error}", 400), evidence=f"built for {built}")
        if report.get(key) != right:
            summary = f"{name}: {what} on the GPU returned {report.get(key)}, expected {right}"
            return fail(summary, "the GPU computes wrong results: drain the node")
    if error := error_in(report, "triton"):
        return fail(brief(f"{name}: Triton finds no libcuda: {error}", 400), "see libcuda.triton")
    return None


def _old_nccl(report: Mapping[str, Any]) -> Verdict | None:
    nccl = report.get("nccl")
    if isinstance(nccl, list) and tuple(nccl) < NCCL_FLOOR:
        return warn(
            f"{_summary(report)}: this NCCL does not report a lost peer (ncclRemoteError)",
            f"install a build of torch with NCCL {'.'.join(map(str, NCCL_FLOOR))} or newer",
        )
    return None


def _summary(report: Mapping[str, Any]) -> str:
    nccl = report.get("nccl")
    version = ".".join(map(str, nccl)) if isinstance(nccl, list) else "unknown"
    return f"torch {report['torch']} for CUDA {report.get('cuda')}, NCCL {version}, GPUs: {report.get('count')}"


class AskTorch(Question, template="gpu/ask-torch"):
    """Run PyTorch in the environment of verify.torch."""

    torch: str
    program: str


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    if not spec.verify.torch or spec.verify.level == "config":
        return ()
    return (AskTorch({"python": 10, "torch": 125}, spec.verify.torch, resources.document("gpu/torch-smoke.py")),)


CHECKS = (
    check(
        "gpu.python",
        "the Python of verify.torch is there",
        "The Python that verify.torch names is not on the node: a wrong path, a directory, or an environment that was "
        "never created there. This check also runs where CUDA does not work.",
        "ls -lL PYTHON",
        "name the environment's own python (verify: {torch: /opt/train/bin/python}), or create the environment",
        _python,
        after=(),
        active=True,
    ),
    check(
        "gpu.torch",
        "PyTorch computes on the GPUs",
        "The PyTorch that verify.torch names does not work on this node: it was built without CUDA, is newer than the "
        "driver (error 35, 'driver version is insufficient'), is not built for this GPU ('no kernel image is "
        "available'), or CUDA does not initialize (803, 804). NCCL before 2.13.4 does not report a lost peer.",
        "PYTHON -c 'import torch; print(torch.version.cuda, torch.cuda.is_available(), torch.cuda.nccl.version())'",
        "gpuready compat --image-cuda VERSION -i INVENTORY shows whether the driver runs a CUDA version; install "
        "a build for one that it runs",
        _torch,
        active=True,
        after=("gpu.python", "driver.loaded", "driver.match", "libcuda.init"),
    ),
)
