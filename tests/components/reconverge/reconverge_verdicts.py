"""Rows of test_checks.py for the run on the node itself: what it told, and whether that still holds."""

from __future__ import annotations

import json
from typing import Any

from gpuready.components.reconverge.component import LINK, RESULT, wanted
from gpuready.spec.model import NodeSpec
from gpuready.state.model import File, NodeState

BASE = {"systemd": True, "boot_id": "b1", "driver": {"module_version": "580.1.2"}, "have": ["apt-get"]}
OFF = {"reconverge": {"on_driver_change": "off"}}
SAID = {"boot_id": "b1", "driver": "580.1.2", "outcome": "ok", "reason": "", "mended": [], "left": [], "failed": []}


def node(text: str | None = None, **fields: Any) -> NodeState:
    file = File(text=text or "", mode=0o644, uid=0, gid=0, mtime=0)
    return NodeState.model_validate({**BASE, "files": {} if text is None else {RESULT: file}, **fields})


def told(**fields: Any) -> NodeState:
    return node(json.dumps({**SAID, **fields}))


def booted(uptime: int) -> NodeState:
    """Up for so long, with a result of the boot before."""
    texts = {LINK: "", RESULT: json.dumps({**SAID, "boot_id": "b0"})}
    return node(files=_files(texts), uptime=uptime)


def _files(texts: dict[str, str]) -> dict[str, File]:
    return {path: File(text=text, mode=0o644, uid=0, gid=0, mtime=0) for path, text in texts.items()}


def installed() -> NodeState:
    return node(files=_files({**wanted(NodeSpec(), node()), LINK: "", RESULT: json.dumps(SAID)}))


LEFT = [{"check": "driver.match", "said": "the module is 1"}]

VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("reconverge.config", "skip", node(driver={}), {}, "no NVIDIA driver is loaded"),
    ("reconverge.config", "fail", node(), {}, "gpuready-reconverge"),
    ("reconverge.config", "pass", installed(), {}, "as the spec says"),
    ("reconverge.last", "skip", node(), OFF, "on_driver_change: off"),
    ("reconverge.last", "skip", node(driver={}), {}, "no NVIDIA driver is loaded"),
    ("reconverge.last", "skip", node(systemd=False), {}, "no systemd"),
    ("reconverge.last", "skip", node(marks=["operator_driver"]), {}, "the GPU Operator owns the driver"),
    ("reconverge.last", "fail", node(), {}, "not run since it was installed"),
    ("reconverge.last", "fail", node('{"outcome": "o'), {}, "not run since it was installed"),
    ("reconverge.last", "fail", node("[1]"), {}, "not run since it was installed"),
    ("reconverge.last", "warn", booted(60), {}, "not run since the boot, and is about to"),
    ("reconverge.last", "fail", booted(601), {}, "not run since the boot"),
    ("reconverge.last", "fail", told(boot_id="b0"), {}, "not run since the boot"),
    ("reconverge.last", "fail", told(driver="570.1.2"), {}, "not run since the driver changed"),
    ("reconverge.last", "fail", told(outcome="failed", reason="cdi it says why"), {}, "it failed: cdi it says why"),
    (
        "reconverge.last",
        "warn",
        told(outcome="stale", reason="driver.match", left=LEFT),
        {},
        "left unrepaired: driver.match",
    ),
    ("reconverge.last", "warn", told(outcome="stale", left=7), {}, "left unrepaired"),
    ("reconverge.last", "warn", told(outcome="idle", driver=""), {}, "no driver was loaded when it ran"),
    ("reconverge.last", "pass", told(), {}, "it found nothing stale"),
    ("reconverge.last", "pass", told(outcome="mended", mended=["cdi", "links"]), {}, "it mended cdi, links"),
]
