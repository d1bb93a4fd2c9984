"""The runtime ``nvidia`` in Docker: in daemon.json and in the running engine.

The file and the running engine have separate keys, so a file that was edited but never loaded is a difference, too. The
runtime's path comes from the node's ``nvidia-ctk runtime configure``, which runs on a copy. The rest of the file stays
as the user wrote it. A reload applies every key except ``features.cdi``, which needs a restart. Therefore live-restore
is set first.
Sources: dockerd's reference ("daemon configuration file", "configuration reload behavior"), tests with dockerd 20.10
and 26.1.
"""

import json

from gpuready.base import json_document
from gpuready.base.json_document import DaemonJsonError, Document
from gpuready.base.step import Steps
from gpuready.components.docker import keys as dockerkeys
from gpuready.components.docker import transaction
from gpuready.components.docker.keys import CDI, DEFAULT, FLAGS, LIVE, PATH, PLACES, SHM
from gpuready.components.docker.state import (
    CDI_SINCE,
    CONFIG,
    added_runtimes,
    all_containers,
    daemon_json,
    engine_version,
    flags,
    gpu_containers,
)
from gpuready.components.toolkit_config.state import RUNTIME
from gpuready.contract import ignored_containers
from gpuready.contract.component import (
    Applies,
    Change,
    Component,
    Disruption,
    NotComparable,
    Values,
    refuse_irregular,
    unusable,
)
from gpuready.model.sizes import to_bytes
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState, Unknown

_OLD_ALIAS = "io.containerd.runtime.v1.linux"
_FILE, _RUNS = "docker.", "docker.running."
_RESTART = f"{_RUNS}{CDI}"
#: What a person writes into daemon.json where gpuready cannot.
_BY_HAND = dockerkeys.snippet(PATH, RUNTIME)


