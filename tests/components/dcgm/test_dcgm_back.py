"""What ``remove`` does with DCGM: what gpuready installed goes, and what was there stays as it was."""

import pytest

from gpuready.components.dcgm.component import RECORD, Dcgm, DcgmRemove
from gpuready.contract.compare import compare
from gpuready.contract.removal import Removal
from tests.components.cases import node_of
from tests.components.closing import close

CUDA12, CUDA13 = ("datacenter-gpu-manager-4-cuda12", "datacenter-gpu-manager-4-cuda13")
GONE = {f"dcgm.{CUDA13}": None}


@pytest.mark.parametrize(
    ("record", "diff", "args"),
    [
        (f"{CUDA13}\nlibsomething\n", GONE | {"dcgm.enabled": False, "dcgm.active": False}, (False, False)),
        (f"dcgm.active\n{CUDA13}\ndcgm.enabled\n", GONE, (True, True)),
        ("dcgm.enabled\n", {"dcgm.active": False}, (True, False)),
    ],
)
def test_only_what_gpuready_did_is_undone(record: str, diff: dict[str, object], args: tuple[bool, bool]) -> None:
    both = dict.fromkeys((CUDA12, CUDA13), "1:4.5.2-1")
    there = {"packages": both, "units": {"nvidia-dcgm.service": {"enabled": "enabled"}}, "files": {RECORD: record}}
    spec, state = node_of("dcgm", {}, there)
    found = compare(Removal(Dcgm()), spec, state)
    assert {c.key: c.expected for c in found.diff} == diff
    assert [step.args for step in close(Removal(Dcgm()), spec, state, found.diff).steps] == [DcgmRemove(*args, ("",))]
    assert found.disruption.name == ("recreate" if GONE.items() <= diff.items() else "none")


def test_what_gpuready_never_touched_stays() -> None:
    spec, state = node_of("dcgm", {}, {"packages": {CUDA13: "1:4.5.2-1"}})
    assert not compare(Removal(Dcgm()), spec, state).applies


def test_packages_that_cannot_be_read_are_not_removed() -> None:
    there = {"packages": {"unknown": "dpkg: exit 2"}, "units": {"unknown": "no answer"}, "files": {RECORD: CUDA13}}
    found = compare(Removal(Dcgm()), *node_of("dcgm", {}, there))
    assert "dpkg: exit 2" in found.error and "no answer" in found.error


@pytest.mark.parametrize(("install", "notes"), [(True, 1), (False, 0)])
def test_a_note_says_that_nothing_can_be_installed_yet(install: bool, notes: int) -> None:
    found = compare(Dcgm(), *node_of("dcgm", {"dcgm": {"install": install, "diag": 1}}, {}))
    assert not found.applies and len(found.notes) == notes
