"""The keys of daemon.json that gpuready manages: their places, their defaults, and which values are gpuready's.

The engine does not report its default-shm-size; a reload applies it (tested with dockerd 20.10 and 26.1; the reference
does not list it).
Sources: dockerd's reference ("daemon configuration file"); features.cdi: Engine 25.0 has it, 28.2 enables it by
default; default-shm-size is 64 MiB by default. Looked up on 2026-11-23.
"""

import json
from typing import Any

from gpuready.base import json_document
from gpuready.base.facts import KEPT
from gpuready.base.json_document import DaemonJsonError, Document
from gpuready.components.docker.state import (
    CDI_BY_ITSELF,
    CONFIG,
    added_runtimes,
    command_line,
    daemon_json,
    engine_version,
)
from gpuready.components.toolkit_config.state import RUNTIME, RUNTIME_PATH
from gpuready.contract import ledger, owned_keys
from gpuready.contract.component import NotComparable, Value, Values, refuse_irregular, unusable
from gpuready.model.sizes import to_bytes
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState, Unknown

#: The record of gpuready's keys in daemon.json (contract/owned_keys.py).
OURS = "/var/lib/gpuready/docker.ours"
#: Holds the hash of the daemon.json that gpuready last saw the engine load.
LOADED = "/var/lib/gpuready/docker.loaded"
DEFAULT_SIZE = 64 << 20
SAME = {RUNTIME: RUNTIME, RUNTIME_PATH: RUNTIME}
PATH, DEFAULT, LIVE, SHM, CDI = (
    "runtimes.nvidia.path",
    "default-runtime",
    "live-restore",
    "default-shm-size",
    "features.cdi",
)
#: Key -> its place in daemon.json, and the flag with the same meaning. dockerd does not start with both.
PLACES: dict[str, tuple[str, ...]] = {
    PATH: ("runtimes", "nvidia", "path"),
    DEFAULT: (DEFAULT,),
    LIVE: (LIVE,),
    SHM: (SHM,),
    CDI: ("features", "cdi"),
}
FLAGS = {PATH: "add-runtime", DEFAULT: DEFAULT, LIVE: LIVE, SHM: SHM, CDI: "feature"}


def file_value(document: Document, key: str) -> Value:
    """Return the value of a key in daemon.json; None if it is absent."""
    here: Any = document
    for name in PLACES[key]:
        here = here.get(name) if isinstance(here, dict) else None
    if key == PATH:
        return canonical_path(here) if isinstance(here, str) else None
    if isinstance(here, (str, bool)):
        return here
    return None if here is None else json.dumps(here)


def value_at_start(document: Document, key: str, state: NodeState) -> Value:
    """Return the value with which an engine runs that was started with this file."""
    if key == SHM:
        return configured_size(document)
    value = file_value(document, key)
    if key == CDI and value is None:
        return engine_version(state.docker, state.installed) >= CDI_BY_ITSELF
    by_itself: dict[str, Value] = {DEFAULT: "runc", LIVE: False}
    return value if value is not None else by_itself.get(key)


def configured_size(document: Document) -> int:
    """Return default-shm-size in daemon.json in bytes; -1 if it is not a size."""
    try:
        return to_bytes(document.get(SHM, DEFAULT_SIZE))
    except ValueError:
        return -1


def running_size(state: NodeState, document: Document) -> int | str:
    """Return the running engine's default-shm-size in bytes, or why it is unknown. ``document``: daemon.json.

    It is known if gpuready loaded this file, or if the file did not change since the engine started.
    """
    file, loaded = state.files.get(CONFIG), state.files.get(LOADED)
    if file is None:
        return DEFAULT_SIZE
    if loaded and loaded.text.strip() == file.sha256 and file.mtime <= loaded.mtime:
        return configured_size(document)
    unit = state.unit("docker.service")
    started = state.clock - state.uptime + unit.started_us // 10**6
    old = file.mtime < started and CONFIG not in state.unloaded
    if unit.started_us and state.clock and old:
        return configured_size(document)
    return "not known: daemon.json changed after Docker started"


def running_values(state: NodeState, engine: Engine, document: Document) -> dict[str, Value]:
    """Return the running engine's values by key. ``document``: today's file."""
    return {
        PATH: canonical_path(engine.runtimes.get("nvidia")),
        DEFAULT: engine.default_runtime,
        LIVE: engine.live_restore,
        SHM: running_size(state, document),
        CDI: bool(engine.cdi_spec_dirs),
    }


def value_to_write(document: Document, key: str, value: Value, state: NodeState) -> Value:
    """Return what the file should have for ``value``: its present content, even none, if that means the same."""
    meant = to_bytes(value) if key == SHM else value
    return file_value(document, key) if value_at_start(document, key, state) == meant else value


def command(state: NodeState) -> tuple[str, ...]:
    """Return dockerd's command line. dockerd refuses a flag beside the same key in daemon.json."""
    return command_line(state.dockerd_command, state.unit("docker.service"))


