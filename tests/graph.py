"""``python -m tests.graph [CHECKOUT]``: which folder of the package imports which, by the real imports.

One line for a folder: its name, its lines of code, and what it imports. Folders that import each other come first, as a
knot. A component's spec.py and state.py are the folder ``facts``, because the model is composed of them.
"""

import ast
import sys
from collections.abc import Mapping, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]


def folder(path: Path) -> str:
    """The folder of a module, or its own name at the top."""
    first, *rest = path.with_suffix("").parts
    return "facts" if first == "components" and rest[-1:] in (["spec"], ["state"]) else first


def modules(root: Path) -> dict[str, Path]:
    """The modules below gpuready, by dotted name."""
    package = root / "deploys" / "gpuready"
    return {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(package.rglob("*.py"))
        if path.parent != package or path.stem not in ("__init__", "__main__")
    }


def imports(root: Path) -> dict[str, set[str]]:
    """Folder -> the other folders that its modules import, wherever in the module."""
    known = modules(root)
    package = root / "deploys" / "gpuready"
    found: dict[str, set[str]] = {folder(path.relative_to(package)): set() for path in known.values()}
    for path in known.values():
        here = folder(path.relative_to(package))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpuready"):
                base = str(node.module).removeprefix("gpuready").removeprefix(".")
                for alias in node.names:
                    name = next((n for n in (f"{base}.{alias.name}".strip("."), base) if n in known), None)
                    if name:
                        found[here].add(folder(known[name].relative_to(package)))
        found[here].discard(here)
    return found


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
    graph, package = imports(root), root / "deploys" / "gpuready"
    lines: dict[str, int] = dict.fromkeys(graph, 0)
    for path in modules(root).values():
        lines[folder(path.relative_to(package))] += len(path.read_text("utf-8").splitlines())
    for knot in knots(graph):
        print("knot:", ", ".join(sorted(knot)))
    for name in sorted(graph, key=lambda name: (len(_reached(graph, name)), name)):
        print(f"{name:12} {lines[name]:6}  {' '.join(sorted(graph[name])) or '-'}")


if __name__ == "__main__":
    main()
