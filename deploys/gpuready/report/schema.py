"""The JSON Schema of the result document: what a consumer may rely on within ``gpuready/result/1``.

Strict on what we write (no other keys), because a test holds every output against it. A consumer should still ignore
keys that it does not know: a version grows.
"""

from __future__ import annotations

from typing import Any

from gpuready.core.check import Level
from gpuready.core.component import Disruption
from gpuready.cuda.predict import VERDICTS
from gpuready.report import nccl
from gpuready.report.document import SCHEMA
from gpuready.report.exitcode import ORDER
from gpuready.report.run import OUTCOMES, VERBS
from gpuready.state.model import NodeState
from gpuready.tools.fabric.commands import TESTS

STATUSES = ("pass", "warn", "fail", "skip", "unknown")
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
SECONDS = {"type": "number", "minimum": 0}
LEVEL = {"enum": [*(item.name for item in Level), None]}


def result_schema() -> dict[str, Any]:
    """The schema of one document, Draft 2020-12."""
    state = NodeState.model_json_schema(ref_template="#/$defs/state.{model}")
    parts = {f"state.{name}": part for name, part in state.pop("$defs", {}).items()}
    hosts = {"type": "object", "additionalProperties": _ref("host")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **_object(("fabric", *_answer()), **_summary(), hosts=hosts),
        "$defs": {**_parts(), "state": state, **parts},
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _or_null(name: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, _ref(name)]}


def _object(_optional: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in _optional],
        "additionalProperties": False,
    }


def _summary() -> dict[str, Any]:
    return {
        "schema": {"const": SCHEMA},
        "gpuready": {**TEXT, "description": "the release that wrote this"},
        "verb": {"enum": [*VERBS, None], "description": "null: none was recognised"},
        "exit_code": {"enum": sorted(ORDER)},
        "error": _or_null("error"),
        "seconds": SECONDS,
        "level": {**LEVEL, "description": "the level that every judged host reached"},
        "gpu_checks": {**COUNT, "description": "checks that really saw a GPU, on all hosts"},
        "batches": {"type": "array", "items": TEXTS, "description": "plan, apply: the hosts that differ, in order"},
        "fabric": {**_ref("fabric"), "description": "fabric only: the tests between hosts"},
        **_answer(),
    }


def _answer() -> dict[str, Any]:
    """compat: what it predicts; of the whole document where no inventory was given."""
    fix = _object(do=TEXT, verdict={"enum": list(VERDICTS)}, certain=FLAG)
    return {
        "verdict": {"enum": [*VERDICTS, None], "description": "compat; null: the image could not be judged"},
        "certain": FLAG, "reason": TEXT, "notes": TEXTS,
        "libcuda": {"type": ["string", "null"], "description": "the image's libcuda, where that one is loaded"},
        "fixes": {"type": "array", "items": fix, "description": "what makes it run, best first"},
    }  # fmt: skip


def _parts() -> dict[str, Any]:
    value = {"type": ["string", "integer", "boolean", "null"]}
    unknown = _object(unknown=TEXT)
    component = _object(
        name=TEXT, applies=FLAG, reason=TEXT,
        disruption={"enum": [item.name for item in Disruption]},
        hits=TEXTS, notes=TEXTS, attempted=FLAG, changed=FLAG, pending=FLAG,
        waits={**TEXT, "description": "why it is pending; in a plan, why it would be"},
        error=_or_null("error"), diff={"type": "array", "items": _ref("change")},
    )  # fmt: skip
    check = _object(
        id=TEXT, level={"enum": [item.name for item in Level]}, gpu=FLAG, status={"enum": list(STATUSES)},
        summary=TEXT, evidence=TEXT, remedy=TEXT,
    )  # fmt: skip
    host = {
        "outcome": {"enum": list(OUTCOMES)}, "error": _or_null("error"), "execs": COUNT, "seconds": SECONDS,
        "reason": {**TEXT, "description": "outcome skipped only: why the host was left alone"},
        "level": LEVEL, "gpu_checks": COUNT, "notes": TEXTS, "reboot": _or_null("reboot"),
        "components": {"type": "array", "items": _ref("component")},
        "checks": {"type": "array", "items": _ref("check")},
        "state": {**_ref("state"), "description": "probe only"},
        "images": {"type": "array", "items": _object(image=TEXT, **_answer()), "description": "compat only"},
    }  # fmt: skip
    host["nccl"] = nccl.schema()
    host["docker_args"] = {"type": "array", "items": _object(words=TEXTS, why=TEXT), "description": "docker-args only"}
    host["attached"] = {"type": "array", "items": _ref("attached"), "description": "rdma: what is on record"}
    optional = ("reason", "state", "images", "nccl", "docker_args", "attached")
    from gpuready.tools.attach.status import STATES  # the other verbs, which want VERBS alone, start without it

    port = _object(port=COUNT, gid_index={"type": ["integer", "null"]}, address=TEXT, reason=TEXT)
    attached = _object(
        device=TEXT, netdev=TEXT, engine=TEXT, container=TEXT, id=TEXT, pod=TEXT, where=TEXT, since=TEXT,
        state={"enum": list(STATES)}, addresses=TEXTS, mtu={"type": ["integer", "null"]},
        up={"type": ["boolean", "null"]}, ports={"type": "array", "items": port},
    )  # fmt: skip
    return {
        "error": _object(kind={**TEXT, "minLength": 1}, message={**TEXT, "minLength": 1}, remedy=TEXT),
        "value": {"anyOf": [value, TEXTS, unknown]},
        "change": _object(key=TEXT, actual=_ref("value"), expected=_ref("value")),
        "component": component,
        "check": check,
        "attached": attached,
        "reboot": {**_object(before=TEXT, after=TEXT, seconds=SECONDS), "description": "boot_ids, if it was rebooted"},
        "host": _object(optional, **host),
        "line": {**_object(optional, host=TEXT, **host), "description": "jsonl: one host"},
        **_fabric_parts(),
        "summary": {**_object(("fabric", *_answer()), **_summary()), "description": "jsonl: the last line"},
    }


def _fabric_parts() -> dict[str, Any]:
    number = {"type": ["number", "null"]}
    end = _object(
        host=TEXT, device=TEXT, port=COUNT, netdev=TEXT, address=TEXT, gid_index={"type": ["integer", "null"]},
        line_gbps={**number, "description": "the netdev's speed in Gbit/s; null: unknown"},
    )  # fmt: skip
    finding = _object(
        round={**COUNT, "description": "from 1"}, test={"enum": list(TESTS)},
        server=_ref("end"), client=_ref("end"), status={"enum": list(STATUSES)},
        value={**number, "description": "in unit; null: no figure"}, unit=TEXT,
        limit={**number, "description": "verify.thresholds, in unit; null: none holds here"},
        more={"type": "object", "additionalProperties": {"type": "number"}},
        summary=TEXT, proof={**TEXT, "description": "that RDMA carried it, by the counters of both ports"},
        remedy=TEXT, server_said=TEXT, client_said=TEXT, seconds=SECONDS,
    )  # fmt: skip
    unpaired = _object(host=TEXT, device=TEXT, port=COUNT, other=TEXT, reason=TEXT)
    fabric = _object(
        pairs=TEXT, seed={"type": ["integer", "null"], "description": "of random:N"}, rounds=COUNT, tests=TEXTS,
        findings={"type": "array", "items": _ref("finding")},
        unpaired={"type": "array", "items": unpaired},
        not_attempted={"type": "array", "items": _object(server=TEXT, client=TEXT, reason=TEXT)},
    )  # fmt: skip
    return {"end": end, "finding": finding, "fabric": fabric}
