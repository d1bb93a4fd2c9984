"""What may import what: one table, which is the architecture. The first word that fits a file is its layer.

A component is a folder, and knows no other component. What several of them share lies in ``core`` (the contract),
``spec`` and ``state``; knowledge of the field lies in ``cuda``, ``network`` and ``gpu``. Who runs components and checks
is handed them: ``node.py`` and ``catalogue.py`` are read by the engine, the doors and the command line alone.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "deploys" / "gpuready"
HEAVY = ("pyinfra", "pyinfra_cli", "gevent", "paramiko")
#: Layer -> what it may import beside itself. ``PART.spec``: only the files spec.py of components; ``PART.state`` alike.
MAY_IMPORT = {
    "core": "spec state",
    "PART.spec": "core",
    "PART.state": "core",
    "gpu.facts": "core",
    "spec": "core PART.spec",
    "state": "core PART.spec PART.state gpu.facts",
    "inventory": "core spec",
    "cuda": "core state",
    "network": "core state spec",
    "gpu": "core spec state gpu.facts cuda",
    "components": "core spec state cuda network PART.spec PART.state",
    "tools": "core spec state inventory cuda network gpu gpu.facts components PART.spec PART.state",
    "binaries": "",
    "report": "core spec state inventory cuda network gpu gpu.facts tools",
    "operations": "core spec state inventory cuda network gpu gpu.facts components PART.spec tools report binaries",
    "catalogue": "core spec state components gpu tools",
    "node": "core components operations",
    "engine": "core spec state inventory cuda network gpu components tools report operations node catalogue",
    "cli": "core spec PART.spec state inventory cuda network gpu components tools report operations node catalogue "
    "engine",
}
#: (importing module, imported module): why it may, until it need not.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("components.cdi.checks", "components.docker.keys"): "the keys' names belong to Docker's facts",
    ("components.cdi.component", "components.ldso.component"): "library_version belongs to the linker's facts",
    ("components.cdi.component", "components.toolkit.component"): "asks whether the toolkit goes on the way back",
    ("components.containerd.checks", "components.docker.checks"): "both judge a smoke container",
    ("components.containerd.state", "state.model"): "the types of facts belong to core",
    ("components.crio.state", "state.model"): "the types of facts belong to core",
    ("components.devices.component", "components.cdi.component"): "other_library belongs to the linker's facts",
    ("components.docker.component", "components.docker_package.component"): "asks whether an engine comes in this run",
    ("components.docker.component", "components.toolkit.component"): "gpu_containers belongs to core",
    ("components.docker.state", "state.model"): "the types of facts belong to core",
    ("components.docker_package.component", "components.toolkit.component"): "gpu_containers belongs to core",
    ("components.driver.checks", "components.ldso.component"): "library_version belongs to the linker's facts",
    ("components.driver.component", "components.toolkit.component"): "gpu_containers belongs to core",
    ("components.memlock.checks", "components.docker.daemon"): "dockerd's flags belong to Docker's facts",
    ("components.memlock.checks", "components.docker.keys"): "dockerd's flags belong to Docker's facts",
    ("components.memlock.component", "components.toolkit.component"): "gpu_containers belongs to core",
    ("components.monitoring.component", "components.toolkit.component"): "gpu_containers belongs to core",
    ("components.rdma.component", "components.toolkit.component"): "gpu_containers belongs to core",
    ("components.reconverge.component", "components.cdi.component"): "the unit's name belongs to the CDI facts",
    ("components.wheels.checks", "gpu.torch_smoke"): "both judge what PyTorch answered",
    ("core.config_checks", "node"): "the tuple is to be handed in",
    ("gpu.facts.smi", "state.model"): "the types of facts belong to core",
    ("gpu.leftovers", "components.devices.component"): "persistence belongs to the facts",
    ("gpu.libcuda", "components.ldso.component"): "library_version belongs to the linker's facts",
    ("gpu.visible", "components.ldso.component"): "library_version belongs to the linker's facts",
    ("network.discovery", "components.nccl.spec"): "the choice is to be handed what the spec asks for",
    ("operations.component", "evaluate"): "the tuple is to be handed in",
    ("operations.component", "node"): "the tuple is to be handed in",
    ("operations.door", "catalogue"): "a door; it belongs beside the engine",
    ("operations.environments", "components.wheels.state"): "belongs to the component's facts",
    ("operations.judge", "catalogue"): "the catalogue is to be handed in",
    ("report.nccl", "components.nccl.settings"): "the answer is to carry what is printed",
    ("report.nccl", "components.nccl.torch"): "the answer is to carry what is printed",
    ("spec.build", "inventory.connection"): "refuse_templates belongs beside source_values",
    ("spec.images", "cuda.tables"): "the tables import nothing but their versions",
    ("spec.images", "cuda.versions"): "the tables import nothing but their versions",
    ("state.probe", "components.ldso.component"): "the directories belong to the linker's facts",
    ("state.probe", "components.rdma.conf"): "the paths belong to the component's facts",
}


def name_of(path: Path) -> str:
    """The module's dotted name below gpuready."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@functools.cache
