"""containerd's way back: from every closed case to the very files from before; what the user wrote since stays."""

from __future__ import annotations

import pytest

from gpuready.components.base import compare
from gpuready.components.containerd import Containerd
from gpuready.components.containerdfiles import CONFIG, leaves
from gpuready.spec.model import NodeSpec
from gpuready.state.containerd import effective
from gpuready.state.model import NodeState, Unknown
from tests.components.cases import Case, cases, spec_of, state_of
from tests.components.closing import KEPT, after, close

CASES = [c for c in cases() if c.component == "containerd" and c.data.get("diff") and "error" not in c.data]
# The file is given back only by who changed it; without a change of the file nothing is ours.
WRITTEN = [c for c in CASES if set(c.data["diff"]) - {"containerd.running", "containerd.runtimes.runc.runtime_type"}]


def contents(state: NodeState) -> dict[str, str]:
    return {path: file.text for path, file in state.files.items() if not path.startswith(KEPT)}


def meaning(state: NodeState) -> dict[tuple[str, ...], object]:
    return {k: v for k, v in leaves(effective(str(state.containerd)).whole).items() if k[0] != "imports"}


def applied(case: Case) -> tuple[NodeSpec, NodeState, NodeState]:
    spec, before = spec_of(case), state_of(case)
    closed = close(Containerd(), spec, before, compare(Containerd(), spec, before).diff)
    return spec, before, after(Containerd(), spec, before, closed)


def withdrawn(spec: NodeSpec, state: NodeState) -> NodeState:
    found = compare(Containerd(), spec, state, original=True)
    assert found.diff and not found.error
    closed = close(Containerd(), spec, state, found.diff)
    assert "containerd-stage" not in [step.name for step in closed.steps]
    return after(Containerd(), spec, state, closed)


@pytest.mark.parametrize("case", WRITTEN, ids=str)
def test_the_very_files_come_back(case: Case) -> None:
    spec, before, state = applied(case)
    left = withdrawn(spec, state)
    assert contents(left) == contents(before)
    assert meaning(left) == meaning(before)
    assert not Containerd().original(spec, left)
    assert not [path for path in left.files if path.startswith(KEPT)]


@pytest.mark.parametrize("case", WRITTEN, ids=str)
def test_what_the_user_wrote_since_stays(case: Case) -> None:
    spec, before, state = applied(case)
    if CONFIG not in state.files:
        pytest.skip("nothing to edit")
    edited = state.files[CONFIG].model_copy(update={"text": f"# mine\n{state.files[CONFIG].text}"})
    left = withdrawn(spec, state.model_copy(update={"files": state.files | {CONFIG: edited}}))
    assert left.files[CONFIG].text.startswith("# mine\n")
    assert "nvidia" not in left.files[CONFIG].text or "nvidia" in contents(before).get(CONFIG, "")
    assert meaning(left) == meaning(before)
    assert not Containerd().original(spec, left)


def test_a_node_that_gpuready_never_touched_has_no_way_back() -> None:
    for case in CASES:
        assert not Containerd().original(spec_of(case), state_of(case))


def test_a_default_that_the_user_changed_since_is_his() -> None:
    case = next(c for c in CASES if "nvidia as the default runtime" in c.title)
    spec, _, state = applied(case)
    text = state.files[CONFIG].text.replace('default_runtime_name = "nvidia"', 'default_runtime_name = "runc"')
    edited = state.model_copy(
        update={
            "files": state.files | {CONFIG: state.files[CONFIG].model_copy(update={"text": text})},
            "containerd": str(state.containerd).replace(
                'default_runtime_name = "nvidia"', 'default_runtime_name = "runc"'
            ),
        }
    )
    assert "containerd.default_runtime_name" not in Containerd().original(spec, edited)
    assert 'default_runtime_name = "runc"' in withdrawn(spec, edited).files[CONFIG].text


@pytest.mark.parametrize(
    "answer", [Unknown(unknown="containerd: exit 1: bad TOML"), "version = ["], ids=["none", "odd"]
)
def test_what_cannot_be_read_is_no_proof_that_nothing_is_ours(answer: str | Unknown) -> None:
    spec, before, state = applied(next(c for c in WRITTEN if CONFIG in state_of(c).files))
    blind = compare(Containerd(), spec, state.model_copy(update={"containerd": answer}), original=True)
    assert blind.error and not blind.diff
    never = compare(Containerd(), spec, before.model_copy(update={"containerd": answer}), original=True)
    assert not never.error and not never.applies
