"""A model of the node, just enough to close a difference: what a component's scripts write, and what follows from it.

The scripts themselves run on real machines in the other suites; here their values are read, and the state that they
would leave behind is compared again.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import tomlkit

from gpuready.base import json_document
from gpuready.base.facts import KEPT
from gpuready.base.nvidia_ctk import Configure
from gpuready.base.step import Reply, Script, Step
from gpuready.components.cdi.component import CdiGenerate
from gpuready.components.containerd.component import ContainerdInstall, ContainerdValidate
from gpuready.components.containerd.state import effective
from gpuready.components.crio import files as criofiles
from gpuready.components.crio.component import UNIT as CRIO
from gpuready.components.crio.component import CrioInstall
from gpuready.components.dcgm.component import SERVICE as DCGM
from gpuready.components.dcgm.component import DcgmInstall
from gpuready.components.devices.component import MakeNodes
from gpuready.components.docker.keys import LOADED, NEXT, OURS
from gpuready.components.docker.state import CONFIG
from gpuready.components.docker.transaction import DockerInstall
from gpuready.components.docker_package.component import EngineInstall
from gpuready.components.driver.component import Hold
from gpuready.components.gate.component import SCRIPT as GATE
from gpuready.components.ldso.state import library_version
from gpuready.components.memlock.component import SetLimits, drop_in
from gpuready.components.monitoring import component as monitoring
from gpuready.components.reconverge.component import LINK, RESULT, InstallRun
from gpuready.components.toolkit.component import ToolkitInstall
from gpuready.components.toolkit.state import PACKAGES
from gpuready.components.toolkit_config.component import ConfigInstall, ConfigRead
from gpuready.components.toolkit_config.state import RUNTIME_PATH
from gpuready.contract.compare import compare
from gpuready.contract.component import Component
from gpuready.contract.ledger import Restore, WriteFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri, Docker, File, Linker, NodeState, Package, Tool, Unit, Unknown
from tests.components.containerd import containerdmodel
from tests.components.rdma import rdmamodel
from tests.components.wheels import wheelsmodel

S = TypeVar("S", bound=Script)
STAGED_CONTAINERD = """version = 2

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
options = {BinaryName = "/usr/bin/nvidia-container-runtime"}
"""
STAGED = '{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}'


@dataclass
class Closed:
    """What the steps did: their names, files written (path -> content) and removed."""

    steps: list[Step] = field(default_factory=list)
    writes: dict[str, str] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    records: dict[str, str] = field(default_factory=dict)

    def script(self, name: str) -> str:
        return next(step.script for step in self.steps if step.name == name)

    def args(self, kind: type[S]) -> S:
        """The arguments of the one step that runs this script."""
        (found,) = (step.args for step in self.steps if isinstance(step.args, kind))
        return found


def close(
    component: Component,
    spec: NodeSpec,
    state: NodeState,
    diff: tuple[Any, ...],
    staged: str = STAGED,
    key: bytes = b"",
) -> Closed:
    """Run ``converge`` to its end with the answers that a node gives."""
    closed = Closed()
    steps = component.converge(diff, spec, state)
    try:
        step = next(steps)
        while True:
            closed.steps.append(step)
            assert step.script, "it can be rendered"
            _read(step.args, closed)
            out = _answer(step, state, staged)
            if step.name == "repository-key":
                out = base64.b64encode(key).decode()
            step = steps.send(Reply(0, out))
    except StopIteration:
        return closed


def converged(component: Component, spec: NodeSpec, state: NodeState) -> Closed:
    """What the steps to the spec do."""
    return close(component, spec, state, compare(component, spec, state).diff)


def applied_to(component: Component, spec: NodeSpec, state: NodeState) -> NodeState:
    """The state after ``apply``."""
    return after(component, spec, state, converged(component, spec, state))


def taken_back(component: Component, spec: NodeSpec, state: NodeState) -> tuple[NodeState, Closed]:
    """The state after ``remove``, and what its steps do."""
    closed = close(component, spec, state, compare(component, spec, state, original=True).diff)
    return after(component, spec, state, closed), closed


def with_text(state: NodeState, path: str, text: str) -> NodeState:
    """The same with another text in a file that is there."""
    return state.model_copy(update={"files": state.files | {path: state.files[path].model_copy(update={"text": text})}})


def _answer(step: Step, state: NodeState, staged: str) -> str:
    """What a node prints for an engine's step; ``staged`` is nvidia-ctk's daemon.json."""
    match step.args:
        case Configure(engine="docker"):
            return staged
        case Configure(engine="containerd"):
            return STAGED_CONTAINERD
        case Configure(engine="crio", given=given):
            return _crio_staged(given.decode())
        case ContainerdValidate(path=path, content=content):
            return _dumped(state, {path: _text(content)})
        case ConfigRead(path=path) if path in state.files:
            return base64.b64encode(state.files[path].data).decode()
        case _:
            return ""


def _read(args: Script | str, closed: Closed) -> None:
    match args:
        case DockerInstall():
            _daemon_json(args, closed)
        case ContainerdInstall():
            if args.write or args.remove:
                closed.records[args.ours] = args.after
            if args.write:
                closed.writes[args.path] = _text(args.content)
            if args.remove:
                closed.removes.append(args.path)
        case CrioInstall():
            if args.content:
                closed.writes[args.path] = _text(args.content)
        case ConfigInstall():
            closed.records[args.ours] = args.after
            closed.writes[args.path] = args.content
        case _:  # all others name their files alike
            closed.writes |= {put.path: _text(put.content) for put in getattr(args, "puts", ())}
            closed.removes += [drop.path for drop in getattr(args, "drops", ())]
            closed.removes += [file.path for file in getattr(args, "files", ()) if not file.there]


def _daemon_json(args: DockerInstall, closed: Closed) -> None:
    """The file is loaded, then it gets its last content."""
    if not args.content:
        return
    if not args.forget:
        closed.records[args.ours] = args.record
    if args.last == "none":
        closed.removes.append(args.path)
    else:
        closed.writes[args.path] = _text(args.final if args.last else args.content)


def _crio_staged(given: str) -> str:
    """What nvidia-ctk makes of a crio.conf: the default runtime's table under its own name, with its own path."""
    runtime = tomlkit.parse(given).unwrap().get("crio", {}).get("runtime", {})
    table = runtime.get("runtimes", {}).get(runtime.get("default_runtime"), {})
    nvidia = {**table, "runtime_path": RUNTIME_PATH, "runtime_type": "oci"}
    return tomlkit.dumps({"crio": {"runtime": {"runtimes": {"nvidia": nvidia}}}})


