"""docs/adding-a-component.md is true: its files are written, its lines inserted and its commands run, in a copy."""

import re
from pathlib import Path

import pytest

from gpuready.contract.removal import WholeFiles
from tests.followed import ROOT, blocks, changed, follow, run

pytestmark = pytest.mark.long

PAGE = "adding-a-component.md"
BLOCKS = blocks(PAGE)
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


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout with the page's component."""
    copy = tmp_path_factory.mktemp("copy")
    follow(PAGE, COPIED, copy)
    return copy


def test_its_commands_show_what_the_page_says(copy: Path) -> None:
    commands = [line for block in BLOCKS if block.language == "console" for line in block.text.splitlines()]
    cases, plan, explain, verdicts = (run(command, copy) for command in commands)
    assert re.search(r"\b4 passed", cases) and re.search(r"\b8 passed", verdicts)
    (shown,) = (block.text for block in BLOCKS if block.language == "text")
    assert shown in plan
    assert "profiling: GPU performance counters for all users" in explain


def test_it_is_one_folder_and_one_entry() -> None:
    """And a check of its own is in the catalogue."""
    files = {block.path for block in BLOCKS if block.language in ("", "python", "yaml")}
    assert {Path(name).parent.name for name in files} == {"profiling"}
    assert changed(PAGE) == {"deploys/gpuready/node.py": 2, "deploys/gpuready/catalogue.py": 3}


def test_its_methods_are_those_of_the_contract() -> None:
    (code,) = (
        block.text for block in BLOCKS if block.path.endswith("profiling/component.py") and block.language == "python"
    )
    methods = re.findall(r"^    def (\w+)\(self", code, re.M)
    assert len(methods) > 5 and [name for name in methods if not hasattr(WholeFiles, name)] == []


def test_its_code_is_as_the_linter_wants_it(copy: Path) -> None:
    code = f"--config {ROOT}/pyproject.toml deploys/gpuready tests/components/profiling"
    run(f".venv/bin/ruff check {code} && .venv/bin/ruff format --check {code}", copy)
