"""``gpuready fabric`` on the workers of a cluster: each round's pairs are divided among them, and decided on here.

A worker holds the lock of a node while its pair is tested. Nothing here imports pyinfra or gevent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpuready.fabric.job import hosts_of
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.verdict import Answer
from gpuready.run.access import Work
from gpuready.verbs.fabric.conclude import conclude
from gpuready.verbs.fabric.rounds import Meeting, test_all

if TYPE_CHECKING:
    from gpuready.fabric.job import Role
    from gpuready.model.state import NodeState
    from gpuready.result.model import Run
    from gpuready.run.cluster import Cluster

_MODULE = "gpuready.verbs.fabric.work"


def run_tests(cluster: Cluster, *, wanted: Wanted) -> Run:
    """As :func:`gpuready.verbs.fabric.work.run_tests`, on the workers."""
    fabric = FabricRun(wanted)
    states: dict[str, NodeState] = {}

    def took(run: Run) -> None:
        states.update(run.parts.get("states", {}))
        if "found" in run.parts:
            fabric.join(run.parts["found"])

    def do(function: str, names: Sequence[str], together: int, **options: Any) -> None:
        work = Work(f"{_MODULE}:{function}", {"wanted": fabric.wanted, **options})
        with _kept(cluster, names):
            cluster.each(work, names, together=together)

    def meet(meetings: Sequence[Meeting]) -> None:
        names = list(dict.fromkeys(name for each in meetings for name in each.pair))
        do("meet", names, max((len(set(each.pair)) for each in meetings), default=1), meetings=meetings)

    def run_jobs(jobs: Sequence[Sequence[Role]]) -> list[list[Answer]]:
        names = hosts_of(jobs)
        fabric.answers = []
        do("run_jobs", names, len(names), jobs=jobs)
        return fabric.answers or [[Answer(trouble="its worker ended") for _ in roles] for roles in jobs]

    def work(run: Run) -> None:
        cluster.each(Work(f"{_MODULE}:see"), list(cluster.entries))
        test_all(cluster, fabric, states, meet, run_jobs)

    cluster.took = took
    return conclude(cluster.work("fabric", work), cluster, fabric)


@contextmanager
def _kept(cluster: Cluster, names: Sequence[str]) -> Iterator[None]:
    """Keep what the first look found on these hosts; of the body's results only take how it ended."""
    before = {name: cluster.results[name] for name in names}
    try:
        yield
    finally:
        for name, result in before.items():
            last = cluster.results[name]
            result.outcome, result.error = last.outcome, last.error
            result.execs, result.seconds = last.execs, last.seconds
            cluster.results[name] = result
