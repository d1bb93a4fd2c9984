"""Pytest fixtures of the lab; a folder's conftest.py imports those that it wants.

Where the lab cannot run, its tests are skipped with the reason; in CI (CI=true) that is a failure, because a test run
that silently tested nothing must not look like success.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.lab import Lab, Machine, available
from tests.lab.host import no_vms

MachineFactory = Callable[..., Machine]


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The lab, with everything built; machines that an earlier, dead test run left are removed."""
    why = available()
    if why and os.environ.get("CI") == "true":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    found = Lab()
    found.prepare()
    found.reap()
    yield found
    found.reap(os.getpid())


@pytest.fixture(scope="session")
def vm_lab(lab: Lab) -> Lab:
    """The same lab where virtual machines can run, too: vm_lab.vm(), vm_lab.vms(2)."""
    why = no_vms()
    if why and os.environ.get("CI") != "true":
        pytest.skip(why)
    lab.prepare_vms()
    return lab


@pytest.fixture
def machine(lab: Lab) -> Iterator[MachineFactory]:
    """Makes pristine machines, machine("debian12"), each of which is up and lives as long as the test."""
    with ExitStack() as stack:
        yield lambda distro="debian13", **options: stack.enter_context(lab.machine(distro, **options))


@pytest.fixture(scope="module")
def module_machine(lab: Lab) -> Iterator[MachineFactory]:
    """The same, one machine per distribution for the whole module: for tests that only look."""
    made: dict[str, Machine] = {}
    with ExitStack() as stack:

        def get(distro: str = "debian13") -> Machine:
            if distro not in made:
                made[distro] = stack.enter_context(lab.machine(distro))
            return made[distro]

        yield get
