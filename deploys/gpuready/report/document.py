"""The result document: what every other output is a rendering of, and what scripts read.

Its id is ``gpuready/result/1``; within a version it only grows. It is valid on every exit, also when nothing was
done at all: then ``error`` says why and ``hosts`` is empty. All of its texts are masked.
"""

from __future__ import annotations

from typing import Any

from gpuready import __version__
from gpuready.core.check import Judged
from gpuready.core.component import Value
from gpuready.core.errors import GpureadyError
from gpuready.report import containers, fabric, nccl
from gpuready.report.compat_report import answer_document
from gpuready.report.coverage import gpu_checks, level, run_level
from gpuready.report.mask import mask, mask_state, mask_text, mask_value
from gpuready.report.run import INTERRUPTED, ComponentRun, HostRun, Run
from gpuready.state.model import Unknown

SCHEMA = "gpuready/result/1"


def document(run: Run, code: int) -> dict[str, Any]:
    """The whole run as JSON values; ``code`` is the exit code that goes with it."""
    return {**summary(run, code), "hosts": {host.name: host_document(run, host) for host in run.everyone}}


def summary(run: Run, code: int) -> dict[str, Any]:
    """All of the document that is not about a single host."""
    reached = run_level(run)
    tested = {} if run.fabric is None else {"fabric": fabric.document(run.fabric)}
    return {
        "schema": SCHEMA,
        "gpuready": __version__,
        "verb": run.verb or None,
        "exit_code": code,
        "error": _run_error(run),
        "seconds": round(run.seconds, 3),
        "level": None if reached is None else reached.name,
        "gpu_checks": sum(map(gpu_checks, run.hosts)),
        "batches": [list(batch) for batch in run.batches],
        **(answer_document(run.answer) if run.answer is not None else {}),
        **tested,
    }


def host_document(run: Run, host: HostRun) -> dict[str, Any]:
    """One host; only ``probe`` carries its state."""
    reached = level(host)
    found = {
        "outcome": host.outcome,
        "error": _error(host.error),
        "execs": host.execs,
        "seconds": round(host.seconds, 3),
        "level": None if reached is None else reached.name,
        "gpu_checks": gpu_checks(host),
        "notes": mask(host.notes),
        "reboot": host.reboot,
        "components": [_component(item) for item in host.components],
        "checks": [_check(judged) for judged in host.checks],
    }
    if host.outcome == "skipped":
        found["reason"] = mask_text(host.reason)
    if run.verb == "compat":
        found["images"] = [{"image": mask_text(item.image), **answer_document(item)} for item in host.answers]
    if host.nccl is not None:
        found["nccl"] = mask(nccl.document(host.nccl))
    if host.docker_args is not None:
        found["docker_args"] = mask(containers.document(host.docker_args))
    if run.verb == "probe" and host.state is not None:
        found["state"] = mask_state(host.state)
    if host.attached is not None:
        found["attached"] = [mask(each.to_json()) for each in host.attached]
    return found


def _run_error(run: Run) -> dict[str, str] | None:
    if run.error is None and run.interrupted:
        return dict(INTERRUPTED)
    return _error(run.error)


def _error(error: GpureadyError | None) -> dict[str, str] | None:
    return None if error is None else {key: mask_text(text) for key, text in error.to_json().items()}


def _component(item: ComponentRun) -> dict[str, Any]:
    found = item.found
    return {
        "name": found.name,
        "applies": found.applies,
        "reason": found.reason,
        "disruption": found.disruption.name,
        "hits": mask(found.hits),
        "notes": mask(found.notes),
        "attempted": item.attempted,
        "changed": item.changed,
        "pending": bool(item.pending),
        "waits": mask_text(item.pending or item.forecast),
        "error": _error(item.error) or _uncomparable(found.error),
        "diff": [
            {"key": c.key, "actual": _value(c.key, c.actual), "expected": _value(c.key, c.expected)} for c in found.diff
        ],
    }


def _uncomparable(reason: str) -> dict[str, str] | None:
    return {"kind": "converge", "message": mask_text(reason), "remedy": ""} if reason else None


def _value(key: str, value: Value) -> Any:
    if isinstance(value, Unknown):
        return {"unknown": mask_text(value.unknown)}
    return mask_value(key, value)


def _check(judged: Judged) -> dict[str, Any]:
    verdict = judged.verdict
    return {
        "id": judged.check.id,
        "level": judged.check.level.name,
        "gpu": judged.check.gpu,
        "status": verdict.status,
        "summary": mask_text(verdict.summary),
        "evidence": mask_text(verdict.evidence),
        "remedy": mask_text(verdict.remedy),
    }
