"""Docker's default-shm-size: what daemon.json says, and what the running engine gives, which it tells nobody.

Sources: dockerd's reference ("default-shm-size"), Docker's default of 64 MiB.
"""

from __future__ import annotations

from gpuready.components.daemonjson import Document
from gpuready.spec.sizes import to_bytes
from gpuready.state.model import File, NodeState, Unknown

#: What the engine last took over at a start, as our own transaction recorded it: "INVOCATION SHM-BYTES".
EFFECTIVE = "/var/lib/gpuready/docker.effective"
_DEFAULT = 64 << 20


def configured(document: Document) -> int:
    """Bytes of /dev/shm that daemon.json asks for; -1 where it says what is no size."""
    try:
        return to_bytes(document.get("default-shm-size", _DEFAULT))
    except ValueError:
        return -1


def running(state: NodeState, file: File | None, document: Document) -> int | str:
    """Bytes that the running engine gives, or why they are not known; ``file`` is daemon.json.

    Known from our own record of this very start, or when daemon.json is older than the engine's start.
    """
    unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
    record = state.files[EFFECTIVE].text.split() if EFFECTIVE in state.files else []
    if unit and len(record) == 2 and record[0] == unit.invocation and record[1].isdecimal():
        return int(record[1])
    if file is None:
        return _DEFAULT
    started = state.clock - state.uptime + (unit.started_us // 10**6 if unit else 0)
    if unit and unit.started_us and state.clock and file.mtime < started:
        return configured(document)
    return "not known: daemon.json is younger than the engine's start"
