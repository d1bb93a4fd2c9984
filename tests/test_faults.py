"""docs/faults.md is current, and complete: no fault without a test or a reason, no marker for an unknown fault."""

from tests import faults

ROWS = [row for rows in faults.faults().values() for row in rows]
NAMES = [name for row in ROWS for name in (row.slug, *row.also)]


def test_the_page_is_current() -> None:
    assert faults.PAGE.read_text("utf-8") == faults.page(), "run python -m tests.faults"


def test_every_fault_has_a_test_or_a_reason() -> None:
    tests = faults.marked()
    assert [row.slug for row in ROWS if not faults.shown(row, tests)] == []


def test_every_marker_names_a_fault() -> None:
    assert {slug: tests for slug, tests in faults.marked().items() if slug not in NAMES} == {}


def test_names_are_unique_and_parts_are_rows() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert {part for row in ROWS for part in row.parts} <= set(NAMES)