def no_start(document: Document, state: NodeState) -> str:
    """Return why dockerd does not start with this daemon.json, although ``dockerd --validate`` accepts it; or empty."""
    given = document.get("runtimes")
    runtimes = given if isinstance(given, dict) else {}
    strict = not (0,) < engine_version(state.docker, state.installed) < (23, 0)  # 20.10: even with an empty runtime
    if "runc" in runtimes:
        return "runtimes.runc: dockerd reserves that name; rename or remove the entry"
    for name, entry in runtimes.items():
        if isinstance(entry, dict) and not entry.get("path") and not entry.get("runtimeType") and strict:
            return f"runtimes.{name} has no path; add it, or remove the entry"
    default = document.get("default-runtime")
    known = {"runc", *runtimes, *added_runtimes(command(state))}
    shim = isinstance(default, str) and default.startswith(("io.containerd.", "/"))
    if isinstance(default, str) and default and default not in known and not shim:
        return (
            f"default-runtime is {default!r}, which is not in runtimes (known: {', '.join(sorted(known))}); "
            'add it there, or set "default-runtime": "runc"'
        )
    return ""


def snippet(key: str, value: Any) -> str:
    """Return a key with its place, as lines of daemon.json to paste."""
    return json.dumps(json_document.merge({}, {PLACES[key]: value}))[1:-1]


def canonical_path(path: str | None) -> str | None:
    """Return one name for the different paths of the runtime."""
    return SAME.get(path, path) if path else None


def owned(state: NodeState) -> dict[str, list[Value]]:
    """Return the values that gpuready may have written, by key. Raises :class:`NotComparable`."""
    return {k: v for k, v in owned_keys.read(state, OURS).get(CONFIG, {}).items() if k in PLACES}


def before(state: NodeState) -> Document:
    """Return daemon.json before gpuready's first change; {} if it is unknown or cannot be parsed."""
    kept = ledger.kept(state, CONFIG)
    try:
        return json_document.read((kept.original if kept else None) or b"")
    except DaemonJsonError:
        return {}


def originals(state: NodeState) -> Values:
    """Return key -> earlier value, for keys that gpuready wrote and nobody else changed since.

    Docker keeps a runtime that somebody deleted from the file; it forgets that, too.

    If the runtime goes, so does ``default-runtime: nvidia``, whoever wrote it, because Docker must start.
    Raises :class:`NotComparable` if keys are gpuready's, but the file, its original or the record cannot be read.
    """
    ours = owned(state)
    if not ours or not _legible(state, ours):
        return {}
    now, then = daemon_json(state.files), before(state)
    engine = state.docker if isinstance(state.docker, Engine) else None
    runs = running_values(state, engine, now) if engine else {}
    found: dict[str, Value] = {}
    for key, values in ours.items():
        says, was = file_value(now, key), file_value(then, key)
        if says in values and any(value != was for value in values):
            found[f"docker.{key}"] = was
            if engine:
                found[f"docker.running.{key}"] = value_at_start(then, key, state)
        elif key in (PATH, DEFAULT) and says is None and runs.get(key) in values:
            found[f"docker.running.{key}"] = value_at_start(now, key, state)
    if None in (found.get(f"docker.{PATH}", ""), found.get(f"docker.running.{PATH}", "")):
        # Docker neither starts nor reloads with a default runtime that is not there.
        default = found.get(f"docker.{DEFAULT}", file_value(now, DEFAULT))
        if default == "nvidia":
            found[f"docker.{DEFAULT}"] = None
        if engine and "nvidia" in (default, engine.default_runtime):
            found[f"docker.running.{DEFAULT}"] = default if default not in (None, "nvidia") else "runc"
    if found and isinstance(state.docker, Unknown):
        found["docker.running"] = "answers"
    if found and state.docker is None and state.dockerd_command:
        raise NotComparable("dockerd runs, but the command docker is missing, so its configuration is unknown")
    return found


def _legible(state: NodeState, ours: dict[str, list[Value]]) -> bool:
    """Tell whether today's file and its original can be read; False if gpuready never wrote the file.

    Raises :class:`NotComparable` if it wrote the file and one of them cannot be read.
    """
    refuse_irregular(CONFIG, state, ", but gpuready wrote to it; restore the file")
    try:
        now = json_document.read(state.files[CONFIG].data if CONFIG in state.files else b"")
    except DaemonJsonError as e:
        raise unusable(CONFIG, f"{e}; gpuready had put keys into it") from None
    kept = ledger.kept(state, CONFIG)
    if kept is None:
        if any((says := file_value(now, key)) is not None and says in values for key, values in ours.items()):
            raise NotComparable(
                f"{CONFIG} contains gpuready's keys (listed in {OURS}), and its original is not in {KEPT}; "
                "remove them by hand, then delete that record"
            )
        return False
    try:
        json_document.read(kept.original or b"")
    except DaemonJsonError as e:
        raise NotComparable(f"the original of {CONFIG} in {KEPT}: {e}; fix it by hand") from None
    return True
