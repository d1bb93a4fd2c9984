"""docs/faults.md: every fault of tests/faults.yaml, and the tests whose markers name it.

``python -m tests.faults`` writes the page. Tests are read as text, not imported.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "faults.md"
_HEAD = """# Faults and their tests

What can go wrong, what gpuready does then, and the tests that show it. `python -m tests.faults` generates
this page from the markers `@pytest.mark.fault(...)` and tests/faults.yaml.
"""


@dataclass(frozen=True)
class Fault:
    """One row; ``also`` are other names of it, ``parts`` the slugs of rows that it sums up."""

    slug: str
    fault: str
    does: str
    also: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    why_untested: str = ""


def faults() -> dict[str, list[Fault]]:
    """The rows of tests/faults.yaml by their section."""
    sections = yaml.safe_load((ROOT / "tests" / "faults.yaml").read_text("utf-8"))
    return {
        name: [Fault(**{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}) for row in rows]
        for name, rows in sections.items()
    }


def marked() -> dict[str, list[str]]:
    """Slug -> the tests that name it, each as FILE or FILE::NAME below tests/."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT / "tests").as_posix()
        for node in ast.parse(path.read_text("utf-8"), name).body:
            for slug, test in _slugs(node, name):
                found.setdefault(slug, set()).add(test)
    return {slug: sorted(tests) for slug, tests in found.items()}


def _slugs(node: ast.stmt, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        place = f"{place}::{node.name}"
    if isinstance(node, ast.ClassDef):
        for item in node.body:
            yield from _slugs(item, place)
        inside: list[ast.AST] = [*node.decorator_list]
    else:
        inside = [node]
    for call in (each for part in inside for each in ast.walk(part) if isinstance(each, ast.Call)):
        if ast.unparse(call.func) == "pytest.mark.fault":
            yield from ((str(ast.literal_eval(argument)), place) for argument in call.args)


def page() -> str:
    """The page as it should be."""
    tests, lines = marked(), [_HEAD]
    for section, rows in faults().items():
        lines += [f"## {section}", "", "| fault | what gpuready does | tests |", "|---|---|---|"]
        for row in rows:
            slug = f"`{row.slug}`" + "".join(f", `{name}`" for name in row.also)
            lines.append(f"| {slug}: {row.fault} | {row.does} | {'<br>'.join(shown(row, tests))} |")
        lines.append("")
    return "\n".join(lines)


def shown(row: Fault, tests: dict[str, list[str]]) -> list[str]:
    """What the page says in the last column; empty where there is neither a test nor a reason."""
    own = sorted({test for slug in (row.slug, *row.also) for test in tests.get(slug, [])})
    found = [f"`{test}`" for test in own] + [f"see `{part}`" for part in row.parts]
    return found or ([row.why_untested] if row.why_untested else [])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(PAGE.relative_to(ROOT), file=sys.stderr)
