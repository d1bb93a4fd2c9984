"""The runtime ``nvidia`` in CRI-O: one drop-in from nvidia-ctk, and a restart.

nvidia-ctk copies the default runtime, but looks for it only in crio.conf, while CRI-O's packages define it in
crio.conf.d. The copy would lack ``monitor_path``, and CRI-O does not start with a runtime whose monitor is not on its
PATH. So gpuready passes nvidia-ctk the default runtime from all files.

A reload (SIGHUP) is not enough: afterwards `crio status config` names the new runtime, but pods do not get it (cri-o
issue 10202). Containers keep running during a restart, because each conmon has its own cgroup. If a runtime is removed
while its pods run, CRI-O cannot end them (nvidia-container-toolkit pull request 1360), so the removal waits.
Sources: nvidia-container-toolkit's pkg/config/engine/crio, cri-o's pkg/config, server and contrib/systemd.
"""

import re

from gpuready.base import nvidia_ctk, toml_document
from gpuready.base.errors import ConvergeError
from gpuready.base.step import Script, Step, Steps
from gpuready.base.toml_document import TomlError
from gpuready.components.crio import files
from gpuready.components.crio.files import DEFAULT, DROP_IN, NVIDIA, Effective
from gpuready.components.toolkit_config import state as toolkit_config
from gpuready.components.toolkit_config.state import RUNTIME_PATH
from gpuready.contract import ignored_containers, ledger, need
from gpuready.contract.component import (
    Applies,
    Change,
    Disruption,
    NotComparable,
    Value,
    Values,
    refuse_irregular,
)
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState, Unknown

UNIT = "crio.service"
RUNNING = "crio.running"
LOADED = "loaded"
_PATH, _TYPE, _MONITOR = (f"crio.runtimes.nvidia.{name}" for name in ("runtime_path", "runtime_type", "monitor_path"))
_DEFAULT = "crio.default_runtime"
_NAME_IT = (
    f"name CRI-O's own by its path in {toolkit_config.CONFIG}, such as [nvidia-container-runtime] runtimes = "
    '["/usr/libexec/crio/crun"]'
)
#: Where crio.service takes flags from, on Debian, Red Hat and related systems.
_FLAGS = ("/etc/default/crio", "/etc/sysconfig/crio")
_FLAG = re.compile(r"(?:^|[\"'=])--?(?:c|config|d|config-dir|default-runtime|runtimes)(?:[=\"']|$)")


