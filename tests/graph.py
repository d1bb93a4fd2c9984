"""``python -m tests.graph [CHECKOUT]``: which folder of the package imports which, by the real imports.

One line for a folder: its name, its lines of code, and what it imports. Folders that import each other come first, as a
knot. A component's spec.py and state.py are the folder ``facts``, because the model is composed of them.
"""

import ast
import sys
from collections.abc import Container, Mapping, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules(root: Path) -> dict[str, Path]:
    """The modules of a checkout's package, by dotted name; the package itself has the empty one."""
    package = root / "deploys" / "gpuready"
    parts = {path: path.relative_to(package).with_suffix("").parts for path in sorted(package.rglob("*.py"))}
    return {".".join(names[:-1] if names[-1] == "__init__" else names): path for path, names in parts.items()}


def folder(name: str) -> str:
    """The folder of a module, which is its layer."""
    first, *rest = name.split(".")
    if first == "components" and rest[-1:] in (["spec"], ["state"]):
        return "facts"
    return {"": "base", "__main__": "verbs"}.get(name, first)


def imported(tree: ast.Module, known: Container[str], top: bool = False) -> frozenset[str]:
    """What a module imports, anywhere or (``top``) when it is loaded itself: full names, a module's where it is one.

    ``known``: the modules of the package.
    """
    found: set[str] = set()
    for node in tree.body if top else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full.removeprefix("gpuready.") in known else str(node.module))
    return frozenset(found)


def imports(root: Path) -> dict[str, set[str]]:
    """Folder -> the other folders that its modules import, wherever in the module."""
    known = modules(root)
    found: dict[str, set[str]] = {folder(name): set() for name in known}
    for name, path in known.items():
        names = imported(ast.parse(path.read_text("utf-8")), known)
        found[folder(name)] |= {
            folder(each.removeprefix("gpuready.")) for each in names if each.startswith("gpuready.")
        }
    return {name: others - {name} for name, others in found.items()}


def knots(graph: Mapping[str, Set[str]]) -> list[set[str]]:
    """The sets of folders that import each other, directly or by way of others."""
    reach = {name: _reached(graph, name) for name in graph}
    sets = {frozenset(each for each in graph if each in reach[name] and name in reach[each]) for name in graph}
    return [set(each) for each in sets if len(each) > 1]


def _reached(graph: Mapping[str, Set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def main() -> None:
    """Print the graph of a checkout; of this one by default."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    graph = imports(root)
    lines: dict[str, int] = dict.fromkeys(graph, 0)
    for name, path in modules(root).items():
        lines[folder(name)] += len(path.read_text("utf-8").splitlines())
    for knot in knots(graph):
        print("knot:", ", ".join(sorted(knot)))
    for name in sorted(graph, key=lambda name: (len(_reached(graph, name)), name)):
        print(f"{name:12} {lines[name]:6}  {' '.join(sorted(graph[name])) or '-'}")


if __name__ == "__main__":
    main()
