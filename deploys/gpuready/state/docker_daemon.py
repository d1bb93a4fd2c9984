"""dockerd according to its files and its command line. Its own answers are in ``state.docker``."""

from __future__ import annotations

import re

from gpuready.core import json_document
from gpuready.core.json_document import DaemonJsonError, Document
from gpuready.state.model import Docker as Engine
from gpuready.state.model import NodeState, Unknown

CONFIG = "/etc/docker/daemon.json"
#: Engine 25.0 has features.cdi; 28.2 enables it by default.
CDI_SINCE, CDI_BY_ITSELF = (25, 0), (28, 2)


def command(state: NodeState) -> tuple[str, ...]:
    """Return the command line of the running dockerd, else its unit's ExecStart."""
    if state.dockerd_command:
        return state.dockerd_command
    unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
    return tuple(w for w in unit.exec_start if not w.startswith("$")) if unit else ()


def engine_version(state: NodeState) -> tuple[int, ...]:
    """Return the version of the running engine, else that of its package; (0,) if both are unknown."""
    packages = {} if isinstance(state.packages, Unknown) else state.packages
    text = state.docker.version if isinstance(state.docker, Engine) else ""
    for name in ("docker-ce", "docker.io", "moby-engine"):
        text = text or (packages[name].version.split(":")[-1] if name in packages else "")
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0,)


def read(state: NodeState) -> Document:
    """Return the parsed daemon.json; empty if it cannot be parsed."""
    try:
        return json_document.read(state.files[CONFIG].data) if CONFIG in state.files else {}
    except DaemonJsonError:
        return {}
