"""What may import what: one list, which is the architecture.

Each layer stands on those before it, and imports nothing after it. A component is a folder, and knows no other one, but
what it reads of a node and what can be asked of it (state.py, spec.py) are parts of the model. Who runs components and
checks is handed them: ``node.py`` and ``catalogue.py`` are read by runs, the doors and the command line alone.
"""

import ast
import dataclasses
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gpuready.cli.parts import part_of, parts
from gpuready.result.model import NO_PART, Host, Summary
from tests import graph

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "deploys" / "gpuready"
HEAVY = ("pyinfra", "pyinfra_cli", "gevent", "paramiko")
#: From the ground up. Facts: a component's spec.py and state.py.
LAYERS = (
    "base", "binaries", "facts", "cuda", "model", "contract", "inventory", "network", "gpu", "components", "node",
    "compat", "fabric", "catalogue", "result", "messages", "operations", "run", "pyinfra", "cli", "verbs",
    "api", "pytest",
)  # fmt: skip


MODULES = graph.modules(ROOT)


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@functools.cache
def imported(name: str, top: bool = False) -> frozenset[str]:
    return graph.imported(tree_of(name), MODULES, top)


def ours(name: str, top: bool = False) -> set[str]:
    return {each.removeprefix("gpuready.") for each in imported(name, top) if each.startswith("gpuready.")}


def wrong_imports(allowed: Callable[[str, str], bool]) -> list[str]:
    pairs = ((name, each) for name in MODULES for each in sorted(ours(name)))
    return [f"{name} imports {each}" for name, each in pairs if not allowed(name, each)]


def test_every_import_is_of_a_layer_below() -> None:
    assert {graph.folder(name) for name in MODULES} == set(LAYERS)
    assert not wrong_imports(lambda name, each: LAYERS.index(graph.folder(each)) <= LAYERS.index(graph.folder(name)))


def test_the_pages_show_the_same_list() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("from the ground up")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([^`]+)`", table, re.M)
    names = {"facts": "components/NAME/spec.py", "components": "components/NAME", "verbs": "verbs/NAME"}
    assert [row.removesuffix("/").removesuffix(".py") for row in rows] == [
        names.get(each, each).removesuffix(".py") for each in LAYERS
    ]
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    listed = re.findall(r"`([^`]+)`", page.partition("From the ground up")[2].partition("[CONTRIBUTING.md]")[0])
    assert listed == " ".join(LAYERS).replace("facts", "spec.py state.py").split()


def test_no_folders_import_each_other() -> None:
    """``python -m tests.graph`` shows who imports whom."""
    assert graph.knots(graph.imports(ROOT)) == []
    assert graph.knots({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]


def test_a_component_imports_no_other() -> None:
    def allowed(name: str, each: str) -> bool:
        inside = name.startswith("components.") and each.startswith("components.")
        return not inside or graph.folder(each) == "facts" or name.split(".")[1] == each.split(".")[1]

    assert not wrong_imports(allowed)


def test_a_verb_imports_no_other() -> None:
    """What two of them need lies in a layer below: ``fabric``, ``compat``, ``run`` or ``cli``."""

    def allowed(name: str, each: str) -> bool:
        inside = name.startswith("verbs.") and each.startswith("verbs.")
        return not inside or name.split(".")[1] == each.split(".")[1]

    assert not wrong_imports(allowed)


def test_imports_make_no_circle() -> None:
    """So any module can be imported first. An import runs the packages around its target, too."""
    needs = {}
    for name in MODULES:
        wanted = ours(name, top=True)
        around = {each[:dot] for each in wanted for dot in range(len(each)) if each[dot] == "."} & set(MODULES)
        needs[name] = wanted | {package for package in around if not f"{name}.".startswith(f"{package}.")}
    order = list(graphlib.TopologicalSorter(needs).static_order())  # CycleError names the circle
    assert order.index("base.errors") < order.index("run.fleet")


def test_no_import_hides_in_a_function_to_break_a_circle() -> None:
    """Late imports save time at the start; those that the layers forbid at the top are forbidden there, too."""
    needs = {name: ours(name) for name in MODULES if graph.folder(name) not in ("node", "cli")}
    list(graphlib.TopologicalSorter(needs).static_order())


def test_only_runs_and_operations_touch_pyinfra() -> None:
    users = {graph.folder(name) for name in MODULES if {each.split(".")[0] for each in imported(name)} & set(HEAVY)}
    assert users <= {"run", "operations", "pyinfra", "cli", "verbs"}, users


def test_what_answers_at_once_loads_no_pyinfra() -> None:
    """0.45 s of every call of ``explain``, ``compat`` and of ``plan --state``."""
    pure = [name for name in MODULES if graph.folder(name) not in ("run", "operations", "pyinfra", "cli", "verbs")]
    pure += ["run.evaluate", "cli.offline", "cli.states", "verbs.explain.command", "verbs.report.command"]
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


def test_the_renderers_name_no_verb() -> None:
    """They ask the part of the run. verbs.py is the list; model.py has levels, exitcode.py codes."""
    keys = {key for part in parts() for key in (*part.of_host, *part.of_run)} | {part.verb for part in parts()}
    of_all = {"apply", "verify", "inventory"}  # main verbs, and a kind of error
    for name in MODULES:
        if name.startswith("result.") and name not in ("result.model", "result.exitcode", "result.verbs"):
            named = {each.value for each in ast.walk(tree_of(name)) if isinstance(each, ast.Constant)} & (keys - of_all)
            assert not named, (name, named)


def test_each_part_is_found_by_its_verb() -> None:
    folders = {name.split(".")[1] for name in MODULES if re.fullmatch(r"verbs\.\w+\.part", name)}
    assert {part.verb.replace("-", "_") for part in parts()} == folders
    assert part_of("rdma list") is part_of("rdma") is not NO_PART is part_of("plan") is part_of("")
    for fields, keys in (
        (dataclasses.fields(Host), [key for part in parts() for key in part.of_host]),
        (dataclasses.fields(Summary), [key for part in parts() for key in part.of_run]),
    ):
        names = [*keys, *(field.name for field in fields)]
        assert len(names) == len(set(names)), "a key of the document is used twice"
