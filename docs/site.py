"""The documentation's site: a hook of MkDocs. It adds the README as the index, and the page of the commands.

Pages link to files of the repository as GitHub wants it. A linked file that is not below docs/ becomes a page or a
file of the site under ``repository/``, so that the site has no dead links. Nothing here needs a network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from docs.reference import cli

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
#: Links and images of a page that are relative: target, and anchor.
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_OF_GITHUB = re.compile(r"^\[[^\]]+\]: \.\./\.\./\S+\n?", re.M)  # such as its list of commits
_FENCE = re.compile(r"^(```.*?^```)$", re.M | re.S)
_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def repository_files() -> dict[str, str]:
    """Files outside of docs/ that pages link to, by their path in the site; those that they link to as well."""
    found = {"index.md": "README.md", **{f"repository/{name}": name for name in _PAGES}}
    waiting = [
        "README.md",
        *_PAGES,
        *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
    ]
    while waiting:
        page = waiting.pop()
        for target in links(page):
            if not target.startswith("docs/") and target not in found.values() and (ROOT / target).is_file():
                found[f"repository/{target}"] = target
                waiting += [target] if target.endswith(".md") else []
    return found


def links(page: str) -> list[str]:
    """The files that a page of the repository links to."""
    text = _FENCE.sub("", (ROOT / page).read_text("utf-8"))
    return [_resolve(page, target) for target, _ in LINK.findall(text)]


def _resolve(page: str, target: str) -> str:
    return os.path.normpath(Path(page).parent / target)


def relinked(text: str, page: str, place: str, places: Mapping[str, str]) -> str:
    """The text of ``page`` as it stands at ``place`` in the site. ``places``: where files outside of docs/ are."""

    def link(found: re.Match[str]) -> str:
        target = _resolve(page, found[1])
        there = places.get(target, target.removeprefix("docs/"))
        return f"]({os.path.relpath(there, Path(place).parent)}{found[2] or ''})"

    text = _OF_GITHUB.sub("", text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in _FENCE.split(text))


def on_config(config: MkDocsConfig) -> None:
    """Add the pages of checks to the navigation."""
    index = ROOT / "docs/reference/checks/index.md"
    names = re.findall(r"^## (\w+)$", index.read_text("utf-8"), re.M)
    areas = [{"All checks": "reference/checks/index.md"}, *({name: f"reference/checks/{name}.md"} for name in names)]
    for entry in config.nav or []:
        if "Reference" in entry:
            entry["Reference"].append({"Checks": areas})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of the commands, and the files of the repository."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/cli.md", content=cli()))
    for place, path in repository_files().items():
        files.append(File.generated(config, place, content=(ROOT / path).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    place = page.file.src_uri
    outside = repository_files()
    return relinked(markdown, outside.get(place, f"docs/{place}"), place, {path: at for at, path in outside.items()})
