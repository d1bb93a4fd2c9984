"""The transaction on daemon.json and dockerd: merge gpuready's keys, install, load, and roll back if that fails.

When dockerd reloads, it keeps the value of a key that is missing from the file. So the file first names what a removed
key means (``"runtimes": {}``, ``"live-restore": false``). After the reload, the user's own document takes its place.
The rollback of a reload works alike (``_undo``). After a restart that failed, Docker is started with the file from
before. templates/docker/install.sh.j2 does both on the node.
"""

from collections.abc import Generator
from typing import Literal

from gpuready.base import json_document, nvidia_ctk
from gpuready.base.errors import ConvergeError
from gpuready.base.json_document import DaemonJsonError, Document
from gpuready.base.step import Reply, Script, Step
from gpuready.components.docker import keys as dockerkeys
from gpuready.components.docker.keys import CDI, DEFAULT, LIVE, OURS, PATH, PLACES, SHM
from gpuready.components.docker.state import CONFIG, flags, validation_flags
from gpuready.components.toolkit_config.state import RUNTIME
from gpuready.contract import ledger, owned_keys
from gpuready.contract.component import Value, Values
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState

_Named = dict[tuple[str, ...], object]


def runtime_path(document: Document, data: bytes) -> Generator[Step, Reply, str]:
    """Ask nvidia-ctk for the runtime's path, and return it. ``data``: daemon.json.

    Raises ConvergeError if the answer has no path.
    """
    given = data if json_document.readable_by_nvidia_ctk(document, data) else b"{}"
    text = yield from nvidia_ctk.configure("docker", given, "{}")
    try:
        path = json_document.read(text.encode("utf-8", "surrogateescape"))["runtimes"]["nvidia"]["path"]
    except (DaemonJsonError, KeyError, TypeError):
        raise nvidia_ctk.wrote("no runtime 'nvidia' into its copy") from None
    if not isinstance(path, str) or not path:
        raise nvidia_ctk.wrote("an empty path")
    return path


class DockerInstall(Script, template="docker/install"):
    """Write daemon.json, load it in the least disruptive way, and undo both if that fails.

    The template describes each argument. ``live_restore`` and ``cdi`` are ``true``, ``false`` or empty (not checked),
    as Go prints them. ``last``: what happens to the file after it is loaded. ``undo``: see :func:`_undo`.
    ``undo_with_live_restore``: the file from before with live-restore, for a start that must not stop containers;
    ``undo_live_restore`` then sets that back. ``ran``: the file from before with the features.cdi that the engine runs
    with; empty if it has that.
    """

    before: str
    content: bytes
    final: bytes
    last: Literal["", "final", "none"]
    between: str
    after: str
    forget: bool
    later: bool
    flags: tuple[str, ...]
    binary: str
    reload: bool
    restart: bool
    work: tuple[str, ...]
    runtime_paths: tuple[str, ...]
    runtime_gone: bool
    default_runtime: str
    live_restore: str
    cdi: str
    undo: bytes
    undo_with_live_restore: bytes
    undo_live_restore: bytes
    ran: bytes
    path: str = CONFIG
    ours: str = OURS
    loaded: str = dockerkeys.LOADED


def install(
    state: NodeState,
    document: Document,
    configured: Values,
    running: Values,
    path: str,
    work: tuple[str, ...],
) -> Step:
    """Return the step that gives daemon.json the values ``configured`` and the engine the values ``running``.

    Other keys do not change. ``path``: the runtime's path from nvidia-ctk, empty if it was not asked. ``work``: for
    ``idle``. Raises ConvergeError if dockerd would not start with the file.
    """
    values: _Named = {PLACES[k]: v for k, v in configured.items() if k != PATH or v is not None}
    if path:
        values[PLACES[PATH]] = path
    elif PATH in configured and configured[PATH] is None:
        values[PLACES[PATH][:2]] = None  # the whole entry: dockerd does not start with one without a path
    merged = json_document.merge(document, values)
    why = dockerkeys.no_start(merged, state)
    if why:
        raise ConvergeError(f"{CONFIG}: {why}; it was not changed")
    file, restart = state.files.get(CONFIG), CDI in running
    before = state.docker if isinstance(state.docker, Engine) else Engine()
    record = _record(state, document, merged, configured)
    owned = dockerkeys.owned(state)
    ends = not record and bool(owned)
    data, target = file.data if file else None, _exactly(state, document, merged, ends=ends)
    named = _by_name(merged, running)
    loaded = json_document.merge(merged, named)
    load = json_document.write(loaded, data or b"") if named else target or b"{}\n"
    # After an interrupted step, the file may already have the content to be loaded, which is not the final one.
    written = target != data or (bool(named) and load != data)
    # While the engine learns what the absence of a key will mean, the file has that value.
    during = {k: [*v, dockerkeys.file_value(loaded, k), dockerkeys.file_value(merged, k)] for k, v in owned.items()}
    texts = owned_keys.texts({CONFIG: during}, CONFIG, {}, record)
    recorded = state.text(OURS)
    ran = _as_it_ran(document, before, state)
    script = DockerInstall(
        before=state.sha256(CONFIG),
        content=load if written else b"",
        final=target or b"",
        last="" if not written or target == load else "none" if target is None else "final",
        between=texts.between if written or texts.after != recorded else "",
        after=texts.after,
        forget=ends or (written and not record),
        later=ends and not restart and _has_cdi_still(state, document),
        flags=validation_flags(dockerkeys.command(state)),
        binary=path,
        reload=isinstance(state.docker, Engine) and (written or set(running) != {CDI}),
        restart=restart,
        work=work,
        runtime_paths=_runtime_paths(running.get(PATH)),
        runtime_gone=PATH in running and running[PATH] is None,
        default_runtime=str(running.get(DEFAULT, "")),
        live_restore=str(running.get(LIVE, "")).lower(),
        cdi=str(running.get(CDI, "")).lower(),
        undo=_undo(document, {*configured, *running}, before, state),
        undo_with_live_restore=_with_live_restore(ran, True, state),
        undo_live_restore=_with_live_restore(ran, before.live_restore, state),
        ran=b"" if ran == document else json_document.write(ran, data or b""),
    )
    return Step("docker", script, timeout=300, summary="install daemon.json")


