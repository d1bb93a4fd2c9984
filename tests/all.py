"""./dev test: what the README promises first; ``--all``: every test, as in CI; ``--kubernetes``: those of a cluster.

Where no test machine can run, the tests without one; in CI that is a failure, never a silent skip. Without KVM, a core
of the tests on virtual machines.
"""

import os
import subprocess
import sys

import pytest

from tests.lab.host import LabError, compilers, ensure_packages, no_vms
from tests.lab.lab import Lab, available

#: What tests without a machine run beside them. A test that lacks one of these is skipped.
_TOOLS = ("busybox-static", "groff-base", "zsh")
#: The machines' tests mostly wait, so more workers than cores; a file's tests share machines, so they stay together.
_WORKERS = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
#: What is tested on several systems runs on one of them here.
_SHORT = ("tests", "-m", "not lab and not long or promise", "-k", "not debian12 and not fedora43", *_WORKERS)
_ALL = ("tests", "--ignore=tests/kubernetes", *_WORKERS, "--durations=30", "--durations-min=15")
#: By themselves, because the programs of a cluster are built first: 10 to 30 minutes, once.
_KUBERNETES = ("tests/kubernetes", "-n", "0", "--durations=0", "--durations-min=1")
#: Without KVM the others on virtual machines take as long as all of _ALL.
_CORE = ("-m", "core or not vm")


def _left_out() -> str:
    """Where these are, and how many in each file."""
    words = ("-m", "pytest", "tests/vm", "-m", "not core", "--collect-only", "-qq")
    return subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def main() -> int:
    """pytest's exit code, or 1 where CI has no test machines."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, each of thousands of processes compiles all modules anew
    sys.dont_write_bytecode = False
    arguments = sys.argv[1:]
    whole = arguments == ["--all"]
    if not arguments or whole:
        arguments = [*(_ALL if whole else _SHORT)]
    elif arguments == ["--kubernetes"]:
        arguments = [*_KUBERNETES]
    core = False
    why = available()
    if why:
        print(f"test: no test machines here: {why}; only tests without one run", file=sys.stderr)
        if os.environ.get("CI"):
            return 1
        return pytest.main([*arguments, "-m", "not lab"])
    print("test: preparing the test machines (minutes the first time, nothing later)", file=sys.stderr)
    try:
        Lab().prepare()
        ensure_packages(_TOOLS)
        compilers()
        if whole and (no_vms() is None or os.environ.get("CI")):
            Lab().prepare_vms()
            core = not Lab().kvm()
    except LabError as e:
        print(f"test: {e}", file=sys.stderr)
        return 1
    code = pytest.main([*arguments, *(_CORE if core else ())])
    if core:
        print(f"test: NO KVM HERE, so these were left out:\n{_left_out()}", file=sys.stderr)
        print("test: ./dev test tests/vm -n 0 runs all of tests/vm, in about half an hour", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