def _dumped(state: NodeState, changed: dict[str, str | None]) -> str:
    """What containerd would say with these files; its version is told by the dump that there is."""
    now = effective(str(state.containerd))
    version = "2.1" if now.version >= 3 else "1.7" if "enable_cdi" in now.cri else "1.6"
    files: dict[str, str | None] = {path: file.text for path, file in state.files.items()}
    return containerdmodel.dump(version, {path: text for path, text in (files | changed).items() if text is not None})


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def after(component: Component, spec: NodeSpec, state: NodeState, closed: Closed) -> NodeState:
    """The state that the steps leave behind."""
    files = {path: file for path, file in state.files.items() if path not in closed.removes}
    for path, text in closed.writes.items():  # and what `keep` of lib.sh.j2 keeps
        copy = f"{KEPT}{path}"
        if f"{copy}.original" not in files and f"{copy}.absent" not in files:
            kept = state.files.get(path)
            files[f"{copy}.original" if kept else f"{copy}.absent"] = kept or _file("", state)
        secret = any(isinstance(step.args, WriteFiles) and step.args.secret == path for step in closed.steps)
        files[path] = _file(text, state).model_copy(
            update={"mode": 0o755 if path == GATE else 0o600 if secret else 0o644}
        )
    back = [file for step in closed.steps if isinstance(step.args, Restore) for file in step.args.files]
    state = _without(state.model_copy(update={"files": files}), *(f"{KEPT}{file.path}." for file in back))
    state = _without(state, *closed.records)
    records = {path: _file(text, state) for path, text in closed.records.items() if text}
    state = state.model_copy(update={"files": state.files | records})
    effects: dict[str, Callable[[NodeState, Closed], NodeState]]
    effects = {"containerd": _containerd, "docker": _docker, "ldso": _ldconfig, "toolkit": _apt, "memlock": _limits}
    effects |= {"cdi": _nvidia_ctk, "crio": _crio, "engine": _docker_io, "monitoring": _started}
    effects |= {"driver": _holds, "devices": _nodes, "reconverge": _enabled, "dcgm": _dcgm}
    effects |= {"rdma": lambda state, closed: rdmamodel.after(state, closed.steps)}
    effects |= {"wheels": lambda state, closed: wheelsmodel.after(state, closed.steps)}
    return effects[component.name](state, closed) if component.name in effects else state


