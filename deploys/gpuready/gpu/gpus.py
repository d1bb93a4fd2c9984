"""Does nvidia-smi answer for every GPU; and what the checks of single GPUs share.

Sources: nvidia-smi(1), "RETURN VALUE"; exit 18 is NVML's own number (NVML_ERROR_LIB_RM_VERSION_MISMATCH).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpuready.core.check import Check, Judge, Level, Verdict, fail, has_gpu, passed, skip, unknown, warn
from gpuready.gpu.facts.smi import Gpu, gpus
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown

DRIVER = ("driver.loaded", "driver.match")
ROOTS = (*DRIVER, "gpu.answers")
"""Whatever else is wrong with a GPU cannot be told while one of these fails."""
RESET = "drain the node and reset the GPU (nvidia-smi -r -i BUS; with NVSwitch all of them), or reboot"


@dataclass(frozen=True)
class Finding:
    """What is wrong with one GPU; ``status`` is fail or warn."""

    status: str
    text: str
    remedy: str


def listed(state: NodeState) -> tuple[Gpu, ...] | Verdict:
    """The GPUs, or why there is nothing to judge."""
    if state.driver.smi is None:
        return skip("nvidia-smi was not asked: no driver, or it is not on root's PATH")
    found = gpus(state.driver.smi) if isinstance(state.driver.smi, str) else state.driver.smi
    if isinstance(found, Unknown):
        return unknown(found.unknown)
    return found or skip("nvidia-smi names no GPU")


def each(judge: Callable[[NodeSpec, Gpu], Iterable[Finding] | None], good: str, lacks: str) -> Judge:
    """A check of every GPU: its findings, ``good`` without any, skipped when ``judge`` gives None for all of them."""

    def judged(spec: NodeSpec, state: NodeState) -> Verdict:
        found = listed(state)
        if isinstance(found, Verdict):
            return found
        told = [(gpu, judge(spec, gpu)) for gpu in found]
        if all(findings is None for _, findings in told):
            return skip(lacks)
        wrong = [(gpu, one) for gpu, findings in told for one in findings or ()]
        if not wrong:
            return passed(f"{good} (GPUs: {len(found)})")
        worst = [(gpu, one) for gpu, one in wrong if one.status == "fail"] or wrong
        first = worst[0][1]
        many = len({gpu.bus for gpu, _ in worst})
        summary = f"{many} of {len(found)} GPUs: {first.text}" if len(found) > 1 else first.text
        evidence = "; ".join(f"{gpu.bus}: {one.text}" for gpu, one in wrong[:8])
        return (fail if first.status == "fail" else warn)(summary, first.remedy, evidence)

    return judged


def on(value: bool) -> str:
    """A mode in words."""
    return "on" if value else "off"


_EXITS = {
    8: "a power cable is not connected",
    9: "the driver does not answer",
    10: "the kernel found a problem with a GPU's interrupts",
    12: "libnvidia-ml.so.1 is not found",
    14: "a GPU's infoROM is corrupt",
    15: "a GPU is off the bus or cannot be reached",
    18: "driver and library are of different versions",
}


def _answers(spec: NodeSpec, state: NodeState) -> Verdict:
    smi = state.driver.smi
    if smi is None:
        loaded = state.driver.proc_version and has_gpu(state) and state.driver.owner != "operator"
        what = "there is no nvidia-smi on root's PATH"
        return unknown(what, "install the driver's utilities") if loaded else skip(f"{what}, or no driver is loaded")
    if isinstance(smi, Unknown):
        code = re.match(r"smi: exit (\d{1,3}): ", smi.unknown)
        if code is None:
            return unknown(smi.unknown)
        return fail(f"nvidia-smi ends with {code[1]}: {_EXITS.get(int(code[1]), 'it failed')}", evidence=smi.unknown)
    found = gpus(smi)
    if isinstance(found, Unknown):
        return unknown(found.unknown)
    if not found:
        return unknown("nvidia-smi names no GPU") if has_gpu(state) else skip("nvidia-smi names no GPU")
    errors = [f"{gpu.bus}: {path} is {text}" for gpu in found for path, text in gpu.errors.items()]
    if errors:
        return fail(f"nvidia-smi cannot read {len(errors)} of its values", evidence="; ".join(errors[:8]))
    unread = [f"{gpu.bus}: {path} is {text!r}" for gpu in found for path, text in gpu.unread.items()]
    if unread:
        return unknown(f"nvidia-smi's words are not known to this release: {'; '.join(unread[:4])}")
    return passed(f"nvidia-smi answers for {len(found)} GPUs")


ANSWERS = Check(
    "gpu.answers",
    Level.effective,
    "nvidia-smi fails, hangs, or shows ERR!, 'Unknown Error', 'GPU requires reset' or 'GPU is lost' where a value "
    "should be: a GPU is off the bus, hangs, or has a corrupt infoROM.",
    "timeout -k 5 60 nvidia-smi -q; echo $?; dmesg | grep -E 'NVRM|Xid'",
    "drain the node and reboot it; a GPU that still does not answer, or whose infoROM is corrupt, is to be replaced",
    _answers,
    gpu=True,
    after=DRIVER,
)


def check(id: str, cause: str, confirm: str, fix: str, judge: Judge, *after: str, active: bool = False) -> Check:
    """A check of GPUs that answer; ``after`` names its further roots."""
    return Check(id, Level.effective, cause, confirm, fix, judge, gpu=True, active=active, after=(*ROOTS, *after))
