"""Every answer for many drivers, GPUs and images, as a person reviewed them in matrix.txt; and its page in the docs."""

import itertools

from docs import matrix
from gpuready.cuda import tables


def test_the_answers_are_those_that_were_reviewed() -> None:
    """If a table changed on purpose: python -m docs.matrix, then review git diff."""
    assert matrix.GRID.read_text("utf-8") == matrix.grid()


def test_every_answer_has_a_source_with_a_date() -> None:
    rows = itertools.chain.from_iterable(matrix.cells().values())
    used = {cell.table for cell in itertools.chain.from_iterable(rows)}
    assert used == {"branches", "forward", "gpus"}
    assert all(tables.dated(name) for name in used)


def test_the_page_shows_every_answer_once() -> None:
    page = matrix.page()
    for name, rows in matrix.cells().items():
        _, _, rest = page.partition(f"## {name}\n")
        head, _, *lines = rest.partition("\n## ")[0].strip().splitlines()
        assert sorted(", ".join(head.split(" | ")[1:]).rstrip(" |").split(", ")) == sorted(matrix.GPUS.values())
        assert len(lines) <= len(rows)
        for line in lines:
            assert line.count("<sup>") == line.count(" | "), line
    assert all(f"| {name}.yaml |" in page for name in ("branches", "forward", "gpus", "toolkits", "container-toolkit"))
