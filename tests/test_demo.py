"""The demo shows something where no test machine can run, too."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import demo
from tests.lab import node
from tests.lab.host import LabError

ROOT = Path(__file__).parents[1]


def test_the_help_says_how_to_keep_a_machine() -> None:
    told = subprocess.check_output([sys.executable, "-m", "tests.demo", "--help"], cwd=ROOT, text=True)
    pages = (told, (ROOT / "dev").read_text("utf-8"), (ROOT / "docs/tutorial.md").read_text("utf-8"))
    assert all(demo.KEEP in page for page in pages)


def test_a_machine_that_is_there_already_has_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "home", lambda name: tmp_path / name)
    record = node.Record("demo1", "debian13", 0, "image", "", 0)
    node.save(record)
    with pytest.raises(LabError, match=r"machine demo1 already\n  fix:     \S+ -m tests.lab down --name demo1 "):
        node.save(record)


def test_without_test_machines_it_verifies_a_recorded_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "available", lambda: "test machines need root")
    monkeypatch.setattr(demo, "_REPORT", tmp_path / "report.html")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert demo.main() == 0
    out, err = capfd.readouterr()
    assert "OK: 1 node is ready; 24 GPU checks" in out
    assert "demo: not shown: apply" in err and "test machines need root" in err
    assert "<title>" in (tmp_path / "report.html").read_text("utf-8")
