"""Check that nvidia-smi answers for every GPU. Also the helpers that all checks of GPUs share.

Sources: nvidia-smi(1), "RETURN VALUE"; exit 18 is NVML's own number (NVML_ERROR_LIB_RM_VERSION_MISMATCH).
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpuready.base.words import count
from gpuready.contract import need
from gpuready.contract.check import (
    Check,
    EndCheck,
    Judge,
    Level,
    Verdict,
    fail,
    gpu_count,
    has_gpu,
    passed,
    skip,
    unknown,
)
from gpuready.model.smi import Gpu, gpus
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

DRIVER = ("driver.loaded", "driver.match")
ROOTS = (*DRIVER, "gpu.answers")
"""While one of these checks fails, no other check of a GPU is judged."""
RESET = "drain the node and reset the GPU (nvidia-smi -r -i BUS; with NVSwitch, reset all GPUs), or reboot"


@dataclass(frozen=True)
class Problem:
    """One problem of one GPU. ``status`` is fail or warn."""

    status: str
    text: str
    remedy: str


def listed(state: NodeState) -> tuple[Gpu, ...]:
    """Return the GPUs that nvidia-smi lists. If there are none, the check is skipped."""
    if state.driver.smi is None:
        raise EndCheck(skip("nvidia-smi did not run: no driver is loaded, or nvidia-smi is not in root's PATH"))
    if not (found := need.value(gpus(need.value(state.driver.smi)))):
        raise EndCheck(skip(_NO_GPU))
    return found


def each(judge: Callable[[NodeSpec, Gpu], Iterable[Problem] | None], good: str, lacks: str) -> Judge:
    """Judge every GPU with ``judge``.

    The check passes with ``good`` where no GPU has a problem. It is skipped with ``lacks`` where ``judge`` returns None
    for every GPU.
    """

    def judge_all(spec: NodeSpec, state: NodeState) -> Verdict:
        found = listed(state)
        judged = [(gpu, judge(spec, gpu)) for gpu in found]
        if all(findings is None for _, findings in judged):
            return skip(lacks)
        wrong = [(gpu, finding) for gpu, findings in judged for finding in findings or ()]
        if not wrong:
            return passed(f"{good} (GPUs: {len(found)})")
        worst = [(gpu, finding) for gpu, finding in wrong if finding.status == "fail"] or wrong
        first = worst[0][1]
        affected = len({gpu.bus for gpu, _ in worst})
        summary = f"{affected} of {len(found)} GPUs: {first.text}" if len(found) > 1 else first.text
        evidence = "; ".join(f"{gpu.bus}: {finding.text}" for gpu, finding in wrong[:8])
        return Verdict(first.status, summary, evidence, first.remedy)

    return judge_all


def companions(state: NodeState, names: re.Pattern[str]) -> dict[str, str]:
    """Map each installed package whose whole name matches ``names`` to its version."""
    return {name: package.version for name, package in need.value(state.packages).items() if names.fullmatch(name)}


def of_version(package: str, driver: str) -> bool:
    """Tell whether a package version is that of the driver, to the last digit."""
    return re.match(rf"(\d+:)?{re.escape(driver)}(?![0-9.])", package) is not None


def on(value: bool) -> str:
    return "on" if value else "off"


def check(
    id: str,
    title: str,
    cause: str,
    confirm: str,
    fix: str,
    judge: Judge,
    *,
    component: str = "",
    after: tuple[str, ...] = ROOTS,
    active: bool = False,
) -> Check:
    """Build a check of GPUs. It is not judged while one of ``after`` fails."""
    return Check(id, title, Level.effective, cause, confirm, fix, judge, component, True, active, after)


_NO_GPU = "nvidia-smi lists no GPU"
_EXITS = {
    8: "a power cable is not connected",
    9: "the driver does not answer",
    10: "the kernel found a problem with a GPU's interrupts",
    12: "libnvidia-ml.so.1 is not found",
    14: "a GPU's infoROM is corrupt",
    15: "a GPU is off the bus or cannot be reached",
    18: "driver and library have different versions",
}


def _answers(spec: NodeSpec, state: NodeState) -> Verdict:
    smi = state.driver.smi
    if smi is None:
        loaded = state.driver.proc_version and has_gpu(state) and state.driver.owner != "operator"
        what = "nvidia-smi is not in root's PATH"
        return unknown(what, "install the driver's utilities") if loaded else skip(f"{what}, or no driver is loaded")
    if isinstance(smi, Unknown):
        code = re.match(r"smi: exit (\d{1,3}): ", smi.unknown)
        if code is None:
            return unknown(smi.unknown)
        return fail(f"nvidia-smi exits with {code[1]}: {_EXITS.get(int(code[1]), 'it failed')}", evidence=smi.unknown)
    found = need.value(gpus(smi))
    if not found:
        return unknown(_NO_GPU) if has_gpu(state) else skip(_NO_GPU)
    errors = [f"{gpu.bus}: {path} is {text}" for gpu in found for path, text in gpu.errors.items()]
    if errors:
        return fail(f"nvidia-smi cannot read {count(len(errors), 'value')}", evidence="; ".join(errors[:8]))
    unread = [f"{gpu.bus}: {path} is {text!r}" for gpu in found for path, text in gpu.unread.items()]
    if unread:
        return unknown(f"this gpuready does not understand what nvidia-smi prints: {'; '.join(unread[:4])}")
    return passed(f"nvidia-smi answers for {gpu_count(len(found))}")


ANSWERS = check(
    "gpu.answers",
    "nvidia-smi answers, without an error",
    "nvidia-smi fails, hangs, or shows ERR!, 'Unknown Error', 'GPU requires reset' or 'GPU is lost' instead "
    "of a value: a GPU is off the bus, hangs, or has a corrupt infoROM.",
    "timeout -k 5 60 nvidia-smi -q; echo $?; dmesg | grep -E 'NVRM|Xid'",
    "drain the node and reboot it; replace a GPU that still does not answer, or whose infoROM is corrupt",
    _answers,
    after=DRIVER,
)
