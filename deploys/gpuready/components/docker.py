"""Docker knows the runtime ``nvidia``: in daemon.json, and in the engine that runs.

What is configured and what runs are separate keys, so a file that was edited and never loaded is a difference too.
The path comes from the node's own ``nvidia-ctk runtime configure`` (on a copy), the rest of the file stays the
user's. Runtimes, default-runtime and live-restore are taken over by a reload; default-shm-size needs a restart.
Sources: dockerd's reference ("daemon configuration file", "configuration reload behavior"), and what dockerd 20.10 and
26.1 were seen to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from gpuready import resources
from gpuready.components import daemonjson, dockerd, shmsize
from gpuready.components.base import (
    Applies,
    Change,
    Component,
    Disruption,
    NotComparable,
    Step,
    Steps,
    Value,
)
from gpuready.components.daemonjson import DaemonJsonError, Document
from gpuready.errors import ConvergeError
from gpuready.spec.model import DockerSpec, NodeSpec
from gpuready.spec.sizes import to_bytes
from gpuready.state.model import Docker as Engine
from gpuready.state.model import NodeState, Unknown

CONFIG = "/etc/docker/daemon.json"
RUNTIME = "nvidia-container-runtime"
_SAME = {RUNTIME: RUNTIME, f"/usr/bin/{RUNTIME}": RUNTIME}
#: Keys of daemon.json -> the flag that means the same; dockerd refuses to start when both are given.
FLAGS = {
    "runtimes": "add-runtime",
    "default-runtime": "default-runtime",
    "live-restore": "live-restore",
    "default-shm-size": "default-shm-size",
}
_OLD_ALIAS = "io.containerd.runtime.v1.linux"


class Docker(Component):
    """runtimes.nvidia, default-runtime, live-restore and default-shm-size."""

    name = "docker"
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.docker == "absent":
            return Applies(False, "runtimes.docker: absent")
        if "docker_snap" in state.marks or "dockerd" in _tools(state) or state.docker is not None:
            return Applies(True, "Docker is on the node")
        if isinstance(spec.runtimes.docker, DockerSpec):
            return Applies(True, "the spec names Docker")
        return Applies(False, "no Docker on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        document = _refuse(state)
        want = _wanted(spec, state, document)
        clash = [
            f"--{FLAGS[k.split('.')[0]]}"
            for k in want
            if FLAGS[k.split(".")[0]] in dockerd.flags(state) and not k.startswith("runtimes.")
        ]
        if clash:
            raise NotComparable(
                f"dockerd is started with {', '.join(sorted(set(clash)))}, which it does not take together with the "
                f"same key in {CONFIG}; take the flag out of the unit, or the key out of the spec"
            )
        keys: dict[str, Value] = {f"docker.{k}": v for k, v in want.items()}
        if isinstance(state.docker, Engine):
            keys |= {f"docker.running.{k}": v for k, v in want.items()}
        elif isinstance(state.docker, Unknown):
            keys["docker.running"] = "answers"
        return keys

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        document = _document(state)
        running = state.docker
        found: dict[str, Value] = {
            "docker.runtimes.nvidia.path": _path(document) or _alike(dockerd.added_runtime(state, "nvidia")),
            "docker.default-runtime": _scalar(document.get("default-runtime")),
            "docker.live-restore": _scalar(document.get("live-restore", False)),
            "docker.default-shm-size": shmsize.configured(document),
        }
        if isinstance(running, Unknown):
            return found | {"docker.running": running}
        if running is not None:
            found |= {
                "docker.running.runtimes.nvidia.path": _alike(running.runtimes.get("nvidia")),
                "docker.running.default-runtime": running.default_runtime,
                "docker.running.live-restore": running.live_restore,
                "docker.running.default-shm-size": shmsize.running(state, state.files.get(CONFIG), document),
            }
        return found

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        if any(c.key == "docker.running.default-shm-size" for c in diff):
            return Disruption.restart
        return Disruption.reload if isinstance(state.docker, Engine) else Disruption.none

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        restart = tuple(c for c in diff if c.key == "docker.running.default-shm-size")
        rest = tuple(c for c in diff if c not in restart)
        return tuple(group for group in (rest, restart) if group)

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        if self.disruption(diff, state) < Disruption.restart or not isinstance(state.docker, Engine):
            return ()
        changed = [c.expected for c in diff if c.key == "docker.running.live-restore"]  # by the reload that comes first
        if changed[0] if changed else state.docker.live_restore:
            return ()
        return tuple(f"{c.name} ({c.image})" for c in state.docker.containers)

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        unit = state.units.get("docker.service") if not isinstance(state.units, Unknown) else None
        notes = (
            ["docker.service changed on disk since systemd read it (NeedDaemonReload); it is left so"]
            if (unit and unit.need_daemon_reload)
            else []
        )
        if any(c.key == "docker.live-restore" and c.expected is True for c in diff):
            notes.append("live-restore: containers keep running when dockerd is restarted")
        if diff and isinstance(state.docker, Engine) and _OLD_ALIAS in state.docker.runtimes:
            notes.append(
                "Docker 20.10 forgets its own names for runc, io.containerd.runc.v2 and the like, when it reloads "
                "runtimes: until its next start, nothing starts under them"
            )
        return tuple(notes)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        document, file = _refuse(state), state.files.get(CONFIG)
        data = file.data if file else b""
        want = _wanted(spec, state, document)
        keys = {c.key for c in diff}
        ours: dict[tuple[str, ...], object] = {}
        if "docker.runtimes.nvidia.path" in keys:
            given = data if daemonjson.readable_by_nvidia_ctk(document, data) else b"{}"
            reply = yield Step(
                "docker-stage",
                resources.script("docker-stage", given=given),
                survives=False,
                summary="nvidia-ctk runtime configure, on a copy",
            )
            ours["runtimes", "nvidia", "path"] = _staged_path(reply.out)
        for key, value in want.items():
            if f"docker.{key}" in keys and not key.startswith("runtimes."):
                ours[key,] = _written(key, value, spec)
        merged = daemonjson.merge(document, ours)
        running = isinstance(state.docker, Engine)
        yield Step(
            "docker",
            resources.script(
                "docker-install",
                path=CONFIG,
                before=file.sha256 if file else "absent",
                content=b"" if daemonjson.write(merged) == daemonjson.write(document) else daemonjson.write(merged),
                flags=dockerd.validation_flags(state),
                effective=shmsize.EFFECTIVE,
                reload="1" if running and keys != {"docker.running.default-shm-size"} else "",
                restart="1" if self.disruption(diff, state) == Disruption.restart else "",
                **_ways_back(document, ours, state),
                runtime="nvidia",
                paths=tuple(_SAME),
                default=str(want.get("default-runtime", "")),
                live=str(want.get("live-restore", "")).lower(),
                shm=str(shmsize.configured(merged)),
                shm_now=str(shmsize.running(state, file, document) if running else ""),
            ),
            timeout=300,
            summary="install daemon.json",
        )


def _ways_back(document: Document, ours: dict[tuple[str, ...], object], state: NodeState) -> dict[str, bytes]:
    """The user's document that says by name what was in force before us, because a reload forgets no missing key.

    ``undo`` takes back what a reload may have brought; ``alive`` and ``quiet`` switch live-restore on for a start that
    must not stop containers, and back to what it was.
    """
    engine = state.docker if isinstance(state.docker, Engine) else Engine()
    before = {
        "runtimes": document.get("runtimes") or {},
        "default-runtime": engine.default_runtime,
        "live-restore": engine.live_restore,
    }
    live = () if "live-restore" in dockerd.flags(state) else (("live-restore",),)
    ways: dict[str, dict[tuple[str, ...], object]] = {
        "undo": {(path[0],): before[path[0]] for path in ours if path[0] in before},
        "alive": dict.fromkeys(live, True),
        "quiet": dict.fromkeys(live, engine.live_restore),
    }
    return {name: daemonjson.write(daemonjson.merge(document, values)) for name, values in ways.items()}


def _written(key: str, value: Value, spec: NodeSpec) -> Value:
    """A value as daemon.json has it: dockerd takes a size only as a string, and ``8g`` says more than its bytes."""
    if key == "default-shm-size" and isinstance(spec.runtimes.docker, DockerSpec):
        return str(spec.runtimes.docker.shm_size)
    return value


def _tools(state: NodeState) -> set[str]:
    return set() if isinstance(state.tools, Unknown) else set(state.tools)


def _refuse(state: NodeState) -> Document:
    """The user's document, or NotComparable with what stands in the way."""
    if "docker_snap" in state.marks:
        raise NotComparable("Docker is a snap here: it reads no /etc/docker/daemon.json; use docker-ce or docker.io")
    if "dockerd" not in _tools(state) and state.docker is None:
        raise NotComparable(
            "the spec names Docker, and there is none on this node; install it, or say runtimes: {docker: auto}"
        )
    if isinstance(state.docker, Engine) and state.docker.rootless:
        raise NotComparable("Docker runs rootless here, which gpuready does not manage")
    if CONFIG in state.not_files:
        raise NotComparable(f"{CONFIG} is no regular file")
    other = dockerd.flags(state).get("config-file")
    if other and other != CONFIG:
        raise NotComparable(
            f"dockerd reads {other} (--config-file), not {CONFIG}; gpuready manages only the latter so far"
        )
    if "add-runtime" in dockerd.flags(state) and _alike(dockerd.added_runtime(state, "nvidia")) != RUNTIME:
        raise NotComparable(
            f"dockerd is started with --add-runtime, which it does not take together with runtimes in {CONFIG}; "
            "move those runtimes from the unit to the file"
        )
    file = state.files.get(CONFIG)
    try:
        document = daemonjson.read(file.data if file else b"")
        daemonjson.merge(document, {("runtimes", "nvidia", "path"): ""})
    except DaemonJsonError as e:
        raise NotComparable(f"{CONFIG}: {e}; mend it by hand, it was not touched") from None
    return document


