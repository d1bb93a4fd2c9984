"""Every table of facts has a date and its sources, and the script names those that are old."""

import datetime
from pathlib import Path

import pytest

from tests.tables import OLD, Table, report, tables


def test_every_table_has_a_date_that_is_not_in_the_future_and_its_sources() -> None:
    found = tables()
    assert {"gpus.yaml", "xids.yaml", "driver-packages.yaml"} <= {table.path.name for table in found}
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
