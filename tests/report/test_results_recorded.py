"""Result documents that an earlier build wrote: they still fit the schema, and runs of today have all of their keys."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.result.document import document
from tests.report.test_fabric_report import run as fabric_run
from tests.report.test_report_document import VALIDATOR
from tests.report.test_report_runs import CODES, sample

RECORDED = {path.stem: path for path in (Path(__file__).parents[1] / "data" / "results").glob("*.json")}
#: Those of made-up runs, which say the same today; the others are of components and checks, whose texts may change.
MADE_UP = sorted(RECORDED.keys() & CODES.keys())


def recorded(name: str) -> Any:
    return json.loads(RECORDED[name].read_text())


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_recorded_document_fits_the_schema_of_today(name: str) -> None:
    VALIDATOR.validate(recorded(name))


@pytest.mark.parametrize("name", [*MADE_UP, "fabric"])
def test_a_run_gives_the_recorded_document_still(name: str) -> None:
    made = document(fabric_run(), 3) if name == "fabric" else document(sample(name), CODES[name])
    assert _without_texts(json.loads(json.dumps(made))) == _without_texts(recorded(name))
    assert list(made) == list(recorded(name)), "the order of keys"


def _without_texts(result: Any) -> Any:
    """The document without what a check says in words, and without the error's remedy."""
    if result["error"]:
        result["error"]["remedy"] = ""
    for host in result["hosts"].values():
        for check in host["checks"]:
            check |= {"summary": "", "remedy": ""}
    return result


def test_every_part_of_the_document_is_recorded() -> None:
    """So a key that gets another form is found out."""
    assert len(MADE_UP) >= 10
    hosts = [host for name in RECORDED for host in recorded(name)["hosts"].values()]
    keys = {key for host in hosts for key in host}
    assert {"images", "nccl", "docker_run", "launch", "state", "attached", "reason"} <= keys
