"""dockerd according to its files and its command line. Its own answers are in ``state.docker``.

Source: the release notes of Docker Engine 25.0 and 28.2 on CDI. Looked up on 2026-11-23.
"""

import re

from gpuready.base import json_document
from gpuready.base.json_document import DaemonJsonError, Document
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState

CONFIG = "/etc/docker/daemon.json"
#: Engine 25.0 has features.cdi; 28.2 enables it by default.
CDI_SINCE, CDI_BY_ITSELF = (25, 0), (28, 2)


def command(state: NodeState) -> tuple[str, ...]:
    """Return the command line of the running dockerd, else its unit's ExecStart."""
    started = (word for word in state.unit("docker.service").exec_start if not word.startswith("$"))
    return state.dockerd_command or tuple(started)


def engine_version(state: NodeState) -> tuple[int, ...]:
    """Return the version of the running engine, else that of its package; (0,) if both are unknown."""
    text = state.docker.version if isinstance(state.docker, Engine) else ""
    for name in ("docker-ce", "docker.io", "moby-engine"):
        text = text or (state.installed[name].version.split(":")[-1] if name in state.installed else "")
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0,)


def read(state: NodeState) -> Document:
    """Return the parsed daemon.json; empty if it cannot be parsed."""
    try:
        return json_document.read(state.files[CONFIG].data) if CONFIG in state.files else {}
    except DaemonJsonError:
        return {}
