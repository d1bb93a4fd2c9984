"""Fixtures of the system tests: real machines, the real command line.

``fresh(distro)`` gives a pristine machine that is up, ``shared(distro)`` one for the whole module; both run the command
line for it. For several at once ``gpuready`` runs it, and ``inventory`` writes its inventories.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.lab.fixtures import MachineFactory, lab, machine, module_machine, vm_lab
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host, Hosts
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


@pytest.fixture
def fresh(machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> Hosts:
    """``fresh(distro)``: a pristine machine for this test."""
    return lambda distro="debian13": Host(machine(distro), gpuready, inventory)


@pytest.fixture(scope="module")
def shared(module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> Hosts:
    """``shared(distro)``: the module's machine of that distribution."""
    return lambda distro="debian13": Host(module_machine(distro), gpuready, inventory)