def _without(state: NodeState, *gone: str) -> NodeState:
    """The same without the files whose paths begin so."""
    return state.model_copy(update={"files": {p: file for p, file in state.files.items() if not p.startswith(gone)}})


def _units(state: NodeState) -> dict[str, Unit]:
    """The units that could be read."""
    return {} if isinstance(state.units, Unknown) else dict(state.units)


def _file(text: str, state: NodeState) -> File:
    return File(text=text, mode=0o644, uid=0, gid=0, mtime=state.clock + 10)


def _docker(state: NodeState, closed: Closed) -> NodeState:
    """dockerd takes over what a reload takes over and forgets nothing; a restart begins anew."""
    args = closed.args(DockerInstall)
    if args.forget and not args.later:
        state = _without(state, OURS, NEXT, f"{KEPT}{CONFIG}.")
    if not isinstance(state.docker, Docker):
        return state
    document = json_document.read(args.content or (state.files[CONFIG].data if CONFIG in state.files else b""))
    runtimes = {name: entry.get("path", "") for name, entry in (document.get("runtimes") or {}).items()}
    if "runtimes" not in document and not args.restart:
        runtimes = state.docker.runtimes
    flags = json.dumps(state.dockerd_command)
    update: dict[str, Any] = {"runtimes": {"runc": "runc", **runtimes}}
    if "--default-runtime" not in flags:
        update["default_runtime"] = document.get(
            "default-runtime", "runc" if args.restart else state.docker.default_runtime
        )
    if "--live-restore" not in flags:
        update["live_restore"] = document.get("live-restore", False if args.restart else state.docker.live_restore)
    if "--add-runtime" in flags:
        update["runtimes"] = state.docker.runtimes
    if args.runtime_paths:  # the step waits until the engine names one of them
        assert update["runtimes"].get("nvidia") in args.runtime_paths
    if args.restart:
        update["cdi_spec_dirs"] = ("/etc/cdi",) if (document.get("features") or {}).get("cdi") else ()
    files = dict(state.files)
    if CONFIG in files:
        files[LOADED] = _file(files[CONFIG].sha256, state)
    docker = state.docker.model_copy(update=update)
    return state.model_copy(update={"docker": docker, "files": files})


def _containerd(state: NodeState, closed: Closed) -> NodeState:
    """The dump is of what lies there now; a restart takes it over."""
    args = closed.args(ContainerdInstall)
    ours = {f"{KEPT}{path}.ours": _file(f"{state.files[path].sha256}\n", state) for path in closed.writes}
    state = state.model_copy(update={"files": state.files | ours})
    if args.forget:
        state = _without(state, *(f"{KEPT}{path}." for path in (*closed.writes, *closed.removes)))
    unloaded = () if args.restart else (*state.unloaded, *closed.writes)
    dump, running = _dumped(state, {}), state.cri
    if args.restart and running is not None:
        running = Cri.model_validate(containerdmodel.cri(dump))
    return state.model_copy(update={"containerd": dump, "unloaded": unloaded, "cri": running})


