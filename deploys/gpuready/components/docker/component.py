"""Docker knows the runtime ``nvidia``: in daemon.json, and in the engine that runs.

What is configured and what runs are separate keys, so a file that was edited and never loaded is a difference too.
The path comes from the node's own ``nvidia-ctk runtime configure`` (on a copy), the rest of the file stays the
user's. All is taken over by a reload but ``features.cdi``, which needs a restart: live-restore goes first.
Sources: dockerd's reference ("daemon configuration file", "configuration reload behavior"), and what dockerd 20.10 and
26.1 were seen to do.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuready.components.docker import daemon, transaction
from gpuready.components.docker import keys as dockerkeys
from gpuready.components.docker.keys import CDI, DEFAULT, FLAGS, LIVE, PATH, PLACES, SHM
from gpuready.core import ignored_containers, json_document
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value, refuse_irregular
from gpuready.core.json_document import DaemonJsonError, Document
from gpuready.core.step import Steps
from gpuready.spec.model import DockerSpec, NodeSpec
from gpuready.spec.sizes import to_bytes
from gpuready.state import docker_daemon
from gpuready.state.containers import gpu_containers
from gpuready.state.docker_daemon import CDI_SINCE, CONFIG
from gpuready.state.model import Docker as Engine
from gpuready.state.model import NodeState, Unknown
from gpuready.state.toolkit_config import RUNTIME

_OLD_ALIAS = "io.containerd.runtime.v1.linux"
_FILE, _RUNS = "docker.", "docker.running."
_RESTART = f"{_RUNS}{CDI}"


class Docker(Component):
    """runtimes.nvidia, default-runtime, live-restore, default-shm-size and features.cdi."""

    name = "docker"
    part = "runtime"
    unit = "docker.service"
    requires = ("toolkit", "engine")

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.docker == "absent":
            return Applies(False, "runtimes.docker: absent")
        if "docker_snap" in state.marks or "dockerd" in _tools(state) or state.docker is not None:
            return Applies(True, "Docker is on the node")
        if spec.runtimes.installs_docker:
            return Applies(False, "no Docker yet: engine installs it")
        if spec.runtimes.required_docker is not None:
            return Applies(True, "the spec names Docker")
        return Applies(False, "no Docker on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        document = _refuse(state)
        want = _wanted(spec, state, document)
        clash = [f"--{FLAGS[k]}" for k in want if k != PATH and FLAGS[k] in daemon.flags(state)]
        if clash:
            raise NotComparable(
                f"dockerd is started with {', '.join(sorted(set(clash)))}, which it does not take together with the "
                f"same key in {CONFIG}; take the flag out of the unit, or the key out of the spec"
            )
        keys = {f"{_FILE}{k}": dockerkeys.as_it_may_stand(document, k, v, state) for k, v in want.items()}
        _startable(document, keys, state)
        if isinstance(state.docker, Engine):
            keys |= {f"{_RUNS}{k}": to_bytes(v) if k == SHM else v for k, v in want.items()}
        elif isinstance(state.docker, Unknown):
            keys["docker.running"] = "answers"
        return keys

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        document = docker_daemon.read(state)
        found = {f"{_FILE}{k}": dockerkeys.given(document, k) for k in PLACES}
        flag = dockerkeys.alike(daemon.added_runtime(state, "nvidia"))
        found[f"{_FILE}{PATH}"] = found[f"{_FILE}{PATH}"] or flag
        if isinstance(state.docker, Unknown):
            return found | {"docker.running": state.docker}
        if state.docker is not None:
            found |= {f"{_RUNS}{k}": v for k, v in dockerkeys.runs(state, state.docker, document).items()}
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        """What stood in daemon.json before the first touch, for what gpuready wrote and nobody changed since."""
        return dockerkeys.originals(state)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        if any(c.key == _RESTART for c in diff):
            return Disruption.restart
        if _goes(diff):
            return Disruption.recreate
        return Disruption.reload if isinstance(state.docker, Engine) else Disruption.none

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        restart = tuple(c for c in diff if c.key == _RESTART)
        rest = tuple(c for c in diff if c not in restart)
        return tuple(group for group in (rest, restart) if group)

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        if _goes(diff):
            return gpu_containers(state, "nvidia")
        if self.disruption(diff, state) < Disruption.restart or not isinstance(state.docker, Engine):
            return ()
        changed = [c.expected for c in diff if c.key == f"{_RUNS}{LIVE}"]  # by the reload that comes first
        if changed[0] if changed else state.docker.live_restore:
            return ()
        return tuple(f"{c.name} ({c.image})" for c in state.docker.containers)

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
        notes = (
            ["docker.service changed on disk since systemd read it (NeedDaemonReload); gpuready does not reload it"]
            if (unit and unit.need_daemon_reload)
            else []
        )
        if any(c.key == f"{_FILE}{LIVE}" and c.expected is True for c in diff):
            notes.append("live-restore: containers keep running when dockerd is restarted")
        if any(c.key == _RESTART for c in diff):
            notes.append("features.cdi: takes effect only after a restart of Docker")
            if isinstance(state.docker, Engine) and state.docker.containers and not self.hits(diff, state):
                kept = ", ".join(c.name for c in state.docker.containers)
                notes.append(f"the restart affects no container: live-restore keeps {kept} running")
        if diff and isinstance(state.docker, Engine) and _OLD_ALIAS in state.docker.runtimes:
            notes.append(
                "Docker 20.10 forgets its own names for runc, io.containerd.runc.v2 and the like, when it reloads "
                "runtimes: until its next start, nothing starts under them"
            )
        return tuple(notes)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        document, file = _refuse(state), state.files.get(CONFIG)
        data = file.data if file else b""
        running = {c.key.removeprefix(_RUNS): c.expected for c in diff if c.key.startswith(_RUNS)}
        configured = {c.key.removeprefix(_FILE): c.expected for c in diff if not c.key.startswith(_RUNS)}
        staged = (yield from transaction.stage(document, data)) if configured.get(PATH) == RUNTIME else ""
        yield transaction.install(state, document, configured, running, staged, ignored_containers.words(spec))


def _goes(diff: tuple[Change, ...]) -> bool:
    """The runtime is being taken out: containers under it could not be started again, nor survive a restart."""
    return any(c.key == f"{_FILE}{PATH}" and c.expected is None for c in diff)


def _tools(state: NodeState) -> set[str]:
    return set() if isinstance(state.tools, Unknown) else set(state.tools)


def _refuse(state: NodeState) -> Document:
    """The user's document, or NotComparable with what stands in the way."""
    if "docker_snap" in state.marks:
        raise NotComparable(
            "Docker is a snap here: it reads no /etc/docker/daemon.json; use docker-ce or docker.io, or say "
            "runtimes: {docker: absent}"
        )
    if "dockerd" not in _tools(state) and state.docker is None:
        raise NotComparable(
            "the spec names Docker, and there is none on this node; install it, or say runtimes: {docker: auto}"
        )
    if isinstance(state.docker, Engine) and state.docker.rootless:
        raise NotComparable(
            "Docker runs rootless here, which gpuready does not manage: let its user run nvidia-ctk runtime configure "
            "--config=$HOME/.config/docker/daemon.json, or say runtimes: {docker: absent}"
        )
    refuse_irregular(CONFIG, state)
    other = daemon.flags(state).get("config-file")
    if other and other != CONFIG:
        raise NotComparable(
            f"dockerd reads {other} (--config-file), not {CONFIG}; gpuready manages only the latter so far"
        )
    if "add-runtime" in daemon.flags(state) and dockerkeys.alike(daemon.added_runtime(state, "nvidia")) != RUNTIME:
        raise NotComparable(
            f"dockerd is started with --add-runtime, which it does not take together with runtimes in {CONFIG}; "
            "move those runtimes from the unit to the file"
        )
    file = state.files.get(CONFIG)
    try:
        document = json_document.read(file.data if file else b"")
        json_document.merge(document, dict.fromkeys((PLACES[PATH], PLACES[CDI]), ""))
    except DaemonJsonError as e:
        raise NotComparable(f"{CONFIG}: {e}; mend it by hand, it was not touched") from None
    return document


