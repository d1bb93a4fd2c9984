"""The way back of whole files: what is ours to take away, what somebody edited since, what a cut run left half done."""

from __future__ import annotations

import pytest

from gpuready.components.docker.component import Docker
from gpuready.components.ledger.component import Ledger
from gpuready.components.toolkit.component import Toolkit
from gpuready.core import ledger
from gpuready.core.compare import compare
from gpuready.core.component import Disruption, NotComparable
from gpuready.core.consent import users
from gpuready.core.ledger import KEPT
from gpuready.evaluate import compared
from gpuready.report.run import HostRun
from gpuready.spec.model import NodeSpec
from gpuready.state.model import File, NodeState

LIST = "/etc/apt/sources.list.d/old.list"


def _state(files: dict[str, str], **more: object) -> NodeState:
    made = {path: File(text=text, mode=0o644, uid=0, gid=0, mtime=0) for path, text in files.items()}
    return NodeState.model_validate({"files": made, **more})


def _sha(text: str) -> str:
    return File(text=text, mode=0, uid=0, gid=0, mtime=0).sha256


def test_a_file_that_we_changed_goes_back() -> None:
    state = _state({LIST: "ours", f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": _sha("ours") + "\n"})
    assert ledger.paths(state, "/etc/apt") == (LIST,)
    assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
    assert ledger.actual("r", state, [LIST]) == {f"r.files.{LIST}": "gpuready's"}
    assert ledger.left(state, [LIST]) == ()


def test_one_that_we_dropped_comes_back() -> None:
    state = _state({f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": "absent\n"})
    assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
    assert ledger.actual("r", state, [LIST]) == {f"r.files.{LIST}": "removed"}


def test_one_that_somebody_edited_since_stays_and_is_told() -> None:
    state = _state({LIST: "ours, edited", f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": _sha("ours")})
    assert ledger.whole("r", state, [LIST]) == {}
    (note,) = ledger.left(state, [LIST])
    assert LIST in note and f"/var/lib/gpuready/left{LIST}.original" in note


def test_a_run_that_was_cut_is_taken_up_again() -> None:
    """The file is back, what hangs on it may not be done: the record still says so, and makes a difference."""
    put_back = _state({LIST: "theirs", f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": _sha("ours")})
    gone = _state({f"{KEPT}{LIST}.absent": "", f"{KEPT}{LIST}.ours": _sha("ours")})
    for state in (put_back, gone):
        (key, want), (_, found) = *ledger.whole("r", state, [LIST]).items(), *ledger.actual("r", state, [LIST]).items()
        assert key == f"r.files.{LIST}" and found == "original, on record" != want
    assert ledger.whole("r", _state({LIST: "theirs"}), [LIST]) == {}


def test_what_others_still_need_does_not_go_alone() -> None:
    state = _state({f"{KEPT}/packages.original": ""})
    toolkit = compare(Toolkit(), NodeSpec(), state, original=True)
    engine = {
        "version": "26.1.5",
        "runtimes": {"nvidia": "nvidia-container-runtime"},
        "default_runtime": "runc",
    }
    files = {
        "/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
        f"{KEPT}/etc/docker/daemon.json.absent": "",
        "/var/lib/gpuready/docker.ours": '{"runtimes.nvidia.path": "nvidia-container-runtime"}',
    }
    named = compare(Docker(), NodeSpec(), _state(files, docker=engine), original=True)
    assert named.diff
    assert users(Toolkit(), {Docker(): named}) == ["docker (not selected)"]
    assert users(Toolkit(), {Docker(): compare(Docker(), NodeSpec(), _state({}), original=True)}) == []
    assert users(Docker(), {Toolkit(): toolkit}) == []


def test_records_are_what_is_left_in_the_end() -> None:
    assert compare(Ledger(), NodeSpec(), _state({f"{KEPT}{LIST}.ours": "x"}), original=True).diff
    assert not compare(Ledger(), NodeSpec(), _state({LIST: "x"}), original=True).applies


@pytest.mark.fault("D4")
def test_a_damaged_original_is_an_error_on_the_way_back_alone() -> None:
    kept = {f"{KEPT}{LIST}.original": "the", f"{KEPT}{LIST}.sha256": _sha("theirs"), f"{KEPT}{LIST}.ours": _sha("ours")}
    state = _state({LIST: "ours", **kept})
    assert ledger.actual("r", state, [LIST]) == {f"r.files.{LIST}": "gpuready's"}
    with pytest.raises(NotComparable, match=rf"the original of {LIST} in {KEPT} is damaged"):
        ledger.whole("r", state, [LIST])
    for back, names in ((False, 1), (True, 0)):
        run = HostRun("n1", state=state)
        compared(run, NodeSpec.model_validate({"hardware": {"gpus": "none"}}), None, Disruption.restart, back=back)
        assert [note.startswith(f"the original of {LIST}") for note in run.notes] == [True] * names


@pytest.mark.fault("D4")
def test_both_versions_are_ours_where_a_run_was_cut() -> None:
    for now in ("ours", "ours, next"):
        cut = {f"{KEPT}{LIST}.ours": _sha("ours") + "\n", f"{KEPT}{LIST}.next": _sha("ours, next") + "\n"}
        state = _state({LIST: now, f"{KEPT}{LIST}.original": "theirs", **cut})
        assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
        assert ledger.left(state, [LIST]) == ()


@pytest.mark.fault("D6", "linked-parent-directory")
def test_a_record_is_found_by_the_name_of_the_file_and_by_that_of_earlier_versions() -> None:
    """They kept it under the name to which the file's links lead, of which any directory may be one."""
    file = File(text="ours", mode=0o644, uid=0, gid=0, mtime=0, realpath="/data/apt/old.list")
    for name in (LIST, "/data/apt/old.list"):
        records = _state({f"{KEPT}{name}.original": "theirs", f"{KEPT}{name}.ours": _sha("ours")})
        state = records.model_copy(update={"files": {**records.files, LIST: file}})
        assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
