"""What the components' cases take for containerd's answers, against answers that 1.6.20, 1.7.24 and 2.1.9 gave."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.records import Records
from gpuready.components.containerd import keys
from gpuready.components.containerd.files import leaves
from gpuready.components.containerd.state import cri, effective
from gpuready.model.state import Cri, Unknown
from tests.components.containerd import containerdmodel
from tests.components.containerd.containerdmodel import dump

DATA = Path(__file__).parents[2] / "data" / "containerd"
RECORDED = json.loads((DATA / "answers.json").read_text("utf-8"))
#: What ``crictl info`` printed, but for what nobody compares.
ANSWERED = json.loads((DATA / "cri.json").read_text("utf-8"))


@pytest.mark.parametrize("answer", RECORDED, ids=lambda a: f"{a['version']}: {a['name']}")
def test_the_model_says_what_containerd_said(answer: dict[str, Any]) -> None:
    found = effective(dump(answer["version"], answer["files"]))
    said = {".".join(path): value for path, value in leaves(found.whole).items() if path[0] != "imports"}
    assert said == answer["said"]
    assert set(found.imports) == set(answer["imports"])


def test_a_dump_that_cannot_be_parsed() -> None:
    for text in ("", "x", "version = '2'\n"):
        with pytest.raises(ValueError, match="containerd config dump"):
            effective(text)


def answered(text: str) -> Cri | Unknown | None:
    records = Records(["end 0"])
    records.runs["crictl_info"] = (0, text)
    return cri(records)


@pytest.mark.fault("D16")
@pytest.mark.parametrize("answer", ANSWERED, ids=lambda a: f"{a['version']}: {a['name']}")
def test_the_files_are_read_as_the_engine_that_runs_read_them(answer: dict[str, Any]) -> None:
    text = dump(answer["version"], answer["files"])
    found, running = effective(text), answered(json.dumps(answer["info"]))
    assert isinstance(running, Cri)
    assert (found.default_runtime, set(found.runtimes)) == (running.default_runtime, set(running.runtimes))
    for name, table in running.runtimes.items():
        said = {path: value for path, value in leaves(found.runtimes[name]).items() if path[0] != "sandboxer"}
        assert said == leaves(table), name
    assert keys.untrue(found, running) == ""
    modelled = Cri.model_validate(containerdmodel.cri(text))
    assert keys.untrue(found, modelled) == ""
    assert modelled.model_copy(update={"runtimes": {}}) == running.model_copy(update={"runtimes": {}})


@pytest.mark.fault("D16")
def test_an_answer_that_is_not_crictls_is_unknown() -> None:
    for text in ("", "[]", "{}", '{"config": {}}', '{"config": {"containerd": null}}', "[" * 100_000):
        assert isinstance(answered(text), Unknown)
