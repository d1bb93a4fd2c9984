"""What ``gpuready fabric`` does on hosts: probe all of them, test pairs in rounds, then all at once in a job.

The pairs of a round run in parallel, and no host is in two of them. The links of a pair run one after another. So each
test measures one link alone. The lock of each node is held, so that no other run changes or measures it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from gevent.pool import Group
from pyinfra.api.host import Host

from gpuready.base.errors import UnreachableError
from gpuready.base.words import count
from gpuready.fabric.commands import TESTS, Test, program
from gpuready.fabric.job import Role, hosts_of
from gpuready.fabric.run import FabricRun, Wanted, write_bw
from gpuready.fabric.verdict import Answer, Finding, blocked, skipped
from gpuready.network.links import Link
from gpuready.operations import lock
from gpuready.operations.context import context
from gpuready.operations.node_state import settled_state
from gpuready.operations.transport import is_up
from gpuready.result.model import DONE, Error, Run
from gpuready.run.fleet import Fleet
from gpuready.verbs.fabric.conclude import conclude
from gpuready.verbs.fabric.job_run import run_job
from gpuready.verbs.fabric.pair import run_test
from gpuready.verbs.fabric.rounds import Meeting, ready, test_all


def run_tests(fleet: Fleet, *, wanted: Wanted) -> Run:
    """Probe, pair, test, judge. Nothing on a node changes, and no process stays behind."""
    fabric = FabricRun(wanted)
    fleet.keeps = lambda result: result.outcome == "ok"

    def work(run: Run) -> None:
        fleet.each(partial(_see, fleet))
        states = {name: result.state for name, result in fleet.results.items() if result.state is not None}
        test_all(fleet, fabric, states, partial(_meet_all, fleet, fabric), partial(_run_all, fleet))

    run = fleet.work("fabric", work)
    _count(fleet)
    return conclude(run, fleet, fabric)


def see(fleet: Fleet) -> Run:
    """Probe the hosts of a chunk. The part ``states`` has what was read."""

    def work(run: Run) -> None:
        fleet.each(partial(_see, fleet))
        run.parts["states"] = {host.name: host.state for host in run.hosts if host.state is not None}

    return fleet.work("fabric", work)


def meet(fleet: Fleet, *, wanted: Wanted, meetings: Sequence[Meeting]) -> Run:
    """Test the pairs of a chunk. The part ``found`` has what was found."""
    mine = [each for each in meetings if each.pair[0] in fleet.entries]
    return _chunk(fleet, wanted, lambda fabric: _meet_all(fleet, fabric, mine))


def run_jobs(fleet: Fleet, *, wanted: Wanted, jobs: Sequence[Sequence[Role]]) -> Run:
    """Run jobs side by side on the hosts of a chunk, which are theirs. The part ``found`` has what they answered."""
    return _chunk(fleet, wanted, lambda fabric: fabric.answers.extend(_run_all(fleet, jobs)))


def _chunk(fleet: Fleet, wanted: Wanted, test: Callable[[FabricRun], None]) -> Run:
    """Connect to hosts that :func:`see` has probed, and test them."""
    fabric = FabricRun(wanted)
    fleet.keeps = lambda result: result.outcome == "ok"

    def reach(host: Host) -> None:
        _reach(fleet, host)
        fleet.results[host.name].outcome = "ok"

    def work(run: Run) -> None:
        run.parts["found"] = fabric
        fleet.each(reach)
        test(fabric)

    try:
        return fleet.work("fabric", work)
    finally:
        _count(fleet)


def _see(fleet: Fleet, host: Host) -> None:
    _reach(fleet, host)
    fleet.progress(host.name, "probe")
    result = fleet.results[host.name]
    result.saw(settled_state(host), context(host).spec)
    result.outcome = "ok"


def _reach(fleet: Fleet, host: Host) -> None:
    fleet.connect(host)
    lock.hold(host)


def _count(fleet: Fleet) -> None:
    for name, result in fleet.results.items():
        result.execs = context(fleet.host(name)).execs


def _meet_all(fleet: Fleet, fabric: FabricRun, meetings: Sequence[Meeting]) -> None:
    there = {each.pair[0]: each for each in meetings if ready(fleet, fabric, each.pair)}
    fleet.each(lambda host: _meet(fleet, fabric, there[host.name]), there)


def _meet(fleet: Fleet, fabric: FabricRun, meeting: Meeting) -> None:
    fabric.met.update(meeting.pair)
    for names, link in meeting.legs:
        _test(fleet, fabric, meeting, names, link)
    fleet.progress(meeting.pair[1], DONE)


def _test(fleet: Fleet, fabric: FabricRun, meeting: Meeting, names: Sequence[str], link: Link) -> None:
    """Run these tests over one link, which may join a port to itself.

    If one direction of a costly test fails, the other is not tested.
    """
    hosts, done = (fleet.host(meeting.pair[0]), fleet.host(meeting.pair[1])), list[Finding]()
    for name in names:
        test = TESTS[name]
        for back, (ends, nodes) in enumerate(((link.ends, hosts), (link.ends[::-1], hosts[::-1]))):
            if back and not _again(test, done[-1]):
                continue
            for node in nodes:
                fleet.progress(node.name, f"{name}, round {meeting.round} of {meeting.rounds}")
            if link.obstacle:
                finding = blocked(test, *ends, link.obstacle)
            elif test.gpu and meeting.without_gpu:
                finding = skipped(test, *ends, f"{', '.join(meeting.without_gpu)}: no GPU")
            else:
                specs = [fleet.entries[end.host].spec for end in ends]
                tools = program(test, specs[0]), program(test, specs[1])
                limits = specs[0].verify.thresholds
                finding = run_test(test, ends, nodes, tools, limits, fabric.wanted.seconds, write_bw(done))
            done.append(finding)
            fabric.add(replace(finding, round=meeting.round))
            if not all(_is_there(fleet, node) for node in nodes):
                return


def _again(test: Test, first: Finding) -> bool:
    """Whether to run the test in the other direction, too."""
    if not test.both_ways or first.blocked or first.status == "skip":
        return False
    return test.alone or first.status in ("pass", "warn")


def _run_all(fleet: Fleet, jobs: Sequence[Sequence[Role]]) -> list[list[Answer]]:
    """Run jobs side by side; a node has a role in several only with other GPUs."""
    names = hosts_of(jobs)
    answers: list[list[Answer]] = []
    if all(fleet.results[name].outcome == "ok" for name in names):
        fleet.each(lambda host: answers.extend(_run_jobs(fleet, names, jobs)), names[:1])
    return answers or [[Answer(trouble=_trouble(fleet, role.end.host)) for role in roles] for roles in jobs]


def _trouble(fleet: Fleet, name: str) -> str:
    return "" if (outcome := fleet.results[name].outcome) == "ok" else outcome


def _run_jobs(fleet: Fleet, names: Sequence[str], jobs: Sequence[Sequence[Role]]) -> list[list[Answer]]:
    for roles in jobs:
        for role in roles:
            fleet.progress(role.end.host, f"{role.command.test.name} with {count(len(roles), 'host')}")
    group = Group()
    try:
        running = [
            group.spawn(run_job, roles, [fleet.host(role.end.host) for role in roles], number)
            for number, roles in enumerate(jobs)
        ]
        group.join(raise_error=True)
    finally:
        group.kill()
    for name in names:
        fleet.progress(name, DONE if _is_there(fleet, fleet.host(name)) else "unreachable")
    return [each.get() for each in running]


def _is_there(fleet: Fleet, host: Host) -> bool:
    if is_up(host):
        return True
    result = fleet.results[host.name]
    result.outcome = "unreachable"
    result.error = result.error or Error.of(UnreachableError("the connection was lost during a test"))
    return False
