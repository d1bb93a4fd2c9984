"""Docker's default-shm-size: in daemon.json, and in the running engine, which does not report it.

A reload applies it (tested with dockerd 20.10 and 26.1; the reference does not list it).
Sources: dockerd's reference ("default-shm-size"), Docker's default of 64 MiB.
"""

from __future__ import annotations

from gpuready.core.json_document import Document
from gpuready.spec.sizes import to_bytes
from gpuready.state.docker_daemon import CONFIG
from gpuready.state.model import File, NodeState

#: Holds the hash of the daemon.json that gpuready last saw the engine load.
LOADED = "/var/lib/gpuready/docker.loaded"
DEFAULT = 64 << 20


def configured(document: Document) -> int:
    """Return the size in daemon.json in bytes; -1 if it is not a size."""
    try:
        return to_bytes(document.get("default-shm-size", DEFAULT))
    except ValueError:
        return -1


def running(state: NodeState, file: File | None, document: Document) -> int | str:
    """Return the running engine's size in bytes, or why it is unknown. ``file``: daemon.json.

    It is known if gpuready loaded this file, or if the file did not change since the engine started.
    """
    if file is None:
        return DEFAULT
    loaded = state.files.get(LOADED)
    if loaded and loaded.text.strip() == file.sha256 and file.mtime <= loaded.mtime:
        return configured(document)
    unit = state.unit("docker.service")
    started = state.clock - state.uptime + unit.started_us // 10**6
    old = file.mtime < started and CONFIG not in state.unloaded
    if unit.started_us and state.clock and old:
        return configured(document)
    return "not known: daemon.json changed after Docker started"