def _crio(state: NodeState, closed: Closed) -> NodeState:
    """A reload reads all files; systemd knows when that was."""
    if not closed.args(CrioInstall).reload or isinstance(state.units, Unknown):
        return state
    unit = state.units[CRIO].model_copy(update={"changed_us": (state.uptime + 20) * 10**6})
    files = criofiles.effective(state)
    tables = {name: {"runtime_type": "oci", **table} for name, table in files.runtimes.items()}
    running = state.crio and Cri(default_runtime=files.default or "crun", runtimes=tables)
    return state.model_copy(update={"units": {**state.units, CRIO: unit}, "crio": running})


def _started(state: NodeState, closed: Closed) -> NodeState:
    """systemd starts and enables the timer, or stops it; a stopped unit may stay in memory as it was read."""
    units, timer = _units(state), monitoring.TIMER
    if not any(isinstance(step.args, monitoring.InstallExporter) for step in closed.steps):
        stopped = {timer: units[timer].model_copy(update={"active": "inactive"})} if timer in units else {}
        return _without(state.model_copy(update={"units": units | stopped}), monitoring.LINK)
    units[timer] = Unit(load="loaded", active="active", enabled="enabled")
    if closed.args(monitoring.InstallExporter).reload:
        units = {name: unit.model_copy(update={"need_daemon_reload": False}) for name, unit in units.items()}
    return state.model_copy(update={"units": units, "files": {**state.files, monitoring.LINK: _file("", state)}})


def _ldconfig(state: NodeState, closed: Closed) -> NodeState:
    """ldconfig lists the directories of the configuration in their order, each real place once."""
    assert isinstance(state.linker, Linker)
    cache: dict[str, tuple[str, ...]] = {}
    places = []
    for path, file in state.glob("/etc/ld.so.conf").items():
        if path != "/etc/ld.so.conf":
            places += [line.strip() for line in file.text.splitlines() if line.startswith("/")]
    seen = set()
    relinked: dict[str, str] = {}
    for place in places:
        libs = {path: real for path, real in state.linker.libs.items() if path.rpartition("/")[0] == place}
        real_places = {real.rpartition("/")[0] for real in libs.values()}
        relinked |= _soname_links(place, libs)
        if real_places & seen:
            continue
        seen |= real_places
        for base in ("libcuda.so", "libnvidia-ml.so"):
            if any(f"/{base}." in path for path in libs):
                cache[f"{base}.1"] = (*cache.get(f"{base}.1", ()), f"{place}/{base}.1")
    update = {"cache": cache, "libs": {**state.linker.libs, **relinked}}
    return state.model_copy(update={"linker": state.linker.model_copy(update=update)})


def _soname_links(place: str, libs: dict[str, str]) -> dict[str, str]:
    """ldconfig's links lead to the highest version beside them."""
    found: dict[str, str] = {}
    for base in ("libcuda.so", "libnvidia-ml.so"):
        versions = [v for path in libs if path.startswith(f"{place}/{base}.") and (v := library_version(path))]
        if versions:
            newest = max(versions, key=lambda v: [int(part) for part in v.split(".")])
            found[f"{place}/{base}.1"] = f"{place}/{base}.{newest}"
    return found


def _enabled(state: NodeState, closed: Closed) -> NodeState:
    """systemctl makes the link for every boot, or takes it away."""
    files = {path: file for path, file in state.files.items() if path != LINK}
    if closed.args(InstallRun).run:
        files[LINK] = _file("", state)
        files[RESULT] = _file(json.dumps({"boot_id": state.boot_id, "driver": state.driver.loaded}), state)
    return state.model_copy(update={"files": files})


def _nodes(state: NodeState, closed: Closed) -> NodeState:
    """The driver's tools make the nodes that are asked for, and links for all; systemd starts what is enabled."""
    args = closed.args(MakeNodes)
    nodes = tuple(dict.fromkeys((*state.driver.nodes, *args.nodes)))
    update: dict[str, Any] = {"misnumbered": ()}
    if args.links:
        update["unlinked"] = ()
    units = _units(state)
    if args.persistenced:
        update |= {"persistenced_old": False, "persistenced_no_socket": False}
        units[args.persistenced] = units[args.persistenced].model_copy(update={"active": "active"})
    driver = state.driver.model_copy(update={"nodes": nodes})
    leftovers = state.leftovers.model_copy(update=update)
    return state.model_copy(update={"driver": driver, "leftovers": leftovers, "units": units})