def _runtime_paths(path: Value) -> tuple[str, ...]:
    """Return the paths that the engine may report for the runtime."""
    if not isinstance(path, str):
        return ()
    return tuple(dockerkeys.SAME) if path == RUNTIME else (path,)


def _has_cdi_still(state: NodeState, document: Document) -> bool:
    """Tell whether the engine still runs with gpuready's features.cdi, which only a restart can undo."""
    if not isinstance(state.docker, Engine) or CDI not in dockerkeys.owned(state):
        return False
    runs = dockerkeys.running_values(state, state.docker, document)[CDI]
    return runs != dockerkeys.value_at_start(dockerkeys.before(state), CDI, state)


def _exactly(state: NodeState, document: Document, merged: Document, *, ends: bool) -> bytes | None:
    """Return the final content of the file: today's bytes, or the original ones, if they mean the same. None: no file.

    ``ends``: nothing in the file is gpuready's any more, not even the remains of an interrupted step.
    """
    file, kept = state.files.get(CONFIG), ledger.kept(state, CONFIG)
    same = json_document.write(merged) == json_document.write(document)
    if kept is not None and (ends or not same) and _meaning(merged) == _meaning(dockerkeys.before(state)):
        return kept.original
    return (file.data if file else None) if same else json_document.write(merged, file.data if file else b"")


def _meaning(document: Document) -> bytes:
    """Return the document as dockerd understands it: without empty objects and nulls, in no particular order."""
    return json_document.write({k: document[k] for k in sorted(document) if document[k] not in ({}, None)})


def _by_name(merged: Document, running: Values) -> _Named:
    """Return the values that the file must name during a reload, because the final file does not have their keys."""
    named: _Named = {}
    for key, value in running.items():
        if key == PATH and value is None:
            named["runtimes",] = merged.get("runtimes") or {}
        elif key in (DEFAULT, LIVE, SHM) and key not in merged:
            named[key,] = str(value) if key == SHM else value
    return named


def _record(state: NodeState, document: Document, merged: Document, configured: Values) -> dict[str, Value]:
    """Return which keys of daemon.json are gpuready's after this step. A key that somebody else changed is theirs."""
    before = dockerkeys.before(state) if ledger.kept(state, CONFIG) else document
    still = {k: v for k, values in dockerkeys.owned(state).items() if (v := dockerkeys.file_value(merged, k)) in values}
    ours = still | dict(configured)
    return {k: v for k, v in ours.items() if v is not None and v != dockerkeys.file_value(before, k)}


def _undo(document: Document, keys: set[str], engine: Engine, state: NodeState) -> bytes:
    """Return the user's document with the earlier values of all keys that the reload may have changed."""
    size = dockerkeys.running_size(state, document)
    before: dict[str, _Named] = {
        PATH: {("runtimes",): document.get("runtimes") or {}},
        DEFAULT: {(DEFAULT,): engine.default_runtime},
        LIVE: {(LIVE,): engine.live_restore},
        SHM: {(SHM,): str(size)} if isinstance(size, int) and size > 0 else {},
    }
    values: _Named = {path: value for key, named in before.items() if key in keys for path, value in named.items()}
    return json_document.write(json_document.merge(document, values))


def _as_it_ran(document: Document, engine: Engine, state: NodeState) -> Document:
    """Return the user's document with the running engine's features.cdi: after a restart that waited, they differ.

    A key that gpuready did not write stays as the user wants it.
    """
    if CDI not in dockerkeys.owned(state):
        return document
    runs = dockerkeys.running_values(state, engine, document)[CDI]
    if dockerkeys.value_at_start(document, CDI, state) == runs:
        return document
    original = dockerkeys.before(state)
    same = dockerkeys.value_at_start(original, CDI, state) == runs
    return json_document.merge(document, {PLACES[CDI]: dockerkeys.file_value(original, CDI) if same else runs})


def _with_live_restore(document: Document, on: bool, state: NodeState) -> bytes:
    """Return the user's document with live-restore; without a change if a flag of dockerd sets it."""
    values: _Named = {} if LIVE in flags(dockerkeys.command(state)) else {(LIVE,): on}
    return json_document.write(json_document.merge(document, values))
