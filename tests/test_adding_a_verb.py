"""docs/adding-a-verb.md is true: its files are written, its lines inserted and its command run, in a copy."""

import json
from pathlib import Path

import pytest

from tests.followed import ROOT, blocks, changed, follow, run

pytestmark = pytest.mark.long

PAGE = "adding-a-verb.md"
BLOCKS = blocks(PAGE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout with the page's verb, and an inventory."""
    copy = tmp_path_factory.mktemp("copy")
    follow(PAGE, ("deploys", "templates", "tests/data/h200-mounted-driver"), copy)
    (copy / "hosts.yaml").write_text("all: {hosts: {gpu01: {gpuready: {}}}}\n")
    return copy


def test_its_command_shows_what_the_page_says(copy: Path) -> None:
    (command,) = (block.text.strip().removeprefix("$ ") for block in BLOCKS if block.language == "console")
    (shown,) = (block.text for block in BLOCKS if block.language == "text")
    assert shown in run(command, copy)
    (copy / "result.json").write_text(run(f"{command} --output json", copy))
    (host,) = json.loads((copy / "result.json").read_text())["hosts"].values()
    assert f"gpu01  {host['kernel']['release']}  {host['kernel']['driver']}\n" == shown
    assert shown in run(".venv/bin/python -m gpuready report result.json", copy)
    assert "as uname -r prints it" in run(".venv/bin/python -m gpuready schema result", copy)
    assert "gpuready kernel -i hosts.yaml --output json" in run(".venv/bin/python -m gpuready kernel --help", copy)


def test_it_is_one_folder_and_one_line() -> None:
    files = {block.path for block in BLOCKS if block.language == "python"}
    assert files == {
        "deploys/gpuready/verbs/kernel/__init__.py",
        "deploys/gpuready/verbs/kernel/command.py",
        "deploys/gpuready/verbs/kernel/part.py",
    }
    assert sum(changed(PAGE).values()) == 1


def test_its_code_is_as_the_linter_wants_it(copy: Path) -> None:
    code = f"--config {ROOT}/pyproject.toml deploys/gpuready"
    run(f".venv/bin/ruff check {code} && .venv/bin/ruff format --check {code}", copy)
