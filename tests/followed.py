"""A page that adds something to the code, followed: its files are written and its lines inserted, in a copy."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Block:
    """A block of a page. ``path``: the last path that the text names in a line that begins with it."""

    path: str
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The blocks of a page in docs/."""
    text, path, found = (ROOT / "docs" / page).read_text("utf-8"), "", []
    for above, language, block in re.findall(r"(.*?)^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        path = (re.findall(r"^(?:[\w ,]+ in )?`([\w./-]+)`", above, re.M) or [path])[-1]
        found.append(Block(path, language, block))
    return found


def follow(page: str, copied: Sequence[str], copy: Path) -> None:
    """Copy a part of this checkout, and do there what the page says."""
    for name in (*copied, "pyproject.toml"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    (copy / ".venv").symlink_to(sys.prefix)
    for name in re.findall(r"^`([\w./-]+)` is empty\.$", (ROOT / "docs" / page).read_text("utf-8"), re.M):
        (copy / name).parent.mkdir(parents=True)
        (copy / name).touch()
    for block in blocks(page):
        file = copy / block.path
        if block.language == "diff":
            file.write_text(_inserted(file.read_text("utf-8"), block.text), "utf-8")
        elif block.language not in ("console", "text"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")


def changed(page: str) -> Counter[str]:
    """How many lines the page inserts into each file that is there already."""
    lines: Counter[str] = Counter()
    for block in blocks(page):
        lines[block.path] += len(re.findall(r"^\+", block.text, re.M)) if block.language == "diff" else 0
    return +lines


def run(command: str, copy: Path) -> str:
    """What the command prints in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "deploys"), "NO_COLOR": "1"}
    done = subprocess.run(command, shell=True, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _inserted(text: str, diff: str) -> str:
    """The lines that begin with +, each after the line above it, which must be there once."""
    lines, above = text.splitlines(), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert lines.count(above) == 1, above
            lines.insert(lines.index(above) + 1, line[1:])
        above = line[1:]
        assert above in lines, above
    return "\n".join(lines) + "\n"
