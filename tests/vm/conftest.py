"""Fixtures of the tests on virtual machines, which boot for most of a minute without KVM: so two of them serve many.

``pair`` are two that a private wire joins, for all files that name it; the others start their own.
"""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.lab import VM, Lab
from tests.lab.fixtures import lab, machine, module_machine, vm_lab
from tests.system.conftest import inventory
from tests.system.harness import Gpuready
from tests.system.warm import Warm

__all__ = ["inventory", "lab", "machine", "module_machine", "vm_lab"]

#: What each leaves suits the next: no ib_core yet, then one in mode exclusive; at the end they are rebooted.
_ORDER = (
    "test_attach",
    "test_nvidia_module",
    "test_secure_boot",
    "test_nccl",
    "test_exporter",
    "test_fabric",
    "test_vm",
    "test_rdma",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files in their order, which the pair's state follows; all need the lab."""
    here = Path(__file__).parent
    ours = [item for item in items if item.path.parent == here]
    for item in ours:
        item.add_marker(pytest.mark.lab)
        item.add_marker(pytest.mark.vm)
    ours.sort(key=lambda item: _ORDER.index(item.path.stem))
    items[:] = [*ours, *(item for item in items if item.path.parent != here)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the consoles of the virtual machines: what they did when they fell silent."""
    report = yield
    if report.failed:
        ours = [vm for vm in Lab().machines() if isinstance(vm, VM) and vm.record.owner == os.getpid()]
        report.sections += [(f"Console of {vm.name}", vm.console()) for vm in ours]
    return report


@pytest.fixture(scope="session")
def gpuready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpuready]:
    """As for other machines, but without KVM a processor is emulated: a probe takes many times as long."""
    with Warm() as warm:
        yield Gpuready(tmp_path_factory.mktemp("home"), warm, probe_timeout=120)


@pytest.fixture(scope="session")
def pair(vm_lab: Lab) -> Iterator[tuple[VM, ...]]:
    """Two virtual machines; whoever changes them leaves them fit for the files after it."""
    with vm_lab.vms(2) as both:
        yield both
