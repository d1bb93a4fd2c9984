"""docs/adding-a-component.md is true: its files are written, its lines inserted and its commands run, in a copy."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "adding-a-component.md").read_text("utf-8")
#: The last path that the text above a block names, the block's language, and the block.
BLOCKS = [
    (re.findall(r"^`([\w./-]+)`", above, re.M)[-1:], language, text)
    for above, language, text in re.findall(r"(.*?)^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
]
COPIED = (
    "deploys",
    "templates",
    "tests/components",
    "tests/network",
    "tests/model",
    "tests/data",
    "tests/verdicts.py",
    "tests/command.py",
    "tests/lab",
    "tests/conftest.py",
)


def insert(text: str, diff: str) -> str:
    """The lines that begin with +, each after the line above it, which must be there once."""
    lines, above = text.splitlines(), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert lines.count(above) == 1, above
            lines.insert(lines.index(above) + 1, line[1:])
        above = line[1:]
        assert above in lines, above
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout with the page's component."""
    copy = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / ".venv").symlink_to(sys.prefix)
    for name in re.findall(r"^`([\w./-]+)` is empty\.$", PAGE, re.M):
        (copy / name).parent.mkdir(parents=True)
        (copy / name).touch()
    path = ""
    for named, language, text in BLOCKS:
        path = named[0] if named else path
        if language == "diff":
            (copy / path).write_text(insert((copy / path).read_text("utf-8"), text), "utf-8")
        elif language not in ("console", "text"):
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_text(text, "utf-8")
    return copy


def run(command: str, copy: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy / "deploys"), "NO_COLOR": "1"}
    done = subprocess.run(command, shell=True, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_commands_show_what_the_page_says(copy: Path) -> None:
    commands = [line for _, language, text in BLOCKS if language == "console" for line in text.splitlines()]
    cases, plan, explain, verdicts = (run(command, copy) for command in commands)
    assert re.search(r"\b4 passed", cases) and re.search(r"\b8 passed", verdicts)
    (shown,) = (text for _, language, text in BLOCKS if language == "text")
    assert shown in plan
    assert "profiling: GPU performance counters for all users" in explain


def test_it_is_one_folder_and_one_entry() -> None:
    """And a check of its own is in the catalogue."""
    files = {named[0] for named, language, _ in BLOCKS if language in ("", "python", "yaml")}
    assert {Path(name).parent.name for name in files} == {"profiling"}
    changed: Counter[str] = Counter()
    path = ""
    for named, language, text in BLOCKS:
        path = named[0] if named else path
        changed[path] += len(re.findall(r"^\+", text, re.M)) if language == "diff" else 0
    assert +changed == {"deploys/gpuready/node.py": 2, "deploys/gpuready/catalogue.py": 3}


def test_its_code_is_as_the_linter_wants_it(copy: Path) -> None:
    code = f"--config {ROOT}/pyproject.toml deploys/gpuready tests/components/profiling"
    run(f".venv/bin/ruff check {code} && .venv/bin/ruff format --check {code}", copy)
