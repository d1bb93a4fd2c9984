"""The command line, run in this process: its exit code, what it printed, and its result document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jsonschema
import pytest

from gpuready.report.result import result_schema
from gpuready.state.model import NodeState

VALIDATOR = jsonschema.Draft202012Validator(result_schema())


class Said(NamedTuple):
    """What a run printed."""

    out: str
    err: str

    @property
    def document(self) -> Any:
        """The result on stdout, which is valid."""
        found = json.loads(self.out)
        VALIDATOR.validate(found)
        return found


class Exits(Protocol):
    """Run ``gpuready ARGV``, which ends with this exit code."""

    def __call__(self, code: int, *argv: str) -> Said: ...


@pytest.fixture
def exits(capsys: pytest.CaptureFixture[str]) -> Exits:
    from gpuready.cli.app import run

    def ran(code: int, *argv: str) -> Said:
        capsys.readouterr()
        assert run([*argv]) == code, capsys.readouterr().err
        return Said(*capsys.readouterr())

    return ran


def write_states(path: Path, hosts: Mapping[str, NodeState]) -> str:
    """Write a document as ``probe`` does, with the states of these hosts."""
    states = {name: {"state": state.model_dump(mode="json")} for name, state in hosts.items()}
    path.write_text(json.dumps({"schema": "gpuready/result/1", "hosts": states}))
    return str(path)
