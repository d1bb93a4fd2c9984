"""containerd knows the runtime ``nvidia``, in its configuration and in the process that runs; for what uses CRI.

No drop-in and no rewritten file: nvidia-ctk 1.18 and newer copy the whole CRI section into a drop-in, where later edits
of the main file are lost, and write the main file anew without its comments. Here the path comes from nvidia-ctk (run
on a copy), all else from the default runtime as it is in force, and goes into the user's own file. containerd has no
reload (SIGHUP ends it), so taking the file over is a restart; containers go on where the unit's KillMode is process.
Sources: containerd's docs/cri/config.md and docs/PLUGINS.md, dumps of 1.6, 1.7 and 2.1, nvidia-docker issue 1788.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.components.containerd import files, keys, refusals, removal
from gpuready.components.containerd import unit as containerdunit
from gpuready.components.containerd.files import CONFIG
from gpuready.components.containerd.state import Effective, effective
from gpuready.components.containerd.unit import UNIT
from gpuready.core import ignored_containers, owned_keys
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value
from gpuready.core.errors import ConvergeError
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.model import Docker as Engine
from gpuready.state.model import NodeState, Unknown

RUNNING = "containerd.running"
TAKEN_OVER = "the configuration as it is"


class Containerd(Component):
    """runtimes.nvidia, default_runtime_name and enable_cdi, in force and taken over by the process that runs."""

    name = "containerd"
    part = "runtime"
    unit = UNIT
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.containerd == "absent":
            return Applies(False, "runtimes.containerd: absent")
        if spec.runtimes.required_containerd is not None:
            return Applies(True, "the spec names containerd")
        why = containerdunit.missing(state)
        if why:
            return Applies(False, why)
        found = _effective(state)
        if found and not found.serves_cri:
            return Applies(False, "containerd does not serve CRI here (its plugin cri is in disabled_plugins)")
        return Applies(True, "containerd serves CRI on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found = refusals.refuse(spec, state)
        owned_keys.read(state, removal.OURS)  # with a record that is lost there would be no way back
        want = keys.wanted(spec, found, files.first_default(state, found))
        actual = self.actual(spec, state)
        differs = {k: v for k, v in want.items() if actual.get(k) != v}
        files.merged(state, found, keys.below(differs))
        if keys.DEFAULT in differs and "default_runtime" in found.deprecated:
            raise NotComparable(refusals.decides(state, found))
        # Where the file has to change, containerd is restarted anyway and asked then: CRI may be down because of it.
        asks = containerdunit.unit(state).active == "active" and not (differs and isinstance(actual[RUNNING], Unknown))
        return want | ({RUNNING: TAKEN_OVER} if asks else {})

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found = _effective(state)
        if found is None:
            return {}
        table = found.runtimes.get("nvidia", {})
        values: dict[str, Value] = {}
        for path, value in files.leaves(table).items():
            values[keys.NVIDIA + ".".join(path)] = tuple(map(str, value)) if isinstance(value, list) else value
        if table:
            values[f"{keys.NVIDIA}options.BinaryName"] = keys.binary(found)
            values[f"{keys.NVIDIA}options.SystemdCgroup"] = keys.by_systemd(table)
        values[keys.RUNC] = found.runtimes.get("runc", {}).get("runtime_type")
        values[keys.DEFAULT] = found.default_runtime
        values["containerd.enable_cdi"] = found.cri.get("enable_cdi")
        values[RUNNING] = _running(state, found)
        return values

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        """What held before our first touch, for what gpuready wrote and nobody changed since."""
        if removal.OURS not in state.files or state.containerd is None:
            return {}
        found = _effective(state)
        if found is None:
            raise NotComparable(_unreadable(state))
        actual = self.actual(spec, state)
        values = removal.original(state, found, actual)
        taken = actual[RUNNING] == TAKEN_OVER or containerdunit.unit(state).active != "active"
        return values if taken or (values and isinstance(actual[RUNNING], Unknown)) else values | {RUNNING: TAKEN_OVER}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.restart if containerdunit.unit(state).active == "active" else Disruption.none

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        if self.disruption(diff, state) < Disruption.restart:
            return ()
        unit = containerdunit.unit(state)
        if unit.kill_mode not in ("process", "none"):
            return (f"all containers of containerd (KillMode={unit.kill_mode or 'not known'} in {UNIT})",)
        if containerdunit.takes_docker(state) and isinstance(state.docker, Engine) and not state.docker.live_restore:
            return tuple(f"{c.name} ({c.image})" for c in state.docker.containers)
        return ()

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        found = _effective(state)
        path = files.place(state, found)[0] if found else CONFIG
        notes = []
        if path != CONFIG and any(c.key != RUNNING for c in diff):
            made = ", which nvidia-ctk runtime configure writes anew" if path.endswith("/99-nvidia.toml") else ""
            notes.append(f"what {path} says holds, whatever {CONFIG} says, so the change goes there{made}")
        if containerdunit.takes_docker(state):
            notes.append(f"docker.service is restarted together with {UNIT}")
        return tuple(notes)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        found = _effective(state)
        if found is None:
            raise ConvergeError("containerd config dump could not be read; nothing was changed")
        path, _ = files.place(state, found)
        before = state.sha256(path)
        data = state.files[path].data if path in state.files else b""
        want = {c.key: c.expected for c in diff if c.key != RUNNING}
        registers = keys.registers(want)
        if registers:
            summary = "nvidia-ctk runtime configure, on a copy"
            reply = yield Step("containerd-stage", ContainerdStage(data), survives=False, summary=summary)
            keys.staged(reply.out)
        content = files.merged(state, found, keys.below(want)) if want else data
        dump, then = "", found
        if want:
            validate = ContainerdValidate(path, before, content or b"", keys.BINARY if registers else "")
            summary = "containerd config dump of the new configuration"
            reply = yield Step("containerd-validate", validate, survives=False, summary=summary)
            then = self._validated(reply.out, want, spec, state)
            dump = keys.digest(reply.out)
        last = bool(want) and self._last(want, spec, state)
        record = removal.texts(state, found, want, content, last=last)
        install = ContainerdInstall(
            path=path,
            before=before,
            content=content or b"",
            write=bool(want) and content is not None,
            remove=bool(want) and content is None,
            dump=dump,
            answer=keys.answer(then),
            restart=self.disruption(diff, state) == Disruption.restart,
            docker=containerdunit.takes_docker(state),
            work=ignored_containers.words(spec),
            runtime_gone=want.get(f"{keys.NVIDIA}options.BinaryName", "") is None,
            forget=last,
            between=record.between,
            after=record.after,
        )
        yield Step("containerd", install, timeout=300, summary=f"install {path}" if want else "restart containerd")

    def _last(self, want: Mapping[str, Value], spec: NodeSpec, state: NodeState) -> bool:
        """Is nothing in the file ours after this?"""
        try:
            before, actual = self.original(spec, state), self.actual(spec, state)
        except NotComparable:  # there is no way back from here, but one on
            return False
        return bool(before) and all(want.get(k, actual.get(k)) == value for k, value in before.items() if k != RUNNING)

    def _validated(self, dump: str, want: Mapping[str, Value], spec: NodeSpec, state: NodeState) -> Effective:
        """With the new file containerd would have what is wanted, and all else as before; ConvergeError if not."""
        try:
            new, old = effective(dump), effective(str(state.containerd))
        except ValueError as e:
            raise ConvergeError(f"{e}; nothing was changed") from None
        then = self.actual(spec, state.model_copy(update={"containerd": dump}))
        wrong = [
            f"{key} would be {then.get(key)!r}, not {value!r}" for key, value in want.items() if then.get(key) != value
        ]
        before, after = keys.others(old, want), keys.others(new, want)
        for path in sorted({*before, *after}):
            if before.get(path) != after.get(path):
                wrong.append(f"{'.'.join(path)} would become {after.get(path)!r} from {before.get(path)!r}")
        if wrong:
            raise ConvergeError(
                f"containerd would read the new configuration differently: {'; '.join(wrong[:4])}; nothing was changed"
            )
        return new


@dataclass(frozen=True)
class ContainerdStage(Script):
    """Ask nvidia-ctk on a copy of the configuration; prints what it made of the copy."""

    template = "containerd/stage"
    given: bytes


@dataclass(frozen=True)
class ContainerdValidate(Script):
    """Print what containerd would load with the new file; ``binary`` has to exist, if it is given."""

    template = "containerd/validate"
    path: str
    before: str
    content: bytes
    binary: str


@dataclass(frozen=True)
class ContainerdInstall(Script):
    """Write or remove the file, restart containerd, and put both back if CRI does not answer ``answer``.

    ``dump`` is the hash of what containerd would load; ``docker``: Docker uses this containerd. ``between`` and
    ``after`` are our record during and after the change.
    """

    template = "containerd/install"
    path: str
    before: str
    content: bytes
    write: bool
    remove: bool
    dump: str
    answer: str
    restart: bool
    docker: bool
    work: tuple[str, ...]
    runtime_gone: bool
    forget: bool
    between: str
    after: str
    ours: str = removal.OURS


def sandbox_image(spec: NodeSpec, state: NodeState) -> str:
    """The image of a pod's first container; empty where no pod can be started."""
    found = _effective(state)
    running = containerdunit.unit(state).active == "active" and Containerd().applies(spec, state).yes
    return found.sandbox_image if found and running else ""


def pod_slice(state: NodeState) -> str:
    """The cgroup parent that a pod under nvidia needs; empty where containerd's own will do."""
    found = _effective(state)
    return "system.slice" if found and keys.by_systemd(found.runtimes.get("nvidia", {})) else ""


def _effective(state: NodeState) -> Effective | None:
    try:
        return effective(state.containerd) if isinstance(state.containerd, str) else None
    except ValueError:
        return None


def _unreadable(state: NodeState) -> str:
    """Why :func:`_effective` has no answer."""
    if isinstance(state.containerd, Unknown):
        return state.containerd.unknown
    try:
        effective(state.containerd or "")
    except ValueError as e:
        return str(e)
    return ""


def _running(state: NodeState, found: Effective) -> Value:
    """Does the containerd that runs have what its files say? CRI is asked; the files' times tell where it cannot be."""
    if isinstance(state.cri, Unknown):
        return state.cri
    if state.cri is not None:
        return keys.untrue(found, state.cri) or TAKEN_OVER
    younger = [path for path in state.unloaded if path in files.order(state, found)]
    return f"{', '.join(younger)} changed since it started" if younger else TAKEN_OVER
