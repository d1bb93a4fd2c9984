"""Every table of facts has a date and its sources, and the script names those that are old."""

import ast
import datetime
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tables import OLD, ROOT, Table, report, tables


def test_every_table_has_a_date_that_is_not_in_the_future_and_its_sources() -> None:
    found = tables()
    assert {"gpus.yaml", "xids.yaml", "driver-packages.yaml", "engines.py"} <= {table.path.name for table in found}
    assert [table.path for table in found if table.date > datetime.date.today()] == []


def test_a_table_is_old_after_180_days() -> None:
    day = datetime.date(2026, 1, 1)
    found = [Table(Path("cuda/data/a.yaml"), day, "NVIDIA's guide")]
    text, old = report(found, day + datetime.timedelta(OLD))
    assert not old and text.startswith("ok ") and text.endswith("0 of 1 tables are older than 180 days")
    text, old = report(found, day + datetime.timedelta(OLD + 1))
    assert old and text.startswith("OLD   181 days  2026-01-01  cuda/data/a.yaml\n") and "NVIDIA's guide" in text


@pytest.mark.parametrize(
    "text", ["source: a guide of NVIDIA, in the edition of June 2026", "date: 2026-01-01", "date: x"]
)
def test_a_table_without_a_date_or_a_source_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.yaml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"a.yaml: a table needs a date"):
        tables(tmp_path)


def test_a_module_with_a_date_but_no_source_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('"""Facts.\n\nLooked up on 2026-11-23.\n"""\n', "utf-8")
    with pytest.raises(ValueError, match=r"a.py: a module needs its sources"):
        tables(tmp_path)


#: Modules with the version of something else than a program that they judge.
NO_FACTS = {
    "__init__.py": "gpuready's own",
    "base/documents.py": "the running Python",
    "contract/package_manager.py": "of the file of dnf 5's locks",
    "cuda/tables.py": "unknown",
    "fabric/kubernetes.py": "of a format",
}


def test_a_module_that_names_versions_says_when_they_were_looked_up() -> None:
    root = ROOT / "deploys" / "gpuready"
    trees = {path.relative_to(root).as_posix(): ast.parse(path.read_text("utf-8")) for path in root.rglob("*.py")}
    compared = {name for tree in trees.values() for side in _sides(tree) if (name := _name(side))}
    found = {path for path, tree in trees.items() if _has_version(tree, compared)}
    assert {"components/cdi/engines.py", "components/toolkit/spec.py", "components/docker/state.py", *NO_FACTS} <= found
    dated = {table.path.relative_to("gpuready").as_posix() for table in tables() if table.path.suffix == ".py"}
    assert found - dated == set(NO_FACTS), "add to the docstring: Sources: ... Looked up on YYYY-MM-DD."


def _sides(tree: ast.AST) -> Iterator[ast.expr]:
    """Both sides of each comparison by order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            yield from (node.left, *node.comparators)


def _name(node: ast.AST) -> str:
    """The name of a constant."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name if name.isupper() else ""


def _numbers(node: ast.AST) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else []
    return len(parts) > 1 and all(isinstance(each, ast.Constant) and type(each.value) is int for each in parts)


def _version(node: ast.AST, compared: set[str]) -> bool:
    """Tell whether it is a version, such as "1.20.0", or numbers under a name that something is compared with."""
    if isinstance(node, ast.Constant):
        return bool(re.fullmatch(r"v?\d{1,3}\.\d{1,3}(\.\d{1,3})?", node.value if isinstance(node.value, str) else ""))
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        pairs = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]
        return any(_name(name) in compared and _numbers(value) for name, value in pairs)
    return False


def _has_version(tree: ast.AST, compared: set[str]) -> bool:
    return any(_version(node, compared) for node in ast.walk(tree)) or any(map(_numbers, _sides(tree)))
