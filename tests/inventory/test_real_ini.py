"""INI inventories of well-known projects: hosts, groups and variables are what ansible-inventory says."""

import json
from pathlib import Path

import pytest

from tests.inventory.oracle import EXPECTED, ansible_inventory, inventories, ours, theirs, write

pytestmark = pytest.mark.long

INVENTORIES = inventories()
SAID = json.loads(EXPECTED.read_text("utf-8"))


def test_there_are_enough_and_all_with_vars_directories() -> None:
    assert len(INVENTORIES) >= 25 and INVENTORIES.keys() == SAID.keys()
    assert all(any("_vars/" in file for file in files) for files in INVENTORIES.values())


@pytest.mark.parametrize("name", INVENTORIES)
def test_gpuready_reads_what_ansible_reads(name: str, tmp_path: Path) -> None:
    write(tmp_path, INVENTORIES[name])
    hosts, groups = ours([str(tmp_path / next(iter(INVENTORIES[name])))])
    assert {"hosts": hosts, "groups": groups} == SAID[name]


def test_ansible_still_says_so(tmp_path: Path) -> None:
    pytest.importorskip("ansible", reason="ansible-core is the reference here")
    with ansible_inventory() as ask:
        for name, files in INVENTORIES.items():
            write(tmp_path / name, files)
            hosts, groups = theirs(ask, [str(tmp_path / name / next(iter(files)))])
            assert {"hosts": hosts, "groups": groups} == SAID[name], name
