"""Fixtures of the system tests: real machines, the real command line.

``machine(distro)`` gives a pristine machine that is up, ``module_machine(distro)`` one for the whole module;
``gpuready`` runs the command line, ``inventory`` writes its inventories, ``sessions`` counts on the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.lab.fixtures import lab, machine, module_machine, vm_lab
from tests.system.harness import Gpuready, Inventories, Sessions
from tests.system.warm import Warm

__all__ = ["lab", "machine", "module_machine", "vm_lab"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this directory need test machines."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def gpuready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpuready]:
    """``gpuready("plan", inventory=...)`` runs the command line and returns its Result."""
    with Warm() as warm:
        yield Gpuready(tmp_path_factory.mktemp("home"), warm)


@pytest.fixture(scope="session")
def inventory(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Inventories:
    """``inventory(machine, ldso="off")`` writes an inventory and returns its path."""
    return Inventories(lab, tmp_path_factory.mktemp("inventories"))


@pytest.fixture(scope="session")
def sessions() -> type[Sessions]:
    """``sessions(machine).count()``: the commands begun on the machine over SSH since then."""
    return Sessions
