"""What gpuready depends on: pyproject.toml names all that it imports, and requirements.txt pins it with hashes."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.release import LOCK, PINS

ROOT = Path(__file__).parents[2]
PROJECT = tomlkit.parse((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED = [Requirement(text) for text in PROJECT["dependencies"]]
OPTIONAL = [
    Requirement(text) for extra in ("fleet", "pytest", "remote") for text in PROJECT["optional-dependencies"][extra]
]
PYTHONS = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)


def imported() -> set[str]:
    """The top-level modules that gpuready imports, wherever the import stands."""
    found = set()
    for path in (ROOT / "deploys").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"gpuready"}


def test_what_is_imported_is_declared() -> None:
    homes = packages_distributions()
    declared = {canonicalize_name(each.name) for each in (*DECLARED, *OPTIONAL)}
    unknown = {
        name for name in imported() if not {canonicalize_name(home) for home in homes.get(name, [name])} & declared
    }
    assert unknown == set()


def test_what_is_subclassed_has_an_upper_bound() -> None:
    """Their internals are used: a new major release must not arrive unasked."""
    bounded = {each.name for each in DECLARED if any(one.operator == "<" for one in each.specifier)}
    assert {"pyinfra", "paramiko"} <= bounded


@pytest.mark.parametrize("python", PYTHONS)
def test_the_pins_satisfy_what_is_declared(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0", "implementation_name": "cpython",
                   "platform_python_implementation": "CPython"}  # fmt: skip
    pins = [Requirement(text) for text, _, _ in PINS]
    here = [each for each in pins if each.marker is None or each.marker.evaluate(environment)]
    versions = {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in here}
    assert len(versions) == len(here), "one pin for each package"
    wanted = [each for each in DECLARED if each.marker is None or each.marker.evaluate(environment)]
    assert [str(each) for each in wanted if not each.specifier.contains(versions[canonicalize_name(each.name)])] == []


def test_each_pin_has_hashes() -> None:
    assert len(PINS) > len(DECLARED)
    for text, hashes, _ in PINS:
        assert re.search(r"^[a-z0-9.-]+==[^\s;]+( ; |$)", text), text
        assert re.fullmatch(r"( \\\n    --hash=sha256:[0-9a-f]{64})+", hashes), text
    # No option, and no host: the index is the user's.
    assert "\n--" not in LOCK and "://" not in LOCK


def test_its_head_names_the_command_that_the_release_list_names() -> None:
    (command,) = re.findall(r"^#    (.*)$", LOCK.partition("==")[0], re.M)
    assert command in " ".join((ROOT / "CONTRIBUTING.md").read_text("utf-8").split())
