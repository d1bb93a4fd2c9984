"""Pages name only files that exist: their relative links, and paths of this repository between backticks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [page for folder in (".", "docs", "tests/components", ".github") for page in ROOT.glob(f"{folder}/*.md")]
LINK = re.compile(r"\]\((?!https?:|#|\.\./)([^)#]+)")
PATH = re.compile(r"`((?:deploys|docs|inventories|templates|tests)/[\w./-]+\.(?:j2|json|md|py|sh|yaml))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    links = {page.parent / name for name in LINK.findall(text)}
    made = page.name == "adding-a-component.md"  # a test of its own follows it
    paths = set() if made else {ROOT / name for name in PATH.findall(text)}
    assert {path.relative_to(ROOT).as_posix() for path in links | paths if not path.exists()} == set()
