"""The check of DCGM's diagnostic (``dcgm.diag``): parse what ``dcgmi diag -j`` printed, and judge each GPU by it. Pure.

DCGM 4 names an entity (group and id) for each result; DCGM 3 has ``gpu_id`` or a list in ``gpu_ids``. Their ids are
DCGM's own; ``dcgmi discovery -l`` has the UUID of each. dcgmi exits with an error if a test failed, so its exit code
alone says nothing. A finding of severity 5 is about a setting, such as persistence mode, and not about a GPU.
Sources: dcgmi/Diag.cpp, nvvs/include/NvvsJsonStrings.h and dcgmlib/dcgm_errors.h (dcgmErrorSeverity_enum) in
NVIDIA/DCGM; the output of DCGM 3.3.1 in its issue 139; that of 4.2.3 on a GB10, as other projects recorded it.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from gpuready.base import resources
from gpuready.base.documents import DocumentError, read_json
from gpuready.base.errors import brief
from gpuready.contract import ignored_containers
from gpuready.contract.check import Judged, Verdict, fail, gpu_count, passed, skip, unknown, waived, warn
from gpuready.gpu.stress import Node, check
from gpuready.gpu.stress_figures import Gpu, cards, dicts, lost, new_faults, several, why_not
from gpuready.model.spec import NodeSpec

#: Level of dcgmi diag -> seconds after which gpuready stops it: several times what NVIDIA's guide says it takes
#: (seconds, under 2 minutes, under 30 minutes, 1 to 2 hours).
LIMITS = {1: 300, 2: 900, 3: 5400, 4: 14400}
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
#: dcgmErrorSeverity_enum: a setting of the node.
_CONFIG = 5
_SETTING = "change the setting that DCGM names, and run the diagnostic again"
_MOST = 2000  # results that are read


@dataclass
class Diagnosis(Node):
    """The result of the diagnostic on one node. ``settings``: findings that are no fault.

    ``passed``, ``left_out``: tests that passed, and tests that DCGM skipped.
    """

    version: str = ""
    settings: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def chosen_level(spec: NodeSpec, selected: Set[str] | None) -> int | None:
    """Return the level of the diagnostic to run. ``selected``: the names of the components of this run (None: all)."""
    return spec.dcgm.diag if selected is None or "dcgm" in selected else None


def script(spec: NodeSpec, level: int) -> str:
    """Return the script that runs ``dcgmi diag`` at a level, if nothing uses the GPUs."""
    slurm, *ignored = ignored_containers.words(spec)
    return resources.script("dcgm/diag", level=level, limit=LIMITS[level], node=slurm, ignore=ignored)


def diagnosis(runs: Mapping[str, tuple[int, str]]) -> Diagnosis:
    """Parse the records of templates/dcgm/diag.sh.j2."""
    why, fix = why_not(runs, "the diagnostic")
    if why:
        return Diagnosis(unknown=why, fix=fix)
    before = runs.get("before", (0, ""))[1]
    gpus = cards(before)
    if any(gpu.mig for gpu in gpus):
        return Diagnosis(skipped="MIG is on: DCGM's diagnostic needs whole GPUs")
    if not gpus:
        return Diagnosis(unknown="nvidia-smi lists no GPU")
    rc, out = runs.get("diag", (1, ""))
    found = _read(out, gpus, _by_id(runs.get("gpus", (0, ""))[1], gpus))
    found.wrong += new_faults(runs, gpus, "during the diagnostic")
    missing = lost(gpus, runs.get("after", (0, before)))
    found.wrong += [f"{gpu}: {missing[gpu.uuid]}" for gpu in gpus if gpu.uuid in missing]
    if rc in (124, 137):
        found.unknown = "dcgmi diag did not end in time, and was stopped"
    elif rc and not (found.unknown or found.wrong or found.settings):
        found.unknown = f"dcgmi diag: exit {rc}, although no test failed"
    return found


def _read(out: str, gpus: list[Gpu], by_id: Mapping[str, Gpu]) -> Diagnosis:
    """Read dcgmi's document; it may print lines before it."""
    try:
        report = read_json(out[out.find("{") : out.rfind("}") + 1])
    except (ValueError, DocumentError):
        report = None
    root = next((report[name] for name in _ROOTS if name in report), None) if isinstance(report, dict) else None
    if not isinstance(report, dict) or not isinstance(root, dict):
        return Diagnosis(unknown=f"dcgmi diag printed no result: {brief(out, 300) or 'nothing'}")
    if why := _text(root.get("runtime_error")):
        return Diagnosis(unknown=f"dcgmi diag: {brief(why, 300)}")
    metadata = report.get("metadata")
    version = root.get("version") or (metadata.get("version") if isinstance(metadata, dict) else "")
    found, odd, tested = Diagnosis(version=_text(version)[:20], gpus=gpus), list[str](), set[str]()
    left = _MOST
    for test in (test for group in dicts(root.get("test_categories")) for test in dicts(group.get("tests"))):
        name, statuses = brief(_text(test.get("name")), 60), set[str]()
        for result in _results(test)[:left]:
            left -= 1
            status, about = _status(result), _about(result, gpus, by_id)
            said = list(_said(result)) or [(f"status {status[:20]}", 0)]
            faults = [message for message, severity in said if severity != _CONFIG]
            text = f"{about.name}{name}: {(faults or [said[0][0]])[0]}"
            if status == "fail":
                (found.wrong if faults else found.settings).append(text)
            elif status == "warn":
                found.settings.append(text)
            elif status not in ("pass", "skip"):
                odd.append(text)
            statuses.add(status)
            tested |= about.uuids if status != "skip" else set()
        if statuses and statuses <= {"pass", "skip"}:
            if "pass" in statuses:
                found.passed.append(name)
            if "skip" in statuses:
                found.left_out.append(name if len(statuses) == 1 else f"{name} on some GPUs")
    odd += [f"{gpu}: DCGM did not test it" for gpu in gpus if gpu.uuid not in tested]
    if odd:
        found.unknown = several(odd)
    return found


