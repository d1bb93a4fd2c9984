"""``-i @local``: this machine as an inventory, with the variables of the others, and without SSH."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuready.cli.app import run
from gpuready.inventory.hosts import load


def test_it_is_one_host_with_an_empty_spec() -> None:
    (entry,) = load(["@local"]).chosen
    assert (entry.name, entry.connection.address, entry.spec.ldso) == ("@local", "@local", "auto")


def test_the_spec_of_all_is_its_spec(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("all: {vars: {gpuready: {reconverge: {on_driver_change: mend}}}, hosts: {gpu1: }}\n")
    entries = load([str(spec), "@local"]).chosen
    assert {entry.name: entry.spec.reconverge.on_driver_change for entry in entries} == {
        "gpu1": "mend",
        "@local": "mend",
    }


def test_it_has_no_host_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trust", "--yes", "-i", "@local"]) == 64
    assert "@local is reached without SSH" in capsys.readouterr().err
