"""What may import what: the pure parts answer without pyinfra (0.45 s)."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "deploys" / "gpuready"
PURE = ("spec", "state", "components", "attach", "checks", "compat", "containers", "fabric", "report")
HEAVY = ("pyinfra", "pyinfra_cli", "gevent", "paramiko")
FILES = sorted(PACKAGE.rglob("*.py"))


def module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PURE_MODULES = [module(p) for p in FILES if p.relative_to(PACKAGE).parts[0] in PURE]
PURE_MODULES += ["gpuready", "gpuready.errors", "gpuready.node", "gpuready.resources", "gpuready.judgement"]
PURE_MODULES += ["gpuready.consent", "gpuready.rollout", "gpuready.documents", "gpuready.files"]


@pytest.mark.parametrize("name", PURE_MODULES)
def test_pure_modules_import_no_engine(name: str) -> None:
    path = PACKAGE.parent.joinpath(*name.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    for node in tree.body:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {n.split(".")[0] for n in names} & set(HEAVY)
        assert not [n for n in names if n.startswith(("gpuready.operations", "gpuready.engine", "gpuready.cli"))]


def test_importing_all_pure_modules_loads_no_engine() -> None:
    code = f"import importlib, sys\nfor name in {PURE_MODULES!r}: importlib.import_module(name)\n"
    code += f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", "")


def test_imports_make_no_circle() -> None:
    """So any module can be imported first. An import runs the packages around its target, too."""
    modules = {module(path): path for path in FILES}
    needs = {}
    for name, path in modules.items():
        wanted = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= {each if each in modules else str(node.module) for each in full}
        around = {each[:dot] for each in wanted for dot in range(len(each)) if each[dot] == "."}
        needs[name] = wanted | {package for package in around if not f"{name}.".startswith(f"{package}.")}
    order = list(graphlib.TopologicalSorter(needs).static_order())  # CycleError names the circle
    assert order.index("gpuready.errors") < order.index("gpuready.engine") < order.index("gpuready.cli.online")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=module)
def test_nobody_imports_the_source_root_or_the_tests(path: Path) -> None:
    assert not [name for name in imported(path) if name.split(".")[0] in ("deploys", "tests")]


def test_the_source_root_is_no_package() -> None:
    assert not (PACKAGE.parent / "__init__.py").exists()


def test_only_the_engine_and_the_operations_touch_pyinfra() -> None:
    users = {p.relative_to(PACKAGE).parts[0] for p in FILES if {n.split(".")[0] for n in imported(p)} & set(HEAVY)}
    assert users <= {"engine.py", "pairwise.py", "operations", "cli", "spec"}, users


def test_components_call_no_operation_and_checks_know_no_component_but_its_facts() -> None:
    for path in FILES:
        layer = path.relative_to(PACKAGE).parts[0]
        names = imported(path)
        below = {n.split(".")[1] for n in names if n.startswith("gpuready.") and n.count(".")}
        if layer == "state":
            assert not below & {"checks", "report", "operations", "engine", "cli"}, path
        if layer == "components":
            assert not below & {"checks", "report", "operations", "engine", "cli", "node"}, path
        if layer == "checks":
            assert not below & {"report", "operations", "engine", "cli"}, path


@pytest.mark.parametrize("path", [p for p in FILES if p.read_text(encoding="utf-8").strip()], ids=module)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
