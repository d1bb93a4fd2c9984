"""Every case of every folder beside this file: spec + state -> difference. README.md says how to read them."""

import json
from typing import Any

import pytest

from gpuready.contract.compare import Comparison, compare
from gpuready.contract.component import Component
from gpuready.model.state import NodeState, Unknown
from gpuready.node import NODE
from tests.components.cases import KEYS, WORDS, Case, cases, replaced, spec_of, state_of
from tests.components.closing import Closed, after, close


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_TEST_PROXY", "http://user:hunter2@proxy.example:3128")
    monkeypatch.setenv("GPUREADY_TEST_PLAIN_PROXY", "http://proxy.example:3128")


#: By folder, as the cases lie.
COMPONENTS: dict[str, Component] = {type(component).__module__.split(".")[2]: component for component in NODE}
CASES = cases()


def plain(value: Any) -> Any:
    """A value of a difference as YAML would write it."""
    if isinstance(value, Unknown):
        return {"unknown": value.unknown}
    return list(value) if isinstance(value, tuple) else value


def test_each_component_has_its_folder_and_none_is_left_over() -> None:
    assert {case.component for case in CASES} == set(COMPONENTS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    assert not set(case.data) - WORDS, "words that README.md does not explain"
    assert set(case.data) & {"diff", "error", "not_applies"}, "it expects nothing"
    component, spec, state = COMPONENTS[case.component], spec_of(case), state_of(case)
    found = compare(component, spec, state)
    check_comparison(case.data, found)
    if (
        found.diff
        and not found.error
        and ("stays_open" not in case.data or {"steps", "writes", "removes"} & set(case.data))
    ):
        key = (KEYS / case.data["fetches"]).read_bytes() if "fetches" in case.data else b""
        closed = close(component, spec, state, found.diff, case.data.get("staged", ""), key)
        check_steps(case.data, state, closed)
        if "stays_open" not in case.data:
            left = compare(component, spec, after(component, spec, state, closed))
            assert (left.diff, left.error) == ((), ""), "a second run would find something to change"


def check_comparison(want: dict[str, Any], found: Comparison) -> None:
    """The difference, and what it means to the node's users."""
    if "not_applies" in want:
        assert not found.applies
        assert want["not_applies"] in found.reason
        assert (found.diff, found.affected, found.disruption.name) == ((), (), "none")
        return
    assert found.applies, found.reason
    if "error" in want:
        assert want["error"] in found.error
    else:
        assert found.error == ""
    if "diff" in want or not found.error:
        assert {c.key: [plain(c.actual), plain(c.expected)] for c in found.diff} == want["diff"]
    else:
        assert found.diff == ()
    assert found.disruption.name == want.get("disruption", "none")
    assert list(found.affected) == want.get("affected", [])
    notes = want.get("notes", [])
    assert len(found.notes) == len(notes), found.notes
    assert all(part in note for part, note in zip(notes, found.notes, strict=True)), found.notes


def check_steps(want: dict[str, Any], state: NodeState, closed: Closed) -> None:
    """The steps that close the difference, and the files that they write and remove."""
    if "steps" in want:
        assert [step.name for step in closed.steps] == want["steps"]
    if "writes" in want or "removes" in want:
        assert set(closed.writes) == set(want.get("writes", {}))
        assert sorted(closed.removes) == sorted(want.get("removes", []))
    for path, content in want.get("writes", {}).items():
        written: Any = closed.writes[path]
        match content:
            case {"key": name}:
                content = (KEYS / name).read_text("utf-8")
            case {"adds": lines}:
                content = state.files[path].text + lines
            case {"replace": changes}:
                content = replaced(state.files[path].text, changes)
            case dict():
                written = json.loads(written)
        assert written == content
