"""For all tests: signals, Hypothesis' settings, and which tests share a worker.

A run that was put into the background has signals ignored, and what it starts would inherit that. Hypothesis runs
without its clock: a busy machine makes no test fail. In CI the same examples every time.
"""

import os
import signal
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.command import exits

__all__ = ["exits"]

for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda number, frame: None)  # children get the default back, this process stays deaf

#: The unit of work that has the machine to itself.
_VMS = "tests/vm"

settings.register_profile(
    "gpuready", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gpuready")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for machines begins first, so that no worker is left alone with it in the end."""
    items.sort(key=lambda item: item.get_closest_marker("lab") is None)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _refuse_gevent(report.nodeid)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    _refuse_gevent(item.nodeid)


def _refuse_gevent(name: str) -> None:
    """gevent patches the whole process, which stops the workers: a test starts it in a process of its own."""
    patched = getattr(sys.modules.get("gevent.monkey"), "is_module_patched", None)
    if patched is not None and patched("socket"):
        pytest.exit(f"{name} imports gpuready.run.fleet into the tests' own process", returncode=3)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests share machines, so they stay with one worker; virtual machines have the processors to themselves.

    All of tests/vm shares two of those, which without KVM want a core each, so it is the last unit of work. The first
    worker keeps its last test until the others have ended, and gets the unit then.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return _VMS if nodeid.startswith(f"{_VMS}/") else super()._split_scope(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            if _VMS in self.workqueue:
                self.workqueue.move_to_end(_VMS)
            if [*self.workqueue] != [_VMS] or self.nodes == [node]:
                super()._assign_work_unit(node)
            elif node != self.nodes[0]:
                node.shutdown()

        def remove_node(self, node: Any) -> Any:
            crashed = super().remove_node(node)
            if len(self.nodes) == 1:
                self._reschedule(*self.nodes)
            return crashed

    return Scheduling(config, log)
