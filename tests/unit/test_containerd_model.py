"""What the components' cases take for containerd's answers, against answers that 1.6.20, 1.7.24 and 2.1.9 gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.components.containerdfiles import leaves
from gpuready.state.containerd import effective
from tests.components.containerdmodel import dump

RECORDED = json.loads((Path(__file__).parent / "data" / "containerd" / "answers.json").read_text("utf-8"))


@pytest.mark.parametrize("answer", RECORDED, ids=lambda a: f"{a['version']}: {a['name']}")
def test_the_model_says_what_containerd_said(answer: dict[str, Any]) -> None:
    found = effective(dump(answer["version"], answer["files"]))
    said = {".".join(path): value for path, value in leaves(found.whole).items() if path[0] != "imports"}
    assert said == answer["said"]
    assert set(found.imports) == set(answer["imports"])


def test_a_dump_that_is_none() -> None:
    for text in ("", "x", "version = '2'\n"):
        with pytest.raises(ValueError, match="containerd config dump"):
            effective(text)
