"""The way back of whole files: what is ours to take away, what somebody edited since, what a cut run left half done."""

import json
from datetime import datetime

import pytest

from gpuready.base.facts import KEPT
from gpuready.components.docker.component import Docker
from gpuready.components.ledger.component import Ledger
from gpuready.components.toolkit.component import Toolkit
from gpuready.contract import ledger
from gpuready.contract.compare import Plan, compare
from gpuready.contract.component import Component, Disruption, NotComparable
from gpuready.contract.permission import permission
from gpuready.contract.removal import Removal, removals
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.node import NODE, REMOVALS
from gpuready.result.model import HostResult
from gpuready.run.evaluate import fill_components
from tests.verdicts import root_file, root_files

DAEMON_JSON = "/etc/docker/daemon.json"
LIST = "/etc/apt/sources.list.d/old.list"


def _state(files: dict[str, str], **more: object) -> NodeState:
    return NodeState.model_validate({"files": root_files(files), **more})


def _sha(text: str) -> str:
    return root_file(text).sha256


def test_remove_restores_a_changed_file() -> None:
    state = _state({LIST: "ours", f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": _sha("ours") + "\n"})
    assert ledger.paths(state, "/etc/apt") == (LIST,)
    assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
    assert ledger.actual("r", state, [LIST]) == {f"r.files.{LIST}": "gpuready's"}
    assert ledger.left(state, [LIST]) == ()


def test_remove_restores_a_deleted_file() -> None:
    state = _state({f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": "absent\n"})
    assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
    assert ledger.actual("r", state, [LIST]) == {f"r.files.{LIST}": "removed"}


def test_remove_keeps_an_edited_file_and_says_so() -> None:
    state = _state({LIST: "ours, edited", f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": _sha("ours")})
    assert ledger.whole("r", state, [LIST]) == {}
    (note,) = ledger.left(state, [LIST])
    assert LIST in note and f"/var/lib/gpuready/left{LIST}.original" in note


def test_an_interrupted_run_is_continued() -> None:
    """The file is back, what hangs on it may not be done: the record still says so, and makes a difference."""
    put_back = _state({LIST: "theirs", f"{KEPT}{LIST}.original": "theirs", f"{KEPT}{LIST}.ours": _sha("ours")})
    gone = _state({f"{KEPT}{LIST}.absent": "", f"{KEPT}{LIST}.ours": _sha("ours")})
    for state in (put_back, gone):
        (key, want), (_, found) = *ledger.whole("r", state, [LIST]).items(), *ledger.actual("r", state, [LIST]).items()
        assert key == f"r.files.{LIST}" and found == "original, on record" != want
    assert ledger.whole("r", _state({LIST: "theirs"}), [LIST]) == {}


def test_remove_only_stops_where_another_component_needs_it() -> None:
    state = _state({f"{KEPT}/packages.original": ""})
    engine = {"version": "26.1.5", "runtimes": {"nvidia": "nvidia-container-runtime"}, "default_runtime": "runc"}
    files = {
        DAEMON_JSON: '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
        f"{KEPT}/etc/docker/daemon.json.absent": "",
        "/var/lib/gpuready/docker.ours": json.dumps(
            {DAEMON_JSON: {"runtimes.nvidia.path": ["nvidia-container-runtime"]}}
        ),
    }
    named = _state(files, docker=engine)
    assert compare(Removal(Docker()), NodeSpec(), named).diff

    def still(number: int, state: NodeState, order: tuple[Component, ...]) -> str:
        item = order[number]
        plan = Plan(order, NodeSpec(), state, frozenset({item.name}))
        return permission(item, plan, Disruption.reboot, datetime(2026, 11, 22)).pending

    there = (Toolkit(), Docker())
    docker, toolkit = 0, 1
    assert still(toolkit, named, removals(there)) == "for docker (not selected)"
    assert still(toolkit, named, there[::-1]) == still(toolkit, _state({}), removals(there)) == ""
    assert still(docker, state, removals(there)) == ""


def test_a_removal_waits_for_all_that_come_before_it_and_for_its_users() -> None:
    first, second, third = removals((Ledger(), Toolkit(), Docker()))
    assert [item.name for item in (first, second, third)] == ["docker", "toolkit", "ledger"]
    assert [item.requires for item in (first, second, third)] == [(), ("docker",), ("docker", "toolkit")]
    assert [item.users for item in (first, second, third)] == [(), ("docker",), ()]
    assert [item.name for item in REMOVALS] == [*(item.name for item in reversed(NODE)), "ledger"]


def test_records_are_what_is_left_in_the_end() -> None:
    assert compare(Removal(Ledger()), NodeSpec(), _state({f"{KEPT}{LIST}.ours": "x"})).diff
    assert not compare(Removal(Ledger()), NodeSpec(), _state({LIST: "x"})).applies


@pytest.mark.fault("D4")
def test_a_damaged_original_is_an_error_on_the_way_back_alone() -> None:
    kept = {f"{KEPT}{LIST}.original": "the", f"{KEPT}{LIST}.sha256": _sha("theirs"), f"{KEPT}{LIST}.ours": _sha("ours")}
    state = _state({LIST: "ours", **kept})
    assert ledger.actual("r", state, [LIST]) == {f"r.files.{LIST}": "gpuready's"}
    with pytest.raises(NotComparable, match=rf"the original of {LIST} in {KEPT} is damaged"):
        ledger.whole("r", state, [LIST])
    for order, names in ((NODE, 1), (REMOVALS, 0)):
        run = HostResult("n1", state=state)
        spec = NodeSpec.model_validate({"hardware": {"gpus": "none"}})
        fill_components(run, Plan(order, spec, state), Disruption.restart)
        assert [note.startswith(f"the original of {LIST}") for note in run.notes] == [True] * names


@pytest.mark.fault("D4")
def test_both_versions_are_ours_after_an_interrupted_run() -> None:
    for now in ("ours", "ours, next"):
        cut = {f"{KEPT}{LIST}.ours": _sha("ours") + "\n", f"{KEPT}{LIST}.next": _sha("ours, next") + "\n"}
        state = _state({LIST: now, f"{KEPT}{LIST}.original": "theirs", **cut})
        assert ledger.whole("r", state, [LIST]) == {f"r.files.{LIST}": "original"}
        assert ledger.left(state, [LIST]) == ()
