"""dockerd as its files and its command line have it; its own answers are in ``state.docker``."""

from __future__ import annotations

import re

from gpuready.core import json_document
from gpuready.core.json_document import DaemonJsonError, Document
from gpuready.state.model import Docker as Engine
from gpuready.state.model import NodeState, Unknown

CONFIG = "/etc/docker/daemon.json"
#: Engine 25.0 has features.cdi, 28.2 has it on by itself.
CDI_SINCE, CDI_BY_ITSELF = (25, 0), (28, 2)


def command(state: NodeState) -> tuple[str, ...]:
    """The command line of the dockerd that runs; its unit's ExecStart when none does."""
    if state.dockerd_command:
        return state.dockerd_command
    unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
    return tuple(w for w in unit.exec_start if not w.startswith("$")) if unit else ()


def engine_version(state: NodeState) -> tuple[int, ...]:
    """The running engine's version, a stopped one's by its package; (0,) when neither tells."""
    packages = {} if isinstance(state.packages, Unknown) else state.packages
    text = state.docker.version if isinstance(state.docker, Engine) else ""
    for name in ("docker-ce", "docker.io", "moby-engine"):
        text = text or (packages[name].version.split(":")[-1] if name in packages else "")
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0,)


def read(state: NodeState) -> Document:
    """Today's file; nothing where it cannot be understood."""
    try:
        return json_document.read(state.files[CONFIG].data) if CONFIG in state.files else {}
    except DaemonJsonError:
        return {}
