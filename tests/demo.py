"""./dev demo: the main job, on a machine that did not exist a minute ago.

Boots a test machine, shows the plan, converges, converges again (nothing to do), verifies, and takes it away. Where no
test machine can run (no root, macOS, a container without privileges), it plans this machine and verifies a recorded
H200 node instead; both only read.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab import node
from tests.lab.host import LabError
from tests.lab.lab import Lab, available

_GPUREADY = str(Path(sys.executable).parent / "gpuready")
_REPORT = Path(tempfile.gettempdir()) / "gpuready-demo.html"
#: How to have a machine that stays.
KEEP = ".venv/bin/python -m tests.lab up"
_RECORDED = Path(__file__).parent / "data/h200-mounted-driver/state.json"


def main() -> int:
    """The demo's exit code: 0 when every step was as it should be."""
    why = available()
    if why:
        with tempfile.TemporaryDirectory() as directory:
            return _read_only(Path(directory), why)
    print("demo: preparing the test machine (minutes the first time, nothing later)", file=sys.stderr)
    lab = Lab()
    try:
        lab.prepare(["debian13"])
        with lab.machine("debian13", name=_free()) as machine:
            # A machine without a GPU that says so: otherwise "no GPU seen" would be a failure, as it should.
            made = machine.inventory(hardware={"gpus": "none"}, runtimes={"docker": {"default_runtime": True}})
            return _show(made.rename(made.with_name("demo.yaml")))
    except LabError as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1


def _free() -> str:
    """A name that no demo of another checkout uses."""
    return next(name for number in itertools.count(1) if not node.home(name := f"demo{number}").exists())


def _show(file: Path) -> int:
    print(file.read_text("utf-8"), flush=True)
    for words in (["plan"], ["apply", "--yes"], ["apply", "--yes"], ["verify"]):
        if code := _run(file.parent, [*words, "-i", file.name]):
            print(f"demo: exit {code}", file=sys.stderr)
            return code
    print("demo: converged, converged again with nothing to do, verified")
    print(f"demo: the machine is removed; to keep one: {KEEP}, and later down")
    return 0


def _read_only(directory: Path, why: str) -> int:
    """Plan this machine, which needs Linux and root or sudo, and verify the recorded node."""
    spec = {"hardware": {"gpus": 1}, "toolkit": {"version": "1.20.0"}}  # what the recorded node has
    _write(directory / "recorded.yaml", {"hosts": {"h200": {"gpuready": spec}}})
    gpus = "auto" if Path("/dev/nvidiactl").exists() else "none"
    _write(directory / "here.yaml", {"vars": {"gpuready": {"hardware": {"gpus": gpus}}}})
    planned = _run(directory, ["plan", "-i", "here.yaml", "-i", "@local"]) == 0
    shutil.copy(_RECORDED, directory / "h200.json")
    # The recorded node has its packages from a test repository.
    code = _run(directory, ["verify", "-i", "recorded.yaml", "--state", "h200.json", "--skip", "repository",
                            "--output", "human", "--output", f"html:{_REPORT}"])  # fmt: skip
    missing = "apply" if planned else "apply and a plan of this machine"
    print(f"demo: verified a recorded H200 node; its report is {_REPORT}", file=sys.stderr)
    print(f"demo: not shown: {missing}, because {why}", file=sys.stderr)
    return code


def _write(file: Path, group: dict[str, object]) -> None:
    file.write_text(json.dumps({"all": group}) + "\n", "utf-8")
    print(f"{file.name}: {file.read_text('utf-8')}", flush=True)


def _run(directory: Path, words: Sequence[str]) -> int:
    print(f"$ gpuready {' '.join(words)}", flush=True)
    code = subprocess.run([_GPUREADY, *words], cwd=directory, check=False).returncode
    print(flush=True)
    return code


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="./dev demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(__doc__ or "").partition("\n\n")[2],
        epilog=f"To keep a machine: {KEEP}",
    ).parse_args()
    sys.exit(main())
