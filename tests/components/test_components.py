"""Every case of every folder beside this file: spec + state -> difference. README.md says how to read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuready.core.compare import Comparison, compare
from gpuready.core.component import Component
from gpuready.node import NODE
from gpuready.state.model import Unknown
from tests.components.cases import KEYS, WORDS, Case, cases, spec_of, state_of
from tests.components.closing import STAGED, Closed, after, close


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PROXY", "http://user:hunter2@proxy.example:3128")
    monkeypatch.setenv("TEST_PLAIN_PROXY", "http://proxy.example:3128")


#: By folder, as the cases lie.
COMPONENTS: dict[str, Component] = {type(component).__module__.split(".")[2]: component for component in NODE}
CASES = cases()


def plain(value: Any) -> Any:
    """A value of a difference as YAML would write it."""
    if isinstance(value, Unknown):
        return {"unknown": value.unknown}
    return list(value) if isinstance(value, tuple) else value


def found_for(case: Case) -> Comparison:
    return compare(COMPONENTS[case.component], spec_of(case), state_of(case))


def closed_for(case: Case, found: Comparison) -> Closed:
    key = (KEYS / case.data["fetches"]).read_bytes() if "fetches" in case.data else b""
    staged = case.data.get("staged", STAGED)
    return close(COMPONENTS[case.component], spec_of(case), state_of(case), found.diff, staged, key)


def test_each_component_has_its_folder_and_none_is_left_over() -> None:
    assert {case.component for case in CASES} == set(COMPONENTS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case_uses_known_words_only(case: Case) -> None:
    assert not set(case.data) - WORDS
    assert set(case.data) & {"diff", "error", "not_applies"}, "it expects nothing"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_comparison(case: Case) -> None:
    want, found = case.data, found_for(case)
    if "not_applies" in want:
        assert not found.applies
        assert want["not_applies"] in found.reason
        return
    assert found.applies, found.reason
    if "error" in want:
        assert want["error"] in found.error
    else:
        assert found.error == ""
    if "diff" in want or not found.error:
        assert {c.key: [plain(c.actual), plain(c.expected)] for c in found.diff} == want["diff"]
    assert found.disruption.name == want.get("disruption", "none")
    assert list(found.hits) == want.get("hits", [])
    notes = want.get("notes", [])
    assert len(found.notes) == len(notes), found.notes
    assert all(part in note for part, note in zip(notes, found.notes, strict=True)), found.notes


CLOSABLE = [case for case in CASES if case.data.get("diff") and "error" not in case.data]


@pytest.mark.parametrize("case", [c for c in CLOSABLE if {"steps", "writes", "removes"} & set(c.data)], ids=str)
def test_steps(case: Case) -> None:
    want, found = case.data, found_for(case)
    closed = closed_for(case, found)
    if "steps" in want:
        assert [step.name for step in closed.steps] == want["steps"]
    if "writes" in want or "removes" in want:
        assert set(closed.writes) == set(want.get("writes", {}))
        assert sorted(closed.removes) == sorted(want.get("removes", []))
    for path, content in want.get("writes", {}).items():
        written = closed.writes[path]
        if isinstance(content, dict) and set(content) == {"key"}:
            assert written.encode() == (KEYS / content["key"]).read_bytes()
        else:
            assert (json.loads(written) if isinstance(content, dict) else written) == content


@pytest.mark.parametrize("case", [c for c in CLOSABLE if "stays_open" not in c.data], ids=str)
def test_what_is_closed_stays_closed(case: Case) -> None:
    component, spec, state = COMPONENTS[case.component], spec_of(case), state_of(case)
    found = found_for(case)
    left = compare(component, spec, after(component, spec, state, closed_for(case, found)))
    assert (left.diff, left.error) == ((), "")


@pytest.mark.parametrize("case", [case for case in CASES if not case.data.get("diff")], ids=str)
def test_without_a_difference_nobody_is_disturbed(case: Case) -> None:
    found = found_for(case)
    assert (found.diff, found.hits, found.disruption.name) == ((), (), "none")