def _results(test: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results of a test. Its summary is one if there are no others, or if it alone failed."""
    results, summary = dicts(test.get("results")), dicts([test.get("test_summary")])
    failed = [each for each in summary if _status(each) == "fail"]
    if results and not (failed and not any(_status(result) == "fail" for result in results)):
        return results
    return [*results, *summary]


def _said(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The messages of a result, with their severity. DCGM 3 has plain texts, too."""
    warnings = result.get("warnings")
    for each in warnings[:8] if isinstance(warnings, list) else [warnings] if warnings else []:
        if isinstance(each, dict):
            yield brief(_text(each.get("warning")), 300), each.get("error_severity")
        else:
            yield brief(_text(each), 300), None


@dataclass(frozen=True)
class _About:
    """Whom a result is about. ``name``: the begin of a message, empty for the whole node. ``uuids``: its GPUs."""

    name: str
    uuids: frozenset[str]


def _about(result: Mapping[str, Any], gpus: list[Gpu], by_id: Mapping[str, Gpu]) -> _About:
    group = _text(result.get("entity_group", "GPU"))[:20]
    ids = next((_text(result[key])[:400] for key in ("entity_id", "gpu_id", "gpu_ids") if key in result), "")
    if not ids:
        return _About("", frozenset(gpu.uuid for gpu in gpus))
    known = [by_id[id] for id in ids.split(",") if id in by_id] if group == "GPU" else []
    name = str(known[0]) if len(known) == 1 else f"{'DCGM' if group == 'GPU' else ''} {group} {ids[:40]}".strip()
    return _About(f"{name}: ", frozenset(gpu.uuid for gpu in known))


def _status(result: Mapping[str, Any]) -> str:
    return _text(result.get("status")).lower()


def _text(value: Any) -> str:
    """A text or a number as text; empty for anything else, whose text could be nested too deeply."""
    return str(value) if isinstance(value, (str, int)) else ""


def _by_id(discovery: str, gpus: list[Gpu]) -> dict[str, Gpu]:
    """DCGM's id of each GPU, from the table of ``dcgmi discovery -l``."""
    by_uuid, found, id = {gpu.uuid: gpu for gpu in gpus}, dict[str, Gpu](), ""
    for line in discovery.splitlines()[:1000]:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 4:
            id = cells[1] if re.fullmatch("[0-9]{1,4}", cells[1]) else id
            gpu = by_uuid.get(cells[2].removeprefix("Device UUID: "))
            if gpu is not None and id:
                found[id] = gpu
    return found


def judge(host: str, spec: NodeSpec, found: Diagnosis | None, today: date) -> Judged:
    """Judge one host; without a diagnosis, the spec asks for none."""
    verdict = _judge(spec, found) if found is not None else skip("dcgm.diag is not set")
    return Judged(DIAG, waived(DIAG, spec, host, today, verdict))


def _judge(spec: NodeSpec, found: Diagnosis) -> Verdict:
    if found.skipped:
        return skip(found.skipped)
    if found.wrong:
        return fail(several(found.wrong), DIAG.fix, "\n".join(found.wrong[1:9]))
    if found.unknown:
        return unknown(found.unknown, found.fix)
    if found.settings and not found.passed:
        return unknown(f"no test passed: {several(found.settings)}", _SETTING)
    if found.settings:
        return warn(several(found.settings), _SETTING, "\n".join(found.settings[1:9]))
    left_out = f"; skipped by DCGM: {', '.join(found.left_out[:12])}" if found.left_out else ""
    return passed(
        f"dcgmi diag -r {spec.dcgm.diag} passed on {gpu_count(len(found.gpus))} (DCGM {found.version}): "
        f"{', '.join(found.passed[:20])}{left_out}"
    )


DIAG = check(
    "dcgm.diag",
    "DCGM's diagnostic finds no fault in a GPU",
    "NVIDIA's diagnostic (dcgmi diag) found a fault in a GPU, or could not run: something uses the GPUs, DCGM is not "
    "installed, or its service nvidia-dcgm does not run.",
    "dcgmi diag -r 1; systemctl status nvidia-dcgm; dmesg | grep -E 'NVRM|Xid'",
    "fault: drain the node and run it again; if the same GPU fails, replace it; not installed: dcgm: {install: true}",
    component="dcgm",
)
