"""./dev test: what README and docs promise; with ``--all`` every test, as in CI.

Where no test machine can run, the tests without one; in CI that is a failure, never a silent skip.
"""

import os
import sys

import pytest

from tests.lab.host import LabError, compilers, ensure_packages, no_vms
from tests.lab.lab import Lab, available

#: What tests without a machine run beside them. A test that lacks one of these is skipped.
_TOOLS = ("busybox-static", "groff-base", "skopeo", "zsh")
#: The machines' tests mostly wait, so more workers than cores; a file's tests share machines, so they stay together.
_WORKERS = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
_SHORT = ("tests", "-m", "not lab and not long or promise", *_WORKERS)
_ALL = ("tests", *_WORKERS)
#: Without KVM these take longer than all others together.
_SLOW = tuple(f"tests/vm/test_{name}.py" for name in ("exporter", "rdma", "vm"))


def main() -> int:
    """pytest's exit code, or 1 where CI has no test machines."""
    arguments = sys.argv[1:]
    whole = arguments == ["--all"]
    if whole or not arguments:
        arguments = [*(_ALL if whole else _SHORT)]
    left_out: tuple[str, ...] = ()
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
            left_out = () if Lab().kvm() else _SLOW
    except LabError as e:
        print(f"test: {e}", file=sys.stderr)
        return 1
    code = pytest.main([*arguments, *(f"--ignore={path}" for path in left_out)])
    if left_out:
        print(f"test: NO KVM HERE, so these were left out: {' '.join(left_out)}\n"
              "test: ./dev test tests/vm -n 0 runs them, in about half an hour", file=sys.stderr)  # fmt: skip
    return code


if __name__ == "__main__":
    sys.exit(main())
