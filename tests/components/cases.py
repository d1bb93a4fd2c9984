"""From a case file to a spec and a state. The words that a case may use are in README.md."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpuready.components.containerd.files import UNIT
from gpuready.components.monitoring import component as monitoring
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, Driver, File, Linker, NodeState, Package, Tool, Unit
from tests.components.containerd import containerdmodel
from tests.components.containerd.containerdmodel import over
from tests.network import gid_tables

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
KEYS = DATA / "openpgp"
WHEELS = DATA / "wheels"
DAEMON_JSON = "/etc/docker/daemon.json"
WORDS = {"spec", "state", "like", "diff", "disruption", "affected", "notes", "error", "not_applies"}
USUAL = ("disruption", "affected", "notes")  # which the head of a file may say for all its cases with a difference
WORDS |= {"steps", "writes", "removes", "stays_open", "staged", "fetches"}


@dataclass(frozen=True)
class Case:
    """One case: ``component`` is the folder, the rest is as it stands in the file."""

    component: str
    file: str
    title: str
    data: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.component}/{self.file}: {self.title}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A case that stands twice in a file would be lost without a word."""


def _mapping(loader: yaml.constructor.SafeConstructor, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [key.value for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise ValueError(f"{node.start_mark}: twice: {', '.join(twice)}")
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(text: str) -> dict[str, Any]:
    """One YAML text."""
    found: dict[str, Any] = yaml.load(text, _Loader) or {}
    return found


def cases() -> list[Case]:
    """All cases of all components, in file order."""
    found = []
    for folder in sorted(p for p in HERE.iterdir() if p.is_dir() and not p.name.startswith("__")):
        shared = folder / "common.yaml"
        head = shared.read_text(encoding="utf-8") if shared.is_file() else ""
        for path in sorted(folder.glob("*.yaml")):
            if path.name != "common.yaml":
                titles = read(f"{head}\n{path.read_text(encoding='utf-8')}")  # one text, so that its anchors are known
                common = {word: titles.pop(word, {}) for word in ("spec", "state")}
                usual = {word: titles.pop(word) for word in USUAL if word in titles}
                titles.pop("shared", None)
                for title, data in titles.items():
                    base = common
                    if "like" in data:
                        (other,) = (case for case in found if case.title == data["like"] and case.file == path.stem)
                        base = {word: other.data[word] for word in ("spec", "state")}
                    if data.get("diff") and "error" not in data:
                        base = {**base, **usual}
                    found.append(Case(folder.name, path.stem, title, over(base, data)))
    return found


def node_of(component: str, spec: dict[str, Any], state: dict[str, Any]) -> tuple[NodeSpec, NodeState]:
    """A spec and a state in the words of a case, for a test in Python."""
    case = Case(component, "here", "", {"spec": spec, "state": state})
    return spec_of(case), state_of(case)


def spec_of(case: Case) -> NodeSpec:
    """The case's spec, validated as an inventory's would be."""
    given = case.data.get("spec", {})
    if "torch_wheels" in given:
        given = {
            **given,
            "torch_wheels": [
                one if "://" in one["wheel"] else {**one, "wheel": f"{WHEELS}/{one['wheel']}"}
                for one in given["torch_wheels"]
            ],
        }
    return NodeSpec.model_validate(given)


def state_of(case: Case) -> NodeState:
    """The case's state, shortcuts spelled out."""
    given = dict(case.data.get("state", {}))
    files = {path: _file(value) for path, value in (given.pop("files", None) or {}).items() if value is not None}
    if "loaded" in given:
        document = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}, **given.pop("loaded")}
        given.setdefault("daemon_json", json.dumps(document))
        engine = {
            "runtimes": {"nvidia": "nvidia-container-runtime"},
            "live_restore": document.get("live-restore", False),
        }
        engine["default_runtime"] = document.get("default-runtime", "runc")
        given["docker"] = over(engine, given.get("docker") or {})
    if "daemon_json" in given:
        files[DAEMON_JSON] = _file(given.pop("daemon_json"))
    if "exporter" in given:
        said = {"monitoring": given.pop("exporter")}
        own = {path: _file(text) for path, text in monitoring.files(NodeSpec.model_validate(said)).items()}
        files = own | {monitoring.LINK: _file("")} | files
    fields: dict[str, Any] = {"files": files}
    fields["docker"] = _engine(given.pop("docker", None))
    if isinstance(given.get("containerd"), dict) and "version" in given["containerd"]:
        _containerd(given, files)
    if "dockerd_flags" in given:
        fields["dockerd_command"] = ("/usr/bin/dockerd", *given.pop("dockerd_flags"))
    fields["packages"] = _unless_unknown(given.pop("packages", {}), _package)
    fields["tools"] = _unless_unknown(given.pop("tools", {}), lambda path: Tool(path=path))
    fields["units"] = _unless_unknown(given.pop("units", {}), _unit)
    if "unit_flags" in given:
        docker = fields["units"].get("docker.service", _unit({}))
        command = ("/usr/bin/dockerd", *given.pop("unit_flags"))
        fields["units"]["docker.service"] = docker.model_copy(update={"exec_start": command})
    driver = dict(given.pop("driver", {}))
    if "recorded" in (driver.get("smi") or ()):
        driver["smi"] = _file(driver["smi"]).text
    fields["driver"] = Driver(module_version=given.pop("module", ""), **driver)
    for name, port in given.pop("ports", {}).items():
        given["rdma"] = given.get("rdma", {}) | gid_tables.sysfs(*name.split(":"), **port)
    if isinstance(given.get("linker"), dict):
        fields["linker"] = given.pop("linker")
    else:
        cached: dict[str, tuple[str, ...]] = {}
        for path in given.pop("cached", []):
            cached[Path(path).name] = (*cached.get(Path(path).name, ()), path)
        fields["linker"] = Linker(cache=cached, libs=given.pop("libs", None) or {})
    return NodeState.model_validate(fields | given)


