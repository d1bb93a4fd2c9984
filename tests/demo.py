"""./dev demo: the main job, on a machine that did not exist a minute ago.

Boots a test machine, shows the plan, converges, converges again (nothing to do), verifies, and takes it away.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lab.host import LabError
from tests.lab.lab import Lab, available

_GPUREADY = str(Path(sys.executable).parent / "gpuready")
_WITHOUT = (
    "without it, './dev test' still runs the unit tests, and 'gpuready plan -i user@host,' works on a host of yours"
)


def main() -> int:
    """The demo's exit code: 0 when every step was as it should be."""
    why = available()
    if why:
        print(f"demo: no test machines here: {why}; {_WITHOUT}", file=sys.stderr)
        return 1
    print("demo: preparing the test machine (minutes the first time, nothing later)", file=sys.stderr)
    lab = Lab()
    try:
        lab.prepare(["debian13"])
        with lab.machine("debian13", name="demo1") as node:
            # A machine without a GPU that says so: otherwise "no GPU seen" would be a failure, as it should.
            made = node.inventory(hardware={"gpus": "none"}, runtimes={"docker": {"default_runtime": True}})
            return _show(made.rename(made.with_name("demo.yaml")))
    except LabError as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1


def _show(file: Path) -> int:
    print(file.read_text("utf-8"), flush=True)
    for words in (["plan"], ["apply", "--yes"], ["apply", "--yes"], ["verify"]):
        print(f"$ gpuready {' '.join(words)} -i demo.yaml", flush=True)
        done = subprocess.run([_GPUREADY, *words, "-i", file.name], cwd=file.parent, check=False)
        print(flush=True)
        if done.returncode:
            print(f"demo: exit {done.returncode}", file=sys.stderr)
            return done.returncode
    print("demo: converged, converged again with nothing to do, verified")
    return 0


if __name__ == "__main__":
    sys.exit(main())
