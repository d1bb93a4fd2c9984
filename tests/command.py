"""The command line, in this process or one of its own: its exit code, what it printed, and its result document."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jsonschema
import pytest

from gpuready.cli.parts import parts
from gpuready.model.state import NodeState
from gpuready.result.document import result_schema
from tests.lab import scale

VALIDATOR = jsonschema.Draft202012Validator(result_schema(parts()))


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

    def __call__(self, code: int, *argv: object) -> Said: ...


@pytest.fixture
def exits(capsys: pytest.CaptureFixture[str]) -> Exits:
    from gpuready.cli.app import run

    def ran(code: int, *argv: object) -> Said:
        capsys.readouterr()
        assert run([*map(str, argv)]) == code, capsys.readouterr().err
        return Said(*capsys.readouterr())

    return ran


def python(*argv: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGV`` without a terminal. ``more``: arguments of :func:`subprocess.run`."""
    usual: dict[str, Any] = {"stdin": None if "input" in more else subprocess.DEVNULL, "timeout": scale.seconds(120)}
    usual |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "check": False}
    return subprocess.run([sys.executable, *map(str, argv)], **{**usual, **more})


def gpuready(*argv: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run ``gpuready ARGV`` in a process of its own."""
    return python("-m", "gpuready", *argv, **more)


def imported(*argv: object) -> set[str]:
    """The modules that ``gpuready ARGV`` imports."""
    code = "import sys; from gpuready.cli.main import run; run(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)"
    done = python("-c", code, *argv, check=True)
    assert done.stdout
    return set(done.stderr.split())


def write_hosts(folder: Path, text: str = "all: {hosts: {a: {gpuready: {}}}}\n") -> str:
    """Write an inventory, of one host by default."""
    (folder / "hosts.yaml").write_text(text)
    return str(folder / "hosts.yaml")


def write_states(path: Path, hosts: Mapping[str, NodeState]) -> str:
    """Write a document as ``probe`` does, with the states of these hosts."""
    states = {name: {"state": state.model_dump(mode="json")} for name, state in hosts.items()}
    path.write_text(json.dumps({"schema": "gpuready/result/1", "hosts": states}))
    return str(path)
