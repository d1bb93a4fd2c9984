"""Verdicts on the run on the node itself: what it told, and whether that still holds."""

import json
from typing import Any

from gpuready.components.reconverge.component import LINK, RESULT, wanted
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.verdicts import Row, fails, held, passes, root_files, skips, warns

BASE = {"systemd": True, "boot_id": "b1", "driver": {"module_version": "580.1.2"}, "have": ["apt-get"]}
OFF = {"reconverge": {"on_driver_change": "off"}}
SAID = {"boot_id": "b1", "driver": "580.1.2", "outcome": "ok", "reason": "", "mended": [], "left": [], "failed": []}


def node(text: str | None = None, **fields: Any) -> NodeState:
    return NodeState.model_validate({**BASE, "files": {} if text is None else root_files({RESULT: text}), **fields})


def told(**fields: Any) -> NodeState:
    return node(json.dumps({**SAID, **fields}))


def booted(uptime: int) -> NodeState:
    """Up for so long, with a result of the boot before."""
    texts = {LINK: "", RESULT: json.dumps({**SAID, "boot_id": "b0"})}
    return node(files=root_files(texts), uptime=uptime)


def installed() -> NodeState:
    return node(files=root_files({**wanted(NodeSpec(), node()), LINK: "", RESULT: json.dumps(SAID)}))


LEFT = [{"check": "driver.match", "said": "the module is 1"}]

VERDICTS: list[Row] = [
    skips("reconverge.config", "no NVIDIA driver is loaded", node(driver={})),
    fails("reconverge.config", "gpuready-reconverge", node()),
    passes("reconverge.config", "as the spec says", installed()),
    skips("reconverge.last", "on_driver_change: off", node(), OFF),
    skips("reconverge.last", "no NVIDIA driver is loaded", node(driver={})),
    skips("reconverge.last", "no systemd", node(systemd=False)),
    skips("reconverge.last", "the GPU Operator owns the driver", node(marks=["operator_driver"])),
    fails("reconverge.last", "not run since it was installed", node()),
    fails("reconverge.last", "not run since it was installed", node('{"outcome": "o')),
    fails("reconverge.last", "not run since it was installed", node("[1]")),
    warns("reconverge.last", "not run since the boot, and is about to", booted(60)),
    fails("reconverge.last", "not run since the boot", booted(601)),
    fails("reconverge.last", "not run since the boot", told(boot_id="b0")),
    fails("reconverge.last", "not run since the driver changed", told(driver="570.1.2")),
    fails("reconverge.last", "it failed: cdi it says why", told(outcome="failed", reason="cdi it says why")),
    warns("reconverge.last", "left unrepaired: driver.match", told(outcome="stale", reason="driver.match", left=LEFT)),
    warns("reconverge.last", "left unrepaired", told(outcome="stale", left=7)),
    warns("reconverge.last", "no driver was loaded when it ran", told(outcome="idle", driver="")),
    passes("reconverge.last", "it found nothing stale", told()),
    passes("reconverge.last", "it mended cdi, links", told(outcome="mended", mended=["cdi", "links"])),
]
test_verdict = held(VERDICTS)
