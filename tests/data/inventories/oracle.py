"""Answers as ansible-inventory: a line of arguments (JSON) in, a line with its exit code and output out.

Importing ansible-core costs most of a second, so this process does it once and forks for every question; each
answer comes from a pristine, real ``ansible-inventory``.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from ansible.cli.inventory import InventoryCLI


def ask(arguments: list[str], out: str, err: str) -> None:
    """In the child: become ``ansible-inventory ARGUMENTS``."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    InventoryCLI.cli_executor(["ansible-inventory", *arguments])


def answer(arguments: list[str], folder: Path) -> dict[str, object]:
    """The exit code, the JSON on stdout, the text on stderr."""
    out, err = folder / "out", folder / "err"
    for path in (out, err):
        path.write_text("")
    child = os.fork()
    if not child:
        code = 1
        try:
            ask(arguments, str(out), str(err))
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    text = out.read_text()
    return {"code": code, "output": json.loads(text) if text and not code else None, "stderr": err.read_text()}


def main() -> None:
    """Until stdin ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            replies.write(json.dumps(answer(json.loads(line), Path(folder))) + "\n")


if __name__ == "__main__":
    main()