def _startable(document: Document, keys: Mapping[str, Value], state: NodeState) -> None:
    """What ``dockerd --validate`` lets pass and a start does not; without it a stopped engine would stay so."""
    values = {PLACES[k.removeprefix(_FILE)]: v for k, v in keys.items()}
    why = daemon.no_start(json_document.merge(document, values), state)
    if why:
        raise NotComparable(f"{CONFIG}: {why}; mend it by hand, it was not touched")


def _wanted(spec: NodeSpec, state: NodeState, document: Document) -> dict[str, str | bool]:
    """Our keys of daemon.json and their values; the same ones hold for the engine that runs."""
    docker = spec.runtimes.required_docker or DockerSpec()
    want: dict[str, str | bool] = {PATH: RUNTIME}
    if docker.default_runtime:
        want[DEFAULT] = "nvidia"
    elif "default_runtime" in docker.model_fields_set and "nvidia" in (
        document.get(DEFAULT),
        state.docker.default_runtime if isinstance(state.docker, Engine) else "",
    ):
        want[DEFAULT] = "runc"
    swarm = isinstance(state.docker, Engine) and state.docker.swarm
    if docker.live_restore != "auto":
        want[LIVE] = bool(docker.live_restore)
    elif not swarm and "live-restore" not in daemon.flags(state) and document.get(LIVE) is not False:
        want[LIVE] = True
    if docker.shm_size is not None:
        want[SHM] = str(docker.shm_size)
    if docker.cdi != "auto":
        version = docker_daemon.engine_version(state)
        if (0,) < version < CDI_SINCE:
            raise NotComparable(
                f"runtimes.docker.cdi is for Docker 25.0 and newer, this one is {'.'.join(map(str, version))}; "
                "leave it out of the spec, or upgrade Docker"
            )
        want[CDI] = docker.cdi
    return want
