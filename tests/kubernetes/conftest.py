"""Fixtures of the tests with a cluster: the tier of ``./dev test --kubernetes``, because its build takes long."""

from pathlib import Path

import pytest

from tests.lab.fixtures import lab
from tests.system.conftest import gpuready, inventory

__all__ = ["gpuready", "inventory", "lab"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this directory need test machines."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.lab)
