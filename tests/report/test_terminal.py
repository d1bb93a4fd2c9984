"""Whatever a node says in whatever field, nothing but text and our own colours reaches a terminal, in every format."""

import ast
import copy
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gpuready.cli.app import run
from gpuready.model.state import NodeState
from gpuready.result.text import Painter, one_line, printable
from tests.cli.test_cli_nccl import node
from tests.model.probe_answers import h200
from tests.network.gid_tables import sysfs

PACKAGE = Path(__file__).parents[2] / "deploys" / "gpuready"
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x1b[31m\u202e\u200b\r\x00\x7f\udc80\nOK, 8 GPU checks"
OURS = re.compile(rb"\x1b\[(?:0|1|2|31|32|33|36)m")
FORMS = ("human", "json", "jsonl")
INVENTORY = "all: {hosts: {gpu01: }, vars: {gpuready: {hardware: {gpus: 1}, toolkit: {mode: cdi}}}}\n"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all strings, and of all keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))
    if isinstance(value, str):
        yield path


def put(state: dict[str, Any], path: tuple[Any, ...], text: str) -> bool:
    """Put it there, if the model takes it."""
    here = state
    for key in path[:-1]:
        here = here[key]
    before, here[path[-1]] = here[path[-1]], text
    try:
        NodeState.model_validate(state)
    except ValidationError:
        here[path[-1]] = before
        return False
    return True


def hostile(*, whole: bool) -> dict[str, Any]:
    """A state with escapes in every string of the model: instead of it, or after it; and in every key."""
    rdma = node(1, device="mlx5_0").model_copy(
        update={"rdma": sysfs("mlx5\x1b[2J_0", "1", gids=["3 10.0.0.1 v2 ens1"])}
    )
    lists = {name: ["first"] for name, field in NodeState.model_fields.items() if field.annotation == tuple[str, ...]}
    state = json.loads(h200().model_copy(update={"rdma": rdma.rdma, "network": rdma.network}).model_dump_json())
    state |= {name: found for name, found in lists.items() if not state[name]}
    for name in list(state["files"]):
        state["files"][f"{name}{EVIL}"] = copy.deepcopy(state["files"][name])
    for name in ("packages", "units", "tools", "rdma", "wheels"):
        if isinstance(state[name], dict):
            state[name] |= {f"{key}{EVIL}": copy.deepcopy(value) for key, value in state[name].items()}
    state["active"] = {name: {"rc": 1, "out": EVIL} for name in ("cuda", "smoke.docker", "torch", "scrape")}
    done = [put(state, path, EVIL if whole else f"{_at(state, path)}{EVIL}") for path in list(leaves(state))]
    assert sum(done) > 80
    return state


def _at(state: Any, path: tuple[Any, ...]) -> str:
    for key in path:
        state = state[key]
    return str(state)


RUNS = [
    *(f"{verb} --output {form} --color always" for verb in ("plan", "verify") for form in (*FORMS, "github", "gitlab")),
    *(f"nccl --output {form} --color always" for form in FORMS),
    *(f"nccl --output {form}" for form in ("env", "conf", "docker", "kubernetes")),
    "launch hosts",
    "render docker --color always",
    "compat --image-cuda 12.4.1",
    *(f"{verb} --output junit" for verb in ("plan", "verify", "nccl", "compat --image-cuda 12.4.1")),
]
MANY = """
import sys
from gpuready.cli.main import run
for line in sys.argv[2:]:
    verb, *more = line.split()
    run([verb, "-i", sys.argv[1] + "/hosts.yaml", "--state", sys.argv[1] + "/states.json", *more])
"""


def recorded(argv: list[str]) -> bytes:
    """What a terminal would get of a program, both streams."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as program:
        os.close(theirs)
        found = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the last one has closed it
                break
            found += part
        assert program.wait(60) == 0, found[-2000:]
    os.close(ours)
    return found


@pytest.mark.fault("D8")
@pytest.mark.fault("escapes-elsewhere")
@pytest.mark.parametrize("whole", [True, False], ids=["instead", "after"])
def test_no_control_character_of_a_node_reaches_the_terminal(whole: bool, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(INVENTORY)
    document = {"schema": "gpuready/result/1", "hosts": {"gpu01": {"state": hostile(whole=whole)}}}
    (tmp_path / "states.json").write_text(json.dumps(document))
    shown = recorded([sys.executable, "-c", MANY, str(tmp_path), *RUNS])
    lines = shown.partition(b"<?xml")[0].decode().splitlines()
    assert len(lines) > 100 and not [line for line in lines if line.startswith("OK, 8 GPU checks")]
    assert b"\\x1b]0;owned\\x07" in shown and b"Traceback" not in shown, shown[-3000:].decode()
    text = OURS.sub(b"", shown).replace(b"\r\n", b"\n").decode("utf-8")
    odd = {char for char in text if char != "\n" and not char.isprintable()}
    assert not odd


@pytest.mark.fault("D8")
@pytest.mark.parametrize("form", ["env", "conf", "docker", "kubernetes"])
@pytest.mark.parametrize("name", ["mlx5\x1b[2J", "mlx5\nLD_PRELOAD=/x", "mlx5$(id)", "mlx5'; id; '"])
def test_a_device_whose_name_is_no_plain_word_is_in_no_setting(
    form: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hosts.yaml").write_text(INVENTORY)
    (tmp_path / "state.json").write_text(node(1, device=name).model_dump_json())
    where = ["-i", str(tmp_path / "hosts.yaml"), "--state", str(tmp_path / "state.json")]
    assert run(["nccl", *where, "--output", form]) == 3
    told = capsys.readouterr()
    assert told.out == "" and "\x1b" not in told.err and ("cannot be used" in told.err or "no RDMA device" in told.err)


def test_colours_are_ours_alone() -> None:
    paint = Painter(True)
    assert printable(paint("red", "FAIL") + "\x1b[32mOK\x1b[0m") == "\x1b[31mFAIL\x1b[0m\\x1b[32mOK\\x1b[0m"
    assert printable("Zürich → 日本\tx\r\u2028\U000e0041\ufeff") == "Zürich → 日本    x\\x0d\\u2028\\U000e0041\\ufeff"
    assert one_line("a\nOK") == "a\\nOK"


#: Who may write to the standard streams: the module of the sinks' users, the one that draws, the scripts of their own.
WRITERS = {
    "base/https.py",
    "cli/output.py",
    "cli/progress.py",
    "cli/sink.py",
    "cli/main.py",
    "model/schema.py",
    "network/in_container.py",
    "pyinfra.py",
}


FORBIDDEN = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write",
             "traceback.print_exc", "traceback.print_exception", "os.system", "sys.exit"}  # fmt: skip


@pytest.mark.fault("D8")
def test_only_the_sinks_write_to_the_standard_streams() -> None:
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        bad = called & FORBIDDEN
        assert not bad or str(path.relative_to(PACKAGE)) in WRITERS, (path, bad)
