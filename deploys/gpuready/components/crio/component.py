"""CRI-O knows the runtime ``nvidia``: one drop-in that nvidia-ctk makes, and a reload. Never run against a CRI-O.

There is no CRI-O engine on the test machines: only its files, the real nvidia-ctk and a stand-in for its unit were
tried. What the engine does with them is read from its source (components/crio/files.py).

nvidia-ctk makes ``nvidia`` like the default runtime, but it looks for that in crio.conf alone, and CRI-O's packages
say it in crio.conf.d: ``monitor_path`` would be missing, and CRI-O refuses a runtime without a monitor on its PATH.
So nvidia-ctk gets the default runtime as all files have it. Runtimes are taken over by SIGHUP; one that is taken out
while pods of it run could not end them (nvidia-container-toolkit pull request 1360), so that waits.
Sources: nvidia-container-toolkit's pkg/config/engine/crio, cri-o's pkg/config/reload.go and contrib/systemd.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.components.crio import files
from gpuready.components.crio.files import DEFAULT, DROP_IN, NVIDIA, Effective
from gpuready.core import ledger, toml_document
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value, refuse_irregular
from gpuready.core.errors import ConvergeError
from gpuready.core.step import Script, Step, Steps
from gpuready.core.toml_document import TomlError
from gpuready.spec.model import CrioSpec, NodeSpec
from gpuready.state import toolkit_config
from gpuready.state.model import File, NodeState, Unit, Unknown

UNIT = "crio.service"
BINARY = "/usr/bin/nvidia-container-runtime"
RUNNING = "crio.running"
TAKEN_OVER = "the configuration as it is"
_PATH, _TYPE, _MONITOR = (f"crio.runtimes.nvidia.{name}" for name in ("runtime_path", "runtime_type", "monitor_path"))
_DEFAULT = "crio.default_runtime"
_NAME_IT = f"name CRI-O's own by its path in {toolkit_config.CONFIG}, [nvidia-container-runtime] runtimes"
#: Where crio.service of Debian's and Red Hat's kin takes flags from.
_FLAGS = ("/etc/default/crio", "/etc/sysconfig/crio")
_FLAG = re.compile(r"(?:^|[\"'=])--?(?:c|config|d|config-dir|default-runtime|runtimes)(?:[=\"']|$)")


class Crio(Component):
    """runtimes.nvidia and, when asked, default_runtime, in a drop-in that CRI-O has read."""

    name = "crio"
    part = "runtime"
    unit = UNIT
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.crio == "absent":
            return Applies(False, "runtimes.crio: absent")
        if spec.runtimes.required_crio is not None:
            return Applies(True, "the spec names CRI-O")
        return Applies(True, "CRI-O is on this node") if _there(state) else Applies(False, "no CRI-O on this node")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        _refuse(spec, state)
        found = files.effective(state)
        want: dict[str, Value] = {_PATH: BINARY, _TYPE: "oci"}
        monitor = found.base()[1].get("monitor_path")
        if monitor:  # one that the runtime says itself may be another
            want[_MONITOR] = (found.nvidia or {}).get("monitor_path") or str(monitor)
        asked = spec.runtimes.required_crio or CrioSpec()
        if asked.default_runtime:
            want[_DEFAULT] = "nvidia"
        elif "default_runtime" in asked.model_fields_set and found.default == "nvidia":
            want[_DEFAULT] = _other_default(state)
        actual = self.actual(spec, state)
        for key, value in want.items():
            by = found.default_by if key == _DEFAULT else found.said_by.get("nvidia", "")
            if actual.get(key) != value and by in files.order(state) and _after(state, by):
                raise NotComparable(f"{by} is read after {DROP_IN} and says {key} differently; change it there")
        # Where a file has to change, CRI-O is reloaded anyway and asked then.
        differs = any(actual.get(key) != value for key, value in want.items())
        asks = unit(state).active == "active" and not (differs and isinstance(actual[RUNNING], Unknown))
        return want | ({RUNNING: TAKEN_OVER} if asks else {})

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found = files.effective(state)
        table = found.nvidia
        values: dict[str, Value] = {_DEFAULT: found.default or None}
        if table is not None:
            values |= {key: table.get(key.rpartition(".")[2]) for key in (_PATH, _MONITOR)}
            values[_TYPE] = table.get("runtime_type") or "oci"
        values[RUNNING] = _running(state, found)
        return values | ledger.actual("crio", state, (DROP_IN,))

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found = ledger.whole("crio", state, (DROP_IN,))
        if not found and ledger.kept(state, DROP_IN) and "nvidia" in files.effective(state).runtimes:
            raise NotComparable(
                f"{DROP_IN} was edited after gpuready wrote it; take the runtime nvidia out of it first"
            )
        return found

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.reload if unit(state).active == "active" else Disruption.none

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if any(c.key in (_PATH, _TYPE) for c in diff) and not low_level(state):
            return (f"nvidia-container-runtime finds neither runc nor crun on PATH: {_NAME_IT}",)
        return ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        want = {c.key: c.expected for c in diff if c.key != RUNNING}
        back = f"crio.files.{DROP_IN}"
        content = b""
        if want and back not in want:
            found = files.effective(state)
            like, table = found.base()
            import tomlkit

            # As nvidia-ctk would see it if CRI-O had no drop-ins: nothing but the runtime that nvidia is like.
            given = {"crio": {"runtime": {"default_runtime": like, "runtimes": {like: dict(table)}}}} if like else {}
            summary = "nvidia-ctk runtime configure, on a copy"
            reply = yield Step("crio-stage", CrioStage(tomlkit.dumps(given)), survives=False, summary=summary)
            content = _content(state, found, want, reply.out)
            self._validated(content, want, spec, state)
        install = CrioInstall(
            before=state.sha256(DROP_IN),
            content=content,
            write=bool(content),
            restores=back in want,
            has_original=bool(want.get(back)),
            runtime=BINARY if content else "",
            default_runtime=str(want.get(_DEFAULT) or ""),
            monitor=str(want.get(_MONITOR) or ""),
            reload=unit(state).active == "active",
        )
        summary = f"install {DROP_IN}" if content else f"take back {DROP_IN}" if want else "reload CRI-O"
        yield Step("crio", install, timeout=120, summary=summary)

    def _validated(self, content: bytes, want: Mapping[str, Value], spec: NodeSpec, state: NodeState) -> None:
        """All files together would say what is wanted, and every other runtime what it said; ConvergeError if not."""
        new = File(text=content.decode("utf-8", "surrogateescape"), mode=0o644, uid=0, gid=0, mtime=0)
        then = state.model_copy(update={"files": {**state.files, DROP_IN: new}})
        actual = self.actual(spec, then)
        wrong = [f"{key} would be {actual.get(key)!r}" for key, value in want.items() if actual.get(key) != value]
        was, would = (files.leaves(files.read(each, DROP_IN), ()) for each in (state, then))
        own = {path for path in {*was, *would} if was.get(path) != would.get(path) and path[: len(NVIDIA)] != NVIDIA}
        wrong += [f"{'.'.join(path)} would become {would.get(path)!r}" for path in sorted(own - {DEFAULT})]
        if wrong:
            raise ConvergeError(
                f"CRI-O would read the new {DROP_IN} otherwise: {'; '.join(wrong)}; nothing was changed"
            )


@dataclass(frozen=True)
class CrioStage(Script):
    """Ask nvidia-ctk on a configuration that has only the runtime that nvidia is like; prints what it made of it."""

    template = "crio/stage"
    given: str


@dataclass(frozen=True)
class CrioInstall(Script):
    """Write the drop-in or restore the one from before, reload CRI-O, and put both back if that fails.

    ``runtime`` and ``monitor`` are programs that have to exist, if they are given.
    """

    template = "crio/install"
    before: str
    content: bytes
    write: bool
    restores: bool
    has_original: bool
    runtime: str
    default_runtime: str
    monitor: str
    reload: bool
    path: str = DROP_IN


def unit(state: NodeState) -> Unit:
    """crio.service; empty where there is none."""
    found = state.units.get(UNIT) if not isinstance(state.units, Unknown) else None
    return found or Unit(load="", active="")


def low_level(state: NodeState) -> str:
    """The runtime that nvidia-container-runtime would call: by its config.toml, else on root's PATH; or nothing."""
    tools = {} if isinstance(state.tools, Unknown) else state.tools
    try:
        document = (
            toml_document.read(state.files[toolkit_config.CONFIG].text) if toolkit_config.CONFIG in state.files else {}
        )
    except toml_document.TomlError:
        document = {}
    given = toml_document.at(document, ("nvidia-container-runtime", "runtimes"))
    names = [str(name) for name in given] if isinstance(given, list) else ["runc", "crun"]
    return next((name for name in names if name.startswith("/") or name in tools), "")