def _nvidia_ctk(state: NodeState, closed: Closed) -> NodeState:
    """nvidia-ctk makes a spec of the driver that is loaded and the GPUs that nvidia-smi names; old ones go aside."""
    args = closed.args(CdiGenerate)
    files = dict(state.files)
    if args.make:
        version = state.driver.proc_version or state.driver.module_version
        smi = state.driver.smi if isinstance(state.driver.smi, str) else ""
        names = [name for n, uuid in enumerate(re.findall(r"<uuid>(GPU-.*?)<", smi)) for name in (str(n), uuid)]
        names += re.findall(r"<index>(\d+)</index>", smi) and ["0:0", "0:1", "MIG-1"]
        spec = {
            "cdiVersion": "0.5.0",
            "kind": "nvidia.com/gpu",
            "devices": [{"name": name, "containerEdits": {}} for name in [*names, "all"]],
            "containerEdits": {"mounts": [{"hostPath": f"/usr/lib/libcuda.so.{version}"}]},
        }
        files[args.target] = _file(json.dumps(spec), state)
    for word in args.shadows:
        sha, _, path = word.partition(":")
        assert files.pop(path).sha256 == sha
    return state.model_copy(update={"files": files, "cdi_missing": ()})


def _apt(state: NodeState, closed: Closed) -> NodeState:
    """apt-get installs what is pinned; apt-mark holds or unholds."""
    args = closed.args(ToolkitInstall)
    assert {*args.hold, *args.unhold, *args.purge} == set(PACKAGES)
    packages = dict(state.installed)
    for name, _, version in (pin.partition("=") for pin in args.pins):
        packages[name] = Package(version=version, arch="amd64")
    for name in args.old:
        assert args.pins, "they go in the transaction that installs the new ones"
        packages.pop(name)
    for name in PACKAGES:
        if name in args.purge:
            packages.pop(name, None)
        elif name in packages:
            packages[name] = packages[name].model_copy(update={"held": name in args.hold})
    return state.model_copy(update={"packages": packages})


def _holds(state: NodeState, closed: Closed) -> NodeState:
    """apt-mark holds and lets go."""
    args = closed.args(Hold)
    held = dict.fromkeys(args.hold, True) | dict.fromkeys(args.unhold, False)
    packages = {name: p.model_copy(update={"held": held.get(name, p.held)}) for name, p in state.installed.items()}
    return state.model_copy(update={"packages": packages})


def _docker_io(state: NodeState, closed: Closed) -> NodeState:
    """apt-get installs docker.io, whose postinst starts it."""
    assert closed.args(EngineInstall)
    packages = {**state.installed, "docker.io": Package(version="26.1.5+dfsg1-9", arch="amd64")}
    tools = {**state.commands, "dockerd": Tool(path="/usr/sbin/dockerd")}
    return state.model_copy(update={"packages": packages, "tools": tools})


def _dcgm(state: NodeState, closed: Closed) -> NodeState:
    """apt-get installs DCGM; systemctl enables and starts its service."""
    package, packages = closed.args(DcgmInstall).package, dict(state.installed)
    if package:
        packages[package] = Package(version="1:4.5.2-1", arch="amd64")
    started = Unit(load="loaded", active="active", enabled="enabled")
    return state.model_copy(update={"packages": packages, "units": {**_units(state), DCGM: started}})


def _limits(state: NodeState, closed: Closed) -> NodeState:
    """A daemon-reload loads the drop-ins; prlimit tells the process that runs."""
    args = closed.args(SetLimits)
    units = _units(state)
    for name, unit in units.items():
        update = {"process_memlock": "unlimited"} if name in args.services else {}
        if args.reload and drop_in(name.removesuffix(".service")) in state.files:
            update["limit_memlock"] = "infinity"
        units[name] = unit.model_copy(update=update)
    return state.model_copy(update={"units": units})
