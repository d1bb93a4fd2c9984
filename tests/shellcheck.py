"""Run shellcheck over every shell script of the project: ``python -m tests.shellcheck [NAME ...]``.

Templates are checked as rendered, once with a value in every place and once with all that may be empty left empty.
The scripts in their quoted here-documents (``<<'SH'``) run on the node as well, so they are checked too. Exit codes are
shellcheck's: 0 without a finding, 1 with one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from gpuready import resources
from tests.scripts import PARTS, SCRIPTS, empty, values

ROOT = Path(__file__).parents[1]
PLAIN = ("dev", ".ci/run", "deploys/gpuready/carried/build.sh")


def documents(script: str) -> list[str]:
    """The scripts within a script."""
    return [found[2] for found in re.finditer(r"<<'(SH|RUN)'[^\n]*\n(.*?\n)\1\n", script, re.DOTALL)]


def scripts() -> dict[str, str]:
    """Every script, by a name that tells the template and the variant."""
    found = {name.replace("/", "."): (ROOT / name).read_text("utf-8") for name in PLAIN}
    for name in SCRIPTS:
        if name in PARTS:
            continue
        for variant, given in (("full", values(name, "value")), ("empty", empty(name))):
            text = resources.script(name, **given)
            key = f"{name.replace('/', '.')}.{variant}"
            found[key] = text
            found |= {f"{key}.document{n}": inner for n, inner in enumerate(documents(text), 1)}
    return found


def main(wanted: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="gpuready-shellcheck.") as directory:
        paths = []
        for name, text in scripts().items():
            if not wanted or name.split(".")[0] in wanted:
                path = Path(directory) / f"{name}.sh"
                path.write_text(text, "utf-8")
                paths.append(path.name)
        return subprocess.run(["shellcheck", "-s", "sh", "-f", "gcc", *paths], cwd=directory, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
