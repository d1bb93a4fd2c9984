"""./dev mutants: change the code in one small way after another, and see whether a test fails.

Modules are changed by mutmut (https://mutmut.readthedocs.io), scripts by the list in tests/mutants.yaml. Each change
meets only the tests that the list names, in a copy of the checkout. A survivor is a change that no test notices.
Exit code: 0 if every survivor is on the list, with what it means; 1 otherwise, or if one on the list is caught now.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
SCRIPTS = "scripts"
#: What happened to a change that a test noticed; "timeout" is a loop without end.
_CAUGHT = ("killed", "caught by type check", "timeout")
_CONFIG = """
[tool.mutmut]
source_paths = ["src/"]
only_mutate = ["src/gpuready/{module}"]
also_copy = ["templates/"]
pytest_add_cli_args = ["-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = {tests}
type_check_command = [
  "mypy", "src/gpuready/{module}", "--python-version=3.10", "--output=json", "--disable-error-code=unused-ignore",
]
use_git_change_detection = false
track_dependencies = false
process_isolation = "forkserver"
timeout_multiplier = 5
timeout_constant = 5
"""


#: mutmut sends signals to pids of processes that may have ended: in here, nobody else has such a pid.
_APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc") if os.geteuid() == 0 else ()


@dataclass(frozen=True)
class Change:
    """One change: ``old``, which is once in ``file``, becomes ``new``; ``test`` is for pytest."""

    name: str
    file: str
    old: str
    new: str
    test: str

    def applied(self, tree: Path) -> str:
        """The file's text with the change."""
        text = (tree / self.file).read_text("utf-8")
        if text.count(self.old) != 1:
            raise SystemExit(
                f"mutants: {self.name}: {self.old!r} is {text.count(self.old)} times in {self.file}, not 1"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Table:
    """tests/mutants.yaml: module -> arguments for pytest, changes by name, and target -> survivor -> what it means."""

    modules: dict[str, str]
    changes: dict[str, Change]
    survivors: dict[str, dict[str, str]]

    def targets(self, wanted: list[str]) -> list[str]:
        """The names of modules and changes; ``scripts`` stands for all changes, nothing for all."""
        return [name for each in wanted for name in (self.changes if each == SCRIPTS else [each])] or [
            *self.modules,
            *self.changes,
        ]


def table() -> Table:
    data = yaml.safe_load((ROOT / "tests" / "mutants.yaml").read_text("utf-8"))
    changes = [Change(**each) for each in data["changes"]]
    return Table(data["modules"], {each.name: each for each in changes}, data["survivors"] or {})


def copy(tree: Path) -> None:
    """Copy the checkout to ``tree``; the package is in src, where mutmut finds it."""
    for name, to in (("deploys", "src"), ("tests", "tests"), ("templates", "templates")):
        shutil.copytree(ROOT / name, tree / to, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)


def run(tree: Path, *words: str, package: str = "src") -> subprocess.CompletedProcess[str]:
    """Run a module of Python in the copy. Hypothesis takes the same examples each time (CI)."""
    env = {**os.environ, "PYTHONPATH": str(tree / package), "CI": "1", "MYPY_CACHE_DIR": str(tree / ".mypy_cache")}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    command = [*_APART, sys.executable, "-m", *words]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)


def survivors(tree: Path, module: str, tests: str) -> tuple[int, list[str]]:
    """The number of mutants of a module, and each that survives, as ``FUNCTION: OLD -> NEW``."""
    shutil.rmtree(tree / "mutants", ignore_errors=True)
    (tree / "mutants" / "src").mkdir(parents=True)  # Python forgets a path that is not there when it starts
    config = (ROOT / "pyproject.toml").read_text("utf-8").replace('"deploys"', '"src"')
    (tree / "pyproject.toml").write_text(config + _CONFIG.format(module=module, tests=shlex.split(tests)), "utf-8")
    done = run(tree, "mutmut", "run", package="mutants/src")
    results = run(tree, "mutmut", "results", "--all", "true").stdout
    found = re.findall(r"^ *(\S+__mutmut_\d+): (.+)$", results, re.MULTILINE)
    if done.returncode or not found:
        said = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        raise SystemExit(f"mutants: {module}: mutmut failed ({done.returncode}):\n{said}")
    left = [name for name, fate in found if fate not in _CAUGHT]
    return len(found), [description(name, run(tree, "mutmut", "show", name).stdout) for name in left]


def description(name: str, diff: str) -> str:
    """A mutant by what it changes; its number changes with the code around it."""
    function = re.sub(r"^x[_ǁ]|__mutmut_\d+$", "", name.rpartition(".")[2]).replace("ǁ", ".")
    old, new = (
        " ".join(line[1:].strip() for line in diff.splitlines() if re.match(rf"[{sign}](?![{sign}]{{2}})", line))
        for sign in "-+"
    )
    return f"{function}: {old} -> {new}"


def survives(tree: Path, change: Change) -> bool:
    """Whether its test passes with the change; the file is as before afterwards."""
    path, text = tree / change.file, (tree / change.file).read_text("utf-8")
    path.write_text(change.applied(tree), "utf-8")
    try:
        done = run(tree, "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *shlex.split(change.test))
    finally:
        path.write_text(text, "utf-8")
    if done.returncode > 1:
        raise SystemExit(f"mutants: {change.name}: no test ran:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return not done.returncode


def judged(tree: Path, wanted: list[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Each target with the number of its changes and the survivors."""
    known = table()
    for target in wanted:
        if target in known.modules:
            yield (target, *survivors(tree, target, known.modules[target]))
        else:
            change = known.changes[target]
            yield target, 1, [f"{change.old} -> {change.new}"] if survives(tree, change) else []


def main() -> int:
    known = table()
    parser = argparse.ArgumentParser(prog="./dev mutants", description="change the code, and see whether a test fails")
    parser.add_argument("target", nargs="*", help=f"a module, the name of a change, or {SCRIPTS}: all changes by name")
    parser.add_argument("--list", action="store_true", help="print all targets")
    options = parser.parse_args()
    if unknown := {*options.target} - {SCRIPTS, *known.targets([])}:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; --list prints all")
    if options.list:
        print("\n".join(known.targets([])))
        return 0
    total, alive, wrong = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="gpuready-mutants.") as scratch:
        copy(Path(scratch))
        for target, number, left in judged(Path(scratch), known.targets(options.target)):
            named = known.survivors.get(target, {})
            total, alive = total + number, alive + len(left)
            wrong += len({*left} ^ {*named})
            print(f"{target}: {number} changes, {len(left)} survive", flush=True)
            for each in left:
                print(f"    {each}\n        {named.get(each, 'NOT ON THE LIST')}")
            for each in sorted({*named} - {*left}):
                print(f"    {each}\n        ON THE LIST, BUT A TEST CATCHES IT NOW")
    print(f"mutants: {total} changes, {alive} survive; tests/mutants.yaml says of each survivor what it means")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