def _running(state: NodeState, found: Effective) -> Value:
    """Does the CRI-O that runs have what its files say? It is asked; the files' times tell where it cannot be."""
    if isinstance(state.crio, Unknown):
        return state.crio
    if state.crio is None:
        late = [path for path in sorted({found.said_by.get("nvidia", DROP_IN), DROP_IN}) if _younger(state, path)]
        return f"{', '.join(late)} changed since it was read" if late else TAKEN_OVER
    runs = state.crio.runtimes.get("nvidia")
    if runs is None or found.nvidia is None:
        there = "has" if runs is not None else "does not have"
        return TAKEN_OVER if runs is found.nvidia else f"CRI-O runs and {there} the runtime nvidia"
    pairs = [(key, runs.get(key), found.nvidia.get(key)) for key in ("runtime_path", "monitor_path")]
    pairs.append(("runtime_type", runs.get("runtime_type") or "oci", found.nvidia.get("runtime_type") or "oci"))
    pairs.append(("default_runtime", state.crio.default_runtime, found.default))
    wrong = [f"{key} {a}, the files say {b}" for key, a, b in pairs if b and a != b]  # what no file says is CRI-O's own
    return f"CRI-O runs with {'; '.join(wrong)}" if wrong else TAKEN_OVER


def _there(state: NodeState) -> bool:
    return unit(state).load == "loaded" or (not isinstance(state.tools, Unknown) and "crio" in state.tools)