class Docker(Component):
    """runtimes.nvidia, default-runtime, live-restore, default-shm-size and features.cdi, configured and running."""

    name = "docker"
    owned_as = "runtime"
    unit = "docker.service"
    requires = ("toolkit", "engine")

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.docker == "absent":
            return Applies(False, "runtimes.docker: absent")
        if "docker_snap" in state.marks or "dockerd" in state.commands or state.docker is not None:
            return Applies(True, "Docker is on the node")
        if spec.runtimes.installs_docker:
            return Applies(False, "no Docker yet: engine installs it")
        if spec.runtimes.requires("docker"):
            return Applies(True, "the spec names Docker")
        return Applies(False, "no Docker on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        document = _document(state)
        dockerkeys.owned(state)  # without a readable record, nothing could be undone
        want = _wanted(spec, state, document)
        set_by_flag = flags(dockerkeys.command(state))
        clash = [f"--{FLAGS[k]}" for k in want if k != PATH and FLAGS[k] in set_by_flag]
        if clash:
            raise NotComparable(
                f"dockerd is started with {', '.join(sorted(set(clash)))}, which conflicts with the same key in "
                f"{CONFIG}; remove the flag from the unit, or the key from the spec"
            )
        keys = {f"{_FILE}{k}": dockerkeys.value_to_write(document, k, v, state) for k, v in want.items()}
        meant = json_document.merge(document, {PLACES[k.removeprefix(_FILE)]: v for k, v in keys.items()})
        if why := dockerkeys.no_start(meant, state):
            raise NotComparable(f"{CONFIG}: {why}; it was not changed")
        if isinstance(state.docker, Engine):
            keys |= {f"{_RUNS}{k}": to_bytes(v) if k == SHM else v for k, v in want.items()}
        elif isinstance(state.docker, Unknown):
            keys["docker.running"] = "answers"
        return keys

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        document = daemon_json(state.files)
        found = {f"{_FILE}{k}": dockerkeys.file_value(document, k) for k in PLACES}
        flag = dockerkeys.canonical_path(added_runtimes(dockerkeys.command(state)).get("nvidia"))
        found[f"{_FILE}{PATH}"] = found[f"{_FILE}{PATH}"] or flag
        if isinstance(state.docker, Unknown):
            return found | {"docker.running": state.docker}
        if state.docker is not None:
            found |= {f"{_RUNS}{k}": v for k, v in dockerkeys.running_values(state, state.docker, document).items()}
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        return dockerkeys.originals(state)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        if any(c.key == _RESTART for c in diff):
            return Disruption.restart
        if _removes_runtime(diff):
            return Disruption.recreate
        return Disruption.reload if isinstance(state.docker, Engine) else Disruption.none

    def stage(self, change: Change) -> int:
        return int(change.key == _RESTART)

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        if _removes_runtime(diff):
            return gpu_containers(state.docker)
        if self.disruption(diff, state) < Disruption.restart or not isinstance(state.docker, Engine):
            return ()
        changed = [c.expected for c in diff if c.key == f"{_RUNS}{LIVE}"]  # the reload comes before the restart
        live = changed[0] if changed else state.docker.live_restore
        if live and state.unit(self.unit).kill_mode == "process":  # else systemd ends the containers' shims, too
            return ()
        return all_containers(state.docker)

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        notes = []
        if state.unit("docker.service").need_daemon_reload:
            notes.append(
                "docker.service changed on disk since systemd read it (NeedDaemonReload); gpuready does not reload it"
            )
        if any(c.key == f"{_FILE}{LIVE}" and c.expected is True for c in diff):
            notes.append("live-restore: containers keep running when dockerd is restarted")
        if any(c.key == _RESTART for c in diff):
            notes.append("features.cdi: takes effect only after a restart of Docker")
            if isinstance(state.docker, Engine) and state.docker.containers and not self.affected(diff, state):
                kept = ", ".join(c.name for c in state.docker.containers)
                notes.append(f"the restart affects no container: live-restore keeps {kept} running")
        notes += _left_out(diff, state)
        if diff and isinstance(state.docker, Engine) and _OLD_ALIAS in state.docker.runtimes:
            notes.append(
                "when Docker 20.10 reloads runtimes, it forgets its own names for runc (io.containerd.runc.v2 and "
                "others): until its next start, no container starts under them"
            )
        return tuple(notes)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        document, file = _document(state), state.files.get(CONFIG)
        data = file.data if file else b""
        running = {c.key.removeprefix(_RUNS): c.expected for c in diff if c.key.startswith(_RUNS)}
        configured = {c.key.removeprefix(_FILE): c.expected for c in diff if not c.key.startswith(_RUNS)}
        path = (yield from transaction.runtime_path(document, data)) if configured.get(PATH) == RUNTIME else ""
        yield transaction.install(state, document, configured, running, path, ignored_containers.words(spec))


def _removes_runtime(diff: tuple[Change, ...]) -> bool:
    """Tell whether the runtime is removed. Containers under it could then neither start again nor survive a restart."""
    return any(c.key == f"{_FILE}{PATH}" and c.expected is None for c in diff)


def _left_out(diff: tuple[Change, ...], state: NodeState) -> list[str]:
    """Return notes on what ``remove`` does not restore, because Docker would not start with it."""
    if not _removes_runtime(diff):
        return []
    notes, before = [], dockerkeys.before(state)
    drops = any(c.key == f"{_FILE}{DEFAULT}" and c.expected is None for c in diff)
    if drops and (DEFAULT not in dockerkeys.owned(state) or before.get(DEFAULT) == "nvidia"):
        notes.append("default-runtime: nvidia is removed, too, because Docker does not start without the runtime")
    runtimes = before.get("runtimes")
    if isinstance(runtimes, dict) and isinstance(runtimes.get("nvidia"), dict):
        notes.append("runtimes.nvidia had no path before gpuready; Docker does not start with that, so it is removed")
    return notes


def _document(state: NodeState) -> Document:
    """Return the user's daemon.json. Raises NotComparable if gpuready cannot manage this Docker, or not this file."""
    if "docker_snap" in state.marks:
        raise NotComparable(
            "Docker is a snap here: it reads no /etc/docker/daemon.json; use docker-ce or docker.io, or set runtimes: "
            "{docker: absent}"
        )
    if "dockerd" not in state.commands and state.docker is None:
        raise NotComparable(
            "the spec names Docker, but it is not installed; install it, or set runtimes: {docker: auto}"
        )
    if isinstance(state.docker, Engine) and state.docker.rootless:
        raise NotComparable(
            "Docker runs rootless here, which gpuready does not manage: let its user run nvidia-ctk runtime configure "
            "--config=$HOME/.config/docker/daemon.json, or set runtimes: {docker: absent}"
        )
    refuse_irregular(CONFIG, state)
    command = dockerkeys.command(state)
    other = flags(command).get("config-file")
    if other and other != CONFIG:
        raise NotComparable(
            f"dockerd reads {other} (--config-file), not {CONFIG}; gpuready manages only the latter so far. "
            f"To register the runtime by hand, add to {other}: {_BY_HAND}"
        )
    added = added_runtimes(command)
    if "add-runtime" in flags(command) and dockerkeys.canonical_path(added.get("nvidia")) != RUNTIME:
        others = {name: {"path": path} for name, path in added.items() if name != "nvidia"}
        moved = json.dumps({**others, "nvidia": {"path": RUNTIME}})
        raise NotComparable(
            f"dockerd is started with --add-runtime, which conflicts with runtimes in {CONFIG}; move those runtimes "
            f'from the unit to the file: "runtimes": {moved}'
        )
    file = state.files.get(CONFIG)
    try:
        document = json_document.read(file.data if file else b"")
        # Only a trial: it fails if "runtimes" or "features" is not an object.
        json_document.merge(document, dict.fromkeys((PLACES[PATH], PLACES[CDI]), ""))
    except DaemonJsonError as e:
        write = f"; write {_BY_HAND}" if str(e).startswith("runtimes") else ""
        raise unusable(CONFIG, e, write) from None
    return document


def _wanted(spec: NodeSpec, state: NodeState, document: Document) -> dict[str, str | bool]:
    """Return gpuready's keys of daemon.json with their values, which are also those of the running engine."""
    docker = spec.runtimes.docker_settings
    want: dict[str, str | bool] = {PATH: RUNTIME}
    says, runs = document.get(DEFAULT), state.docker.default_runtime if isinstance(state.docker, Engine) else ""
    # Docker keeps the default runtime of a key that somebody deleted.
    asked = "default_runtime" in docker.model_fields_set or (says is None and DEFAULT in dockerkeys.owned(state))
    if docker.default_runtime:
        want[DEFAULT] = "nvidia"
    elif asked and "nvidia" in (says, runs):
        want[DEFAULT] = "runc"
    swarm = isinstance(state.docker, Engine) and state.docker.swarm
    if docker.live_restore != "auto":
        want[LIVE] = bool(docker.live_restore)
    elif not swarm and "live-restore" not in flags(dockerkeys.command(state)) and document.get(LIVE) is not False:
        want[LIVE] = True
    if docker.shm_size is not None:
        want[SHM] = str(docker.shm_size)
    if docker.cdi != "auto":
        version = engine_version(state.docker, state.installed)
        if (0,) < version < CDI_SINCE:
            raise NotComparable(
                f"runtimes.docker.cdi needs Docker 25.0 or newer, this one is {'.'.join(map(str, version))}; remove it "
                "from the spec, or upgrade Docker"
            )
        want[CDI] = docker.cdi
    return want
