"""Docker's default-shm-size: what daemon.json says, and what the running engine gives, which it tells nobody.

A reload takes it over (dockerd 20.10 and 26.1 were seen to; the reference does not list it), so asking twice is cheap.
Sources: dockerd's reference ("default-shm-size"), Docker's default of 64 MiB.
"""

from __future__ import annotations

from gpuready.core.json_document import Document
from gpuready.spec.sizes import to_bytes
from gpuready.state.model import File, NodeState, Unknown

#: The hash of daemon.json as the engine last took it over before our eyes.
LOADED = "/var/lib/gpuready/docker.loaded"
DEFAULT = 64 << 20


def configured(document: Document) -> int:
    """Bytes of /dev/shm that daemon.json asks for; -1 where it says what is no size."""
    try:
        return to_bytes(document.get("default-shm-size", DEFAULT))
    except ValueError:
        return -1


def running(state: NodeState, file: File | None, document: Document) -> int | str:
    """Bytes that the running engine gives, or why they are not known; ``file`` is daemon.json.

    Known when this very file was loaded by us, or was not touched since the engine's start.
    """
    if file is None:
        return DEFAULT
    loaded = state.files.get(LOADED)
    if loaded and loaded.text.strip() == file.sha256 and file.mtime <= loaded.mtime:
        return configured(document)
    unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
    started = state.clock - state.uptime + (unit.started_us // 10**6 if unit else 0)
    old = file.mtime < started and "/etc/docker/daemon.json" not in state.unloaded
    if unit and unit.started_us and state.clock and old:
        return configured(document)
    return "not known: daemon.json changed after Docker started"
