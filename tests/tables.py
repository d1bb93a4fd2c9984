"""The age of the tables of facts (``data/*.yaml``), and of the modules that name versions, by the dates in them.

``python -m tests.tables`` lists them, oldest first, and exits with 1 if one is older than 180 days.
"""

import ast
import datetime
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
#: Days after which somebody should look the facts up again.
OLD = 180


#: What a module's docstring says after its sources.
_DATED = re.compile(r"Sources?: (.{40,}?)\s*Looked up on (\d{4}-\d\d-\d\d)\.", re.S)


@dataclass(frozen=True)
class Table:
    """One file of facts: when they were looked up, and where."""

    path: Path
    date: datetime.date
    source: str


def tables(root: Path = ROOT / "deploys") -> list[Table]:
    """Every table, oldest first. Raises ValueError for one without a date or a source."""
    found = []
    for path in sorted(root.rglob("data/*.yaml")):
        document = yaml.safe_load(path.read_text("utf-8"))
        date, source = document.get("date"), document.get("source")
        if type(date) is not datetime.date or not isinstance(source, str) or len(source) < 40:
            raise ValueError(f"{path}: a table needs a date (YYYY-MM-DD) and its sources")
        found.append(Table(path.relative_to(root), date, source))
    found += [table for path in sorted(root.rglob("*.py")) if (table := _module(path, root)) is not None]
    return sorted(found, key=lambda table: table.date)


def _module(path: Path, root: Path) -> Table | None:
    """A module with facts in Python; None for one whose docstring has no date. Raises ValueError without a source."""
    said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    if "Looked up on" not in said:
        return None
    if (dated := _DATED.search(said)) is None:
        raise ValueError(f"{path}: a module needs its sources before the date: Source: ... Looked up on YYYY-MM-DD.")
    return Table(path.relative_to(root), datetime.date.fromisoformat(dated[2]), " ".join(dated[1].split()))


def report(found: Sequence[Table], today: datetime.date) -> tuple[str, bool]:
    """One line for each table, and whether one is old."""
    ages = [(today - table.date).days for table in found]
    lines = [
        f"{'OLD' if age > OLD else 'ok':3}  {age:4} days  {table.date}  {table.path}\n               {table.source}"
        for age, table in zip(ages, found, strict=True)
    ]
    old = sum(age > OLD for age in ages)
    lines.append(f"{old} of {len(found)} tables are older than {OLD} days")
    return "\n".join(lines), bool(old)


if __name__ == "__main__":
    text, old = report(tables(), datetime.date.today())
    print(text)
    sys.exit(1 if old else 0)