class Crio(WholeFiles):
    """runtimes.nvidia and, on request, default_runtime, in a drop-in that CRI-O has loaded."""

    name = "crio"
    owned_as = "runtime"
    unit = UNIT
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.crio == "absent":
            return Applies(False, "runtimes.crio: absent")
        if spec.runtimes.requires("crio"):
            return Applies(True, "the spec names CRI-O")
        return Applies(True, "CRI-O is on this node") if _there(state) else Applies(False, "no CRI-O on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        _refuse(spec, state)
        found = files.effective(state)
        want: dict[str, Value] = {_PATH: RUNTIME_PATH, _TYPE: "oci"}
        monitor = found.base()[1].get("monitor_path")
        if monitor:  # the runtime's own value takes precedence
            want[_MONITOR] = (found.nvidia or {}).get("monitor_path") or str(monitor)
        asked = spec.runtimes.crio_settings
        if asked.default_runtime:
            want[_DEFAULT] = "nvidia"
        elif "default_runtime" in asked.model_fields_set and found.default == "nvidia":
            want[_DEFAULT] = _other_default(state)
        actual = self.actual(spec, state)
        later = [p for p in files.order(state) if p.startswith(files.FOLDER) and p.split("/") > DROP_IN.split("/")]
        for key, value in want.items():
            by = found.default_by if key == _DEFAULT else found.said_by.get("nvidia", "")
            if actual.get(key) != value and by in later:
                differing = {_at(k): v for k, v in want.items() if actual.get(k) != v}
                raise NotComparable(
                    f"CRI-O reads {by} after {DROP_IN}, and it sets {key} differently; change it there:\n"
                    + (toml_document.snippet(differing) or f"remove {key}")
                )
        # If a file has to change, the step asks CRI-O anyway.
        differs = any(actual.get(key) != value for key, value in want.items())
        asks = state.unit(UNIT).active == "active" and not (differs and isinstance(actual[RUNNING], Unknown))
        return want | ({RUNNING: LOADED} if asks else {})

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        found = files.effective(state)
        table = found.nvidia
        values: dict[str, Value] = {_DEFAULT: found.default or None}
        if table is not None:
            values |= {key: table.get(key.rpartition(".")[2]) for key in (_PATH, _MONITOR)}
            values[_TYPE] = table.get("runtime_type") or "oci"
        values[RUNNING] = _running(state, found)
        return values | ledger.actual("crio", state, (DROP_IN,))

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        found = super().original(spec, state)
        if not found and ledger.kept(state, DROP_IN) and "nvidia" in files.effective(state).runtimes:
            raise NotComparable(
                f"{DROP_IN} was edited after gpuready wrote it; remove the runtime nvidia from it first"
            )
        return found

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return (DROP_IN,)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.restart if state.unit(UNIT).active == "active" else Disruption.none

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return ()  # the step itself finds pods that would end

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if any(c.key in (_PATH, _TYPE) for c in diff) and not low_level(state):
            return (f"nvidia-container-runtime finds neither runc nor crun on PATH: {_NAME_IT}",)
        return ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        want = {c.key: c.expected for c in diff if c.key != RUNNING}
        content = b""
        if want:
            found = files.effective(state)
            like, table = found.base()
            import tomlkit

            # nvidia-ctk sees one file with only the runtime to copy.
            given = {"crio": {"runtime": {"default_runtime": like, "runtimes": {like: dict(table)}}}} if like else {}
            made = yield from nvidia_ctk.configure("crio", tomlkit.dumps(given).encode())
            content = _content(state, found, want, made)
            self._validated(content, want, spec, state)
        install = CrioInstall(
            before=state.sha256(DROP_IN),
            content=content,
            runtime=RUNTIME_PATH if content else "",
            default_runtime=str(want.get(_DEFAULT) or ""),
            monitor=str(want.get(_MONITOR) or ""),
            restart=state.unit(UNIT).active == "active",
            work=ignored_containers.words(spec),
        )
        summary = f"install {DROP_IN}" if content else "restart CRI-O"
        yield Step("crio", install, timeout=300, summary=summary)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        ((_, before, has_original),) = ledger.to_restore(diff, state)
        install = CrioInstall(
            before,
            work=ignored_containers.words(spec),
            restart=state.unit(UNIT).active == "active",
            restores=True,
            has_original=has_original,
        )
        yield Step("crio", install, timeout=300, summary=f"restore {DROP_IN}")

    def _validated(self, content: bytes, want: Values, spec: NodeSpec, state: NodeState) -> None:
        """Check that the files together have the wanted values, and that other runtimes stay. Raises ConvergeError."""
        new = File(text=content.decode("utf-8", "surrogateescape"), mode=0o644, uid=0, gid=0, mtime=0)
        then = state.model_copy(update={"files": {**state.files, DROP_IN: new}})
        actual = self.actual(spec, then)
        wrong = [f"{key} would be {actual.get(key)!r}" for key, value in want.items() if actual.get(key) != value]
        was, would = (toml_document.leaves(files.read(each, DROP_IN)) for each in (state, then))
        own = {path for path in {*was, *would} if was.get(path) != would.get(path) and path[: len(NVIDIA)] != NVIDIA}
        wrong += [f"{'.'.join(path)} would become {would.get(path)!r}" for path in sorted(own - {DEFAULT})]
        if wrong:
            raise ConvergeError(
                f"CRI-O would read the new {DROP_IN} differently: {'; '.join(wrong)}; nothing was changed"
            )


class CrioInstall(Script, template="crio/install"):
    """Write the drop-in or restore the original one, restart CRI-O, and undo both if that fails.

    ``runtime`` and ``monitor``: programs that must exist, if given.
    """

    before: str
    work: tuple[str, ...]
    content: bytes = b""
    restores: bool = False
    has_original: bool = False
    runtime: str = ""
    default_runtime: str = ""
    monitor: str = ""
    restart: bool = False
    path: str = DROP_IN


def low_level(state: NodeState) -> str:
    """Return the runtime that nvidia-container-runtime calls: from its config.toml, else from root's PATH; or empty."""
    try:
        document = toml_document.read(state.text(toolkit_config.CONFIG))
    except toml_document.TomlError:
        document = {}
    given = toml_document.at(document, ("nvidia-container-runtime", "runtimes"))
    names = [str(name) for name in given] if isinstance(given, list) else ["runc", "crun"]
    return next((name for name in names if name.startswith("/") or name in state.commands), "")


def _running(state: NodeState, found: Effective) -> Value:
    """Return how the running CRI-O differs from its files: by the files' times, and by its own answer.

    The answer alone is not enough: after a reload it names runtimes that pods do not get.
    """
    if isinstance(state.crio, Unknown):
        return state.crio
    late = [path for path in sorted({found.said_by.get("nvidia", DROP_IN), DROP_IN}) if _younger(state, path)]
    if late:
        return f"{', '.join(late)} changed since CRI-O started, and a reload gives pods no runtime"
    if state.crio is None:
        return LOADED
    runs = state.crio.runtimes.get("nvidia")
    if runs is None or found.nvidia is None:
        there = "with" if runs is not None else "without"
        return LOADED if runs is found.nvidia else f"CRI-O runs {there} the runtime nvidia"
    pairs = [(key, runs.get(key), found.nvidia.get(key)) for key in ("runtime_path", "monitor_path")]
    pairs.append(("runtime_type", runs.get("runtime_type") or "oci", found.nvidia.get("runtime_type") or "oci"))
    pairs.append(("default_runtime", state.crio.default_runtime, found.default))
    wrong = [
        f"{key} {a}, but the files say {b}" for key, a, b in pairs if b and a != b
    ]  # keys in no file have CRI-O's defaults
    return f"CRI-O runs with {'; '.join(wrong)}" if wrong else LOADED


def _there(state: NodeState) -> bool:
    return state.unit(UNIT).load == "loaded" or "crio" in state.commands


def _other_default(state: NodeState) -> Value:
    """Return the default runtime without gpuready's drop-in; None for CRI-O's own default."""
    found = files.effective(state, without=DROP_IN)
    if found.default == "nvidia":
        raise NotComparable(f"{found.default_by} makes nvidia the default runtime; change it there")
    return found.default or None


def _younger(state: NodeState, path: str) -> bool:
    """Tell whether the file changed after CRI-O's last start. Both times are in whole seconds."""
    started = state.unit(UNIT).started_us
    if not started or not state.clock or path not in state.files or state.unit(UNIT).active != "active":
        return False
    return state.files[path].mtime > state.clock - state.uptime + started // 10**6 + 1


def _at(key: str) -> toml_document.Path:
    """Return the place of a key in CRI-O's files."""
    return DEFAULT if key == _DEFAULT else (*NVIDIA, key.rpartition(".")[2])


def _content(state: NodeState, found: Effective, want: Values, staged: str) -> bytes:
    """Return the drop-in with the wanted values: based on the user's file, or on nvidia-ctk's if there is none."""
    try:
        made = toml_document.read(staged)
        table = toml_document.at(made, NVIDIA)
        if not isinstance(table, dict) or table.get("runtime_path") != RUNTIME_PATH:
            raise nvidia_ctk.wrote(f"no runtime {RUNTIME_PATH}")
        ours: dict[tuple[str, ...], object] = {}
        registers = any(key in want for key in (_PATH, _TYPE, _MONITOR))
        if registers and toml_document.at(files.read(state, DROP_IN), NVIDIA) is None:
            ours |= toml_document.leaves(found.nvidia if found.nvidia is not None else table, NVIDIA)
        for key, value in want.items():
            ours[_at(key)] = value if key != _DEFAULT or value == "nvidia" else None
        fresh = staged if registers and found.nvidia is None else ""
        return toml_document.merge(state.text(DROP_IN) if DROP_IN in state.files else fresh, ours).encode()
    except TomlError as e:
        raise ConvergeError(f"{DROP_IN} cannot be generated: {e}; nothing was changed{e.by_hand}") from None


def _refuse(spec: NodeSpec, state: NodeState) -> None:
    for what in (state.units, state.tools):
        need.value(what)
    if not _there(state):
        raise NotComparable("the spec names CRI-O, but it is not installed; set runtimes: {crio: auto}")
    refuse_irregular(DROP_IN, state)
    words = [(UNIT, word) for word in state.unit(UNIT).exec_start]
    for path in _FLAGS:
        lines = state.text(path).splitlines()
        words += [(path, word) for line in lines if not line.lstrip().startswith("#") for word in line.split()]
    for where, word in words:
        if _FLAG.search(word):
            by_hand = toml_document.snippet({_at(_PATH): RUNTIME_PATH, _at(_TYPE): "oci"})
            raise NotComparable(
                f"{where} starts CRI-O with {word}; gpuready manages only {files.MAIN} and crio.conf.d. Move the "
                f"setting there, or register the runtime by hand in the file that CRI-O reads:\n{by_hand}"
            )
    if spec.runtimes.crio_settings.default_runtime and not low_level(state):
        raise NotComparable(
            "default_runtime: nvidia-container-runtime finds neither runc nor crun on PATH, so no pod would start; "
            + _NAME_IT
        )
