"""The fabric's findings as a matrix for each test: a row is where data comes from, a column where it goes to.

Two hosts may have several links; a cell shows the worst of them, by status and then by figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuready.fabric.commands import TESTS

if TYPE_CHECKING:
    from gpuready.fabric.verdict import Finding

#: The worst first.
STATUSES = ("fail", "unknown", "warn", "skip", "pass")


@dataclass(frozen=True)
class Matrix:
    """One test; ``cells`` by (client's host, server's host), the worst finding first."""

    test: str
    hosts: tuple[str, ...]
    cells: dict[tuple[str, str], Finding]

    @property
    def figures(self) -> list[float]:
        """All figures there are, in ascending order."""
        return sorted(each.value for each in self.cells.values() if each.value is not None)


def matrices(tests: Sequence[str], findings: Sequence[Finding], hosts: Sequence[str]) -> list[Matrix]:
    """One for each test of pairs of which at least one finding is more than a skip; hosts in inventory order."""
    made = []
    for name in tests:
        if not TESTS[name].of_pairs:
            continue
        cells: dict[tuple[str, str], Finding] = {}
        for each in sorted((each for each in findings if each.test == name), key=_badness):
            cells.setdefault((each.client.host, each.server.host), each)
        if any(each.status != "skip" for each in cells.values()):
            made.append(Matrix(name, tuple(hosts), cells))
    return made


def _badness(each: Finding) -> tuple[int, float]:
    value = each.value or 0.0
    return STATUSES.index(each.status), value if TESTS[each.test].higher_is_better else -value


def shown(each: Finding) -> str:
    """A cell in few characters; a figure that failed is marked, one without a figure is a word."""
    if each.value is None or each.status in ("skip", "unknown"):
        return {"fail": "FAIL", "unknown": "?", "skip": "skip"}.get(each.status, "ok")
    figure = "ok" if each.test == "rping" else f"{each.value:.3g}" if each.value < 100 else f"{each.value:.0f}"
    return f"{figure}!" if each.status in ("fail", "warn") else figure
