"""The runtime ``nvidia`` in containerd, for Kubernetes and other users of CRI: in its files and in the running process.

gpuready edits the user's own file. It does not let nvidia-ctk write it: nvidia-ctk 1.18 and newer copy the whole CRI
section into a drop-in, which hides later edits of the main file, and drop the comments of the main file. Only the
runtime's path comes from nvidia-ctk, which runs on a copy. All other settings come from the default runtime.

containerd cannot reload (SIGHUP ends it), so a change needs a restart. Containers keep running if the unit's KillMode
is process.
Sources: containerd's docs/cri/config.md and docs/PLUGINS.md, dumps of 1.6, 1.7 and 2.1, nvidia-docker issue 1788.
"""

from gpuready.base import nvidia_ctk
from gpuready.base.errors import ConvergeError
from gpuready.base.step import Script, Step, Steps
from gpuready.components.containerd import files, keys, refusals, removal
from gpuready.components.containerd.files import CONFIG, UNIT
from gpuready.components.containerd.state import Effective, effective
from gpuready.components.docker.state import all_containers
from gpuready.components.toolkit_config.state import RUNTIME_PATH
from gpuready.contract import ignored_containers, owned_keys
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Value, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState, Unknown

RUNNING = "containerd.running"
LOADED = "loaded"


class Containerd(Component):
    """runtimes.nvidia, default_runtime_name and enable_cdi, in the files and in the running containerd."""

    name = "containerd"
    owned_as = "runtime"
    unit = UNIT
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.containerd == "absent":
            return Applies(False, "runtimes.containerd: absent")
        if spec.runtimes.requires("containerd"):
            return Applies(True, "the spec names containerd")
        why = refusals.missing(state)
        if why:
            return Applies(False, why)
        found = files.known(state)
        if found and not found.serves_cri:
            return Applies(False, "containerd does not serve CRI here (its plugin cri is in disabled_plugins)")
        return Applies(True, "containerd serves CRI on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        found = refusals.refuse(spec, state)
        owned_keys.read(state, removal.OURS)  # without a readable record, nothing could be undone
        want = keys.wanted(spec, found, files.first_default(state, found))
        actual = self.actual(spec, state)
        differs = {k: v for k, v in want.items() if actual.get(k) != v}
        files.merged(state, found, keys.below(differs))
        if keys.DEFAULT in differs and "default_runtime" in found.deprecated:
            raise NotComparable(refusals.decides(state, found))
        # If the file has to change, the restart asks CRI anyway. CRI may even be down because of that file.
        asks = state.unit(UNIT).active == "active" and not (differs and isinstance(actual[RUNNING], Unknown))
        return want | ({RUNNING: LOADED} if asks else {})

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        found = files.known(state)
        if found is None:
            return {}
        table = found.runtimes.get("nvidia", {})
        values: dict[str, Value] = {}
        for path, value in files.leaves(table).items():
            values[keys.NVIDIA + ".".join(path)] = tuple(map(str, value)) if isinstance(value, list) else value
        if table:
            values[keys.PROGRAM] = keys.binary(found)
            values[f"{keys.NVIDIA}options.SystemdCgroup"] = keys.by_systemd(table)
        values[keys.RUNC] = found.runtimes.get("runc", {}).get("runtime_type")
        values[keys.DEFAULT] = found.default_runtime
        values["containerd.enable_cdi"] = found.cri.get("enable_cdi")
        values[RUNNING] = _running(state, found)
        return values

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        if removal.OURS not in state.files or state.containerd is None:
            return {}
        found = files.readable(state)
        actual = self.actual(spec, state)
        values = removal.original(state, found, actual)
        taken = actual[RUNNING] == LOADED or state.unit(UNIT).active != "active"
        return values if taken or (values and isinstance(actual[RUNNING], Unknown)) else values | {RUNNING: LOADED}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.restart if state.unit(UNIT).active == "active" else Disruption.none

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        if self.disruption(diff, state) < Disruption.restart:
            return ()
        unit = state.unit(UNIT)
        if unit.kill_mode not in ("process", "none"):
            return (f"all containers of containerd (KillMode={unit.kill_mode or 'not known'} in {UNIT})",)
        if _takes_docker(state) and isinstance(state.docker, Engine) and not state.docker.live_restore:
            return all_containers(state.docker)
        return ()

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        found = files.readable(state)
        path, _ = files.place(state, found)
        notes = removal.notes(diff, state, found)
        if path != CONFIG and any(c.key != RUNNING for c in diff):
            made = ", which nvidia-ctk runtime configure rewrites" if path.endswith("/99-nvidia.toml") else ""
            notes.append(f"{path} overrides {CONFIG}, so gpuready changes {path}{made}")
        if _takes_docker(state):
            notes.append(f"docker.service is restarted together with {UNIT}")
        return tuple(notes)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        found = files.readable(state)
        path, _ = files.place(state, found)
        before = state.sha256(path)
        data = state.files[path].data if path in state.files else b""
        want = {c.key: c.expected for c in diff if c.key != RUNNING}
        registers = want.get(keys.PROGRAM) == RUNTIME_PATH
        if registers:
            keys.staged((yield from nvidia_ctk.configure("containerd", data, "version = 2")))
        content = files.merged(state, found, keys.below(want)) if want else data
        dump, then = "", found
        if want:
            validate = ContainerdValidate(path, before, content or b"", RUNTIME_PATH if registers else "")
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
            docker=_takes_docker(state),
            work=ignored_containers.words(spec),
            runtime_gone=want.get(keys.PROGRAM, "") is None,
            forget=last,
            between=record.between,
            after=record.after,
        )
        yield Step("containerd", install, timeout=300, summary=f"install {path}" if want else "restart containerd")

    def _last(self, want: Values, spec: NodeSpec, state: NodeState) -> bool:
        """Tell whether nothing in the file is gpuready's after this change."""
        try:
            before, actual = self.original(spec, state), self.actual(spec, state)
        except NotComparable:  # gpuready cannot undo its changes here, but can still make this one
            return False
        return bool(before) and all(want.get(k, actual.get(k)) == value for k, value in before.items() if k != RUNNING)

    def _validated(self, dump: str, want: Values, spec: NodeSpec, state: NodeState) -> Effective:
        """Check that the new file has the wanted keys and changes no others. Raises ConvergeError."""
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


class ContainerdValidate(Script, template="containerd/validate"):
    """Print what containerd would load with the new file. If ``binary`` is given, it must exist."""

    path: str
    before: str
    content: bytes
    binary: str


class ContainerdInstall(Script, template="containerd/install"):
    """Write or remove the file, restart containerd, and undo both if CRI does not report ``answer``.

    ``dump``: the hash of what containerd would load. ``docker``: Docker uses this containerd. ``between`` and
    ``after``: gpuready's record during and after the change.
    """

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


def _takes_docker(state: NodeState) -> bool:
    """Tell whether Docker restarts together with containerd. Older packages of docker.com say Requires=containerd."""
    return "docker.service" in state.unit(UNIT).takes_along and state.docker is not None


def _running(state: NodeState, found: Effective) -> Value:
    """Return how the running process differs from its files: CRI's answer, else the files' times."""
    if isinstance(state.cri, Unknown):
        return state.cri
    if state.cri is not None:
        return keys.untrue(found, state.cri) or LOADED
    younger = [path for path in state.unloaded if path in files.order(state, found)]
    return f"{', '.join(younger)} changed since it started" if younger else LOADED