def _document(state: NodeState) -> Document:
    try:
        return daemonjson.read(state.files[CONFIG].data) if CONFIG in state.files else {}
    except DaemonJsonError:
        return {}


def _wanted(spec: NodeSpec, state: NodeState, document: Document) -> dict[str, Value]:
    """Our keys of daemon.json and their values; the same ones hold for the engine that runs."""
    docker = spec.runtimes.docker if isinstance(spec.runtimes.docker, DockerSpec) else DockerSpec()
    want: dict[str, Value] = {"runtimes.nvidia.path": RUNTIME}
    if docker.default_runtime:
        want["default-runtime"] = "nvidia"
    elif "default_runtime" in docker.model_fields_set and "nvidia" in (
        document.get("default-runtime"),
        state.docker.default_runtime if isinstance(state.docker, Engine) else "",
    ):
        want["default-runtime"] = "runc"  # deleting the key would change nothing at a reload
    swarm = isinstance(state.docker, Engine) and state.docker.swarm
    if docker.live_restore != "auto":
        want["live-restore"] = bool(docker.live_restore)
    elif not swarm and "live-restore" not in dockerd.flags(state) and document.get("live-restore") is not False:
        want["live-restore"] = True
    if docker.shm_size is not None:
        want["default-shm-size"] = to_bytes(docker.shm_size)
    return want


def _alike(path: str | None) -> str | None:
    return _SAME.get(path, path) if path else None


def _scalar(value: object) -> Value:
    return value if isinstance(value, (str, bool)) or value is None else json.dumps(value)


def _path(document: Document) -> str | None:
    entry = (document.get("runtimes") or {}).get("nvidia") if isinstance(document.get("runtimes"), dict) else None
    path = entry.get("path") if isinstance(entry, dict) else None
    return _alike(path) if isinstance(path, str) else None


def _staged_path(text: str) -> str:
    try:
        path = daemonjson.read(text.encode("utf-8", "surrogateescape"))["runtimes"]["nvidia"]["path"]
    except (DaemonJsonError, KeyError, TypeError):
        raise ConvergeError(
            "nvidia-ctk runtime configure wrote no runtime 'nvidia' into its copy; nothing was changed"
        ) from None
    if not isinstance(path, str) or not path:
        raise ConvergeError("nvidia-ctk runtime configure wrote an empty path; nothing was changed")
    return path
