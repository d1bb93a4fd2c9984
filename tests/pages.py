"""The pages of the documentation, and the commands that they show with their output."""

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gpuready.cuda.tables import published

ROOT = Path(__file__).parents[1]
_FOLDERS = (".", "docs", "docs/guides", "docs/explanation", "tests/components", ".github")
PAGES = [page for folder in _FOLDERS for page in sorted(ROOT.glob(f"{folder}/*.md"))]
#: A block of code: its language, and its text.
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in one language."""
    return [text for named, text in BLOCK.findall(page.read_text("utf-8")) if named == language]


@dataclass(frozen=True)
class Command:
    """A command of a page, and the output that the page shows below it."""

    page: Path
    line: str
    shown: str

    @property
    def argv(self) -> list[str]:
        """The arguments, without a redirection."""
        words = shlex.split(self.line, comments=True)
        ends = [i for i, word in enumerate(words) if word in (">", "|", "&&", "<")]
        return words[1 : min(ends, default=len(words))]

    @property
    def offline(self) -> bool:
        """It connects to nothing: a node's recorded state, or no node at all."""
        verb = self.argv[0]
        if verb == "bundle":
            return False
        if "--merge" in self.argv or (verb == "report" and "-i" in self.argv):  # the shards, or the nodes, come first
            return False
        alone = ("completion", "inventory", "report", "schema", "example")
        if {"--state", "--help", "--version"} & set(self.argv) or verb in alone:
            return True
        if verb in ("render", "launch"):
            return self.argv[1] not in ("docker", "hosts")
        if verb == "explain":
            return "-i" not in self.argv
        named = [word for option, word in pairwise(self.argv) if option == "--image"]
        return verb == "compat" and "-i" not in self.argv and all(map(published, named))


def commands(page: Path) -> list[Command]:
    found = []
    for block in blocks(page, "console"):
        for part in re.split(r"^(?=[$#] )", block, flags=re.M):
            line, _, shown = part.partition("\n")
            if line[:2] in ("$ ", "# "):
                found.append(Command(page, line[2:], shown))
    return found


def matches(shown: str, out: str, *, like: bool = False) -> bool:
    """Does the output have the shown lines, in this order? A line ``...`` stands for any lines, at an end for text.

    ``like``: numbers, key fingerprints and the width of columns may differ.
    """
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
            continue
        text = re.escape(line.removesuffix(" ..."))
        if like:
            text = re.sub(r"SHA256:\S+", r"SHA256:\\S+", text)
            text = re.sub(r"(?<![A-Za-z\d])\d+(?:\\\.\d+)*(?![A-Za-z])", r"[\\d.]+", text)
            text = re.sub(r"(?:\\ )+", r"\\ +", text)
        pattern += text + (r".*\n" if line.endswith(" ...") else r"\n")
    return not shown or re.fullmatch(pattern, out if out.endswith("\n") else out + "\n") is not None