def _file(value: Any) -> File:
    given = value if isinstance(value, dict) else {"text": value}
    given = {"mode": 0o644, "uid": 0, "gid": 0, "mtime": 1_000, **given}
    if "recorded" in given:
        given["text"] = (DATA / given.pop("recorded")).read_text("utf-8")
    if "latin1" in given:
        given["text"] = given.pop("latin1").encode("latin-1").decode("utf-8", "surrogateescape")
    if "key" in given:
        given["text"] = (KEYS / given.pop("key")).read_bytes().decode("utf-8", "surrogateescape")
    given["text"] = replaced(given["text"], given.pop("replace", {}))
    return File(**given)


def replaced(text: str, changes: dict[str, str]) -> str:
    """A text with other words in it, each of which is there before."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def _engine(value: Any) -> Any:
    if value is None or value == "stopped":
        return None
    if "unknown" in value:
        return value
    plain = {"version": "26.1.5", "runtimes": {"runc": "runc"}, "default_runtime": "runc", "cgroup_driver": "systemd"}
    return Docker.model_validate(over(plain, value))


def _containerd(given: dict[str, Any], files: dict[str, File]) -> None:
    """``{version, config, unit...}``: the file, the dump of that version with all its files, the unit, the command."""
    said = given.pop("containerd")
    if said.get("config") is not None:
        files[containerdmodel.CONFIG] = _file(said["config"])
    own = {path: file.text for path, file in files.items() if path.startswith(("/etc/containerd/", "/srv/"))}
    given["containerd"] = said["dump"] if "dump" in said else containerdmodel.dump(said["version"], own)
    given["tools"] = {"containerd": said.get("command", "/usr/bin/containerd"), **given.get("tools", {})}
    unit = {"exec_start": ["/usr/bin/containerd"], "kill_mode": "process", **said.get("unit", {})}
    asked = unit.get("active") in (None, "active") and "unloaded" not in given and "dump" not in said
    if "unknown" in said.get("cri", {}):
        given["cri"] = said["cri"]
    elif "cri" in said or asked:
        given["cri"] = over(containerdmodel.cri(given["containerd"]), said.get("cri", {}))
    given["units"] = {UNIT: unit, **given.get("units", {})}


def _package(value: Any) -> Package:
    return Package.model_validate({"arch": "amd64", **(value if isinstance(value, dict) else {"version": value})})


def _unit(value: dict[str, Any]) -> Unit:
    return Unit.model_validate({"load": "loaded", "active": "active", **value})


def _unless_unknown(given: dict[str, Any], make: Any) -> Any:
    return given if "unknown" in given else {name: make(value) for name, value in given.items() if value is not None}