def _after(state: NodeState, path: str) -> bool:
    """Is the file read after our drop-in?"""
    return path.startswith(files.FOLDER) and path.split("/") > DROP_IN.split("/")


def _other_default(state: NodeState) -> Value:
    """The default runtime without our drop-in; None where CRI-O's own holds."""
    found = files.effective(state, without=DROP_IN)
    if found.default == "nvidia":
        raise NotComparable(f"{found.default_by} makes nvidia the default runtime; mend it there")
    return found.default or None


def _younger(state: NodeState, path: str) -> bool:
    """Was the file written after systemd last started or reloaded CRI-O? Both times are known to the second only."""
    loaded = unit(state).changed_us
    if not loaded or not state.clock or path not in state.files or unit(state).active != "active":
        return False
    return state.files[path].mtime > state.clock - state.uptime + loaded // 10**6 + 1


def _content(state: NodeState, found: Effective, want: Mapping[str, Value], staged: str) -> bytes:
    """The drop-in: the user's own file where there is one, else nvidia-ctk's, with the wanted values."""
    try:
        made = toml_document.read(staged)
        table = toml_document.at(made, NVIDIA)
        if not isinstance(table, dict) or table.get("runtime_path") != BINARY:
            raise ConvergeError(f"nvidia-ctk runtime configure wrote no runtime {BINARY}; nothing was changed")
        ours: dict[tuple[str, ...], object] = {}
        registers = any(key in want for key in (_PATH, _TYPE, _MONITOR))
        if registers and toml_document.at(files.read(state, DROP_IN), NVIDIA) is None:
            ours |= files.leaves(found.nvidia if found.nvidia is not None else table, NVIDIA)
        for key, value in want.items():
            if key != _DEFAULT:
                ours[(*NVIDIA, key.rpartition(".")[2])] = value
            else:
                ours[DEFAULT] = value if value == "nvidia" else None
        fresh = staged if registers and found.nvidia is None else ""
        return toml_document.merge(state.files[DROP_IN].text if DROP_IN in state.files else fresh, ours).encode()
    except TomlError as e:
        raise ConvergeError(f"{DROP_IN} cannot be made: {e}; nothing was changed") from None


def _refuse(spec: NodeSpec, state: NodeState) -> None:
    """NotComparable with what stands in the way."""
    for what in (state.units, state.tools):
        if isinstance(what, Unknown):
            raise NotComparable(what.unknown)
    if not _there(state):
        raise NotComparable("the spec names CRI-O, and there is none; say runtimes: {crio: auto}")
    refuse_irregular(DROP_IN, state)
    words = [(UNIT, word) for word in unit(state).exec_start]
    for path in _FLAGS:
        lines = state.files[path].text.splitlines() if path in state.files else []
        words += [(path, word) for line in lines if not line.lstrip().startswith("#") for word in line.split()]
    for where, word in words:
        if _FLAG.search(word):
            raise NotComparable(f"{where} starts CRI-O with {word}; gpuready manages only {files.MAIN} and crio.conf.d")
    asked = spec.runtimes.crio
    if isinstance(asked, CrioSpec) and asked.default_runtime and not low_level(state):
        raise NotComparable(
            "default_runtime: nvidia-container-runtime finds neither runc nor crun on PATH, so no pod would start; "
            + _NAME_IT
        )