def imported(name: str, top: bool = False) -> frozenset[str]:
    """What a module imports, anywhere or (``top``) when it is loaded itself: full names, a module's where it is one."""
    found: set[str] = set()
    for node in tree_of(name).body if top else ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full.removeprefix("gpuready.") in MODULES else str(node.module))
    return frozenset(found)


def ours(name: str, top: bool = False) -> set[str]:
    return {each.removeprefix("gpuready.") for each in imported(name, top) if each.startswith("gpuready.")}


def layer(name: str) -> str:
    parts = name.split(".")
    if parts[0] == "components" and parts[-1] in ("spec", "state"):
        return f"PART.{parts[-1]}"
    if parts[:2] == ["gpu", "facts"]:
        return "gpu.facts"
    return "engine" if parts[0] in ("engine", "evaluate", "fabric_engine", "attach_engine") else parts[0]


def _none(wrong: list[tuple[str, str]]) -> None:
    found = [f"{name} imports {each}" for name, each in wrong if (name, each) not in EXCEPTIONS]
    assert not found, "\n".join(found)


def test_every_import_is_of_a_layer_below() -> None:
    wrong = []
    for name in MODULES:
        allowed = {layer(name), *MAY_IMPORT.get(layer(name), "").split()}
        wrong += [
            (name, each) for each in sorted(ours(name)) if layer(each) not in allowed and (name, each) not in EXCEPTIONS
        ]
    _none(wrong)


def test_a_component_imports_no_other() -> None:
    wrong = []
    for name in MODULES:
        if name.startswith("components."):
            folder = name.split(".")[1]
            others = {each for each in ours(name) if each.startswith("components.") and each.split(".")[1] != folder}
            wrong += [(name, each) for each in sorted(others)]
    _none(wrong)


def test_no_exception_outlives_its_reason() -> None:
    assert not [pair for pair in EXCEPTIONS if pair[1] not in ours(pair[0])]


def test_imports_make_no_circle() -> None:
    """So any module can be imported first. An import runs the packages around its target, too."""
    needs = {}
    for name in MODULES:
        wanted = ours(name, top=True)
        around = {each[:dot] for each in wanted for dot in range(len(each)) if each[dot] == "."} & set(MODULES)
        needs[name] = wanted | {package for package in around if not f"{name}.".startswith(f"{package}.")}
    order = list(graphlib.TopologicalSorter(needs).static_order())  # CycleError names the circle
    assert order.index("core.errors") < order.index("engine")


def test_no_import_hides_in_a_function_to_break_a_circle() -> None:
    """Late imports save time at the start; those that the layers forbid at the top are forbidden there, too."""
    graph = {name: ours(name) for name in MODULES if layer(name) not in ("node", "cli")}
    list(graphlib.TopologicalSorter(graph).static_order())


def test_only_the_engine_and_the_operations_touch_pyinfra() -> None:
    users = {layer(name) for name in MODULES if {each.split(".")[0] for each in imported(name)} & set(HEAVY)}
    assert users <= {"engine", "operations", "cli", "inventory"}, users


def test_what_answers_at_once_loads_no_engine() -> None:
    """0.45 s of every call of ``explain``, ``compat`` and of ``plan --state``."""
    pure = [name for name in MODULES if layer(name) not in ("engine", "operations", "cli")] + ["evaluate"]
    code = f"import importlib, sys\nfor name in {pure!r}: importlib.import_module(f'gpuready.{{name}}'.rstrip('.'))\n"
    code += f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", "")


def test_nobody_imports_the_source_root_or_the_tests() -> None:
    assert not [name for name in MODULES if {each.split(".")[0] for each in imported(name)} & {"deploys", "tests"}]
    assert not (PACKAGE.parent / "__init__.py").exists()


def test_a_folder_says_nothing_by_itself() -> None:
    """Its ``__init__.py`` has a docstring at most, so what a module needs is what it names."""
    code = {name for name, path in MODULES.items() if path.name == "__init__.py" and tree_of(name).body[1:]}
    assert code <= {"", "binaries"}, code


def test_every_module_says_what_it_is_for() -> None:
    assert not [name for name in MODULES if tree_of(name).body and not ast.get_docstring(tree_of(name))]
