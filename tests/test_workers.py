"""Which tests stay with one worker, which have the machine to themselves, and which run without KVM."""

import os
import sys
from collections import defaultdict
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests import all as whole
from tests.command import python

pytestmark = pytest.mark.long

#: Each test notes its file and its worker.
NOTES = """
import os, pytest
@pytest.mark.parametrize("number", range(100))
def test(number):
    with open("log", "a") as log:
        log.write(f"{__name__} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


def test_virtual_machines_wait_until_the_other_workers_have_ended(tmp_path: Path) -> None:
    """A file stays with one worker, all of tests/vm with one, which begins with it when no other works any more."""
    others, vms = ["test_v", "test_w", "test_x", "test_y", "test_z"], ["test_1", "test_2"]
    for folder, names in (("all", others), ("vm", vms)):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / "tests" / folder / f"{name}.py").write_text(NOTES)
    root = str(Path(__file__).parents[1])
    words = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "tests.conftest", "--rootdir", tmp_path)
    done = python("-m", "pytest", "-q", *words, "tests", cwd=tmp_path, env={**os.environ, "PYTHONPATH": root})
    assert done.stdout.splitlines()[-1].startswith("700 passed in"), done.stdout + done.stderr
    rows = [row.split() for row in (tmp_path / "log").read_text().splitlines()]
    workers = defaultdict(set)
    for name, worker in rows:
        workers["vm" if name in vms else name].add(worker)
    assert {name: len(found) for name, found in workers.items()} == dict.fromkeys([*others, "vm"], 1)
    assert [name for name, _ in rows[-200:]] == ["test_1"] * 100 + ["test_2"] * 100


def test_without_kvm_a_core_of_the_virtual_machines_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reboots, RDMA's mode, traffic and its counters are in it; the files of the rest are named."""
    ran = Mock(return_value=5)
    monkeypatch.setattr(sys, "argv", ["all", "--all"])
    monkeypatch.setattr(pytest, "main", ran)
    for name in ("available", "no_vms", "ensure_packages", "compilers"):
        monkeypatch.setattr(whole, name, lambda *_: None)
    monkeypatch.setattr(whole, "Lab", lambda: Mock(kvm=lambda: False))
    assert whole.main() == 5
    (chosen,) = ran.call_args.args
    listed = ("-m", "pytest", "--collect-only", "-q", "tests/vm", *chosen[1:], "-n", "0")
    core = {row.partition("::")[2] for row in python(*listed).stdout.splitlines() if "::" in row}
    assert core >= {
        "test_a_reboot_brings_it_about",
        "test_the_way_back_ends_with_a_reboot_of_its_own",
        "test_two_hosts_over_soft_roce",
        "test_prometheus_sees_both_ends_of_the_traffic",
    }
    left = [row.split(": ")[0] for row in capsys.readouterr().err.splitlines() if row.startswith("tests/vm/")]
    assert {*left} == {str(path) for path in Path("tests/vm").glob("test_*.py")}
