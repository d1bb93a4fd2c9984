"""The order of the tests of ``gpuready fabric``: which pairs meet in which round, over which links. Pure.

``_rounds`` asks ``network/`` for the ports, interfaces and links of each pair; for jobs, ``fabric/job.py`` asks it.
It is the same for one process (:mod:`gpuready.verbs.fabric.work`) and for workers
(:mod:`gpuready.verbs.fabric.divided`), which test what they are handed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gpuready.base.words import count
from gpuready.contract.check import has_gpu
from gpuready.fabric import collective, loopback, mpirun, training
from gpuready.fabric.commands import TESTS, WITH_RDMA, WITHOUT_RDMA, commands
from gpuready.fabric.job import Role, planned
from gpuready.fabric.named import named
from gpuready.fabric.run import FabricRun
from gpuready.fabric.search import bound
from gpuready.fabric.tcp_tests import SOCKETS, more_sockets
from gpuready.fabric.verdict import Answer, skipped
from gpuready.model.network import NetDevice, Network
from gpuready.network.links import Link, at_work, links, loops, remarks, tcp_links
from gpuready.network.nccl_conf import of_jobs
from gpuready.network.nccl_settings import without_rdma
from gpuready.network.rdma_choice import choose
from gpuready.network.tcp_choice import choose_wires
from gpuready.result.model import HostResult

if TYPE_CHECKING:
    from gpuready.fabric.schedule import Pair
    from gpuready.fabric.verdict import Finding
    from gpuready.inventory.hosts import HostEntry
    from gpuready.model.spec import NodeSpec
    from gpuready.model.state import NodeState
    from gpuready.operations.events import Progress


class Hosts(Protocol):
    """The hosts of the run: a fleet or a cluster."""

    entries: dict[str, HostEntry]
    results: dict[str, HostResult]
    progress: Progress


@dataclass(frozen=True)
class Meeting:
    """The tests of one pair: each link, and the names of its tests.

    ``without_gpu``: the hosts of the pair that have no GPU. A host that is paired with itself tests its ports alone.
    """

    pair: Pair
    round: int
    rounds: int
    legs: tuple[tuple[tuple[str, ...], Link], ...]
    without_gpu: tuple[str, ...]


#: Tests all pairs of a round.
Meet = Callable[[Sequence[Meeting]], None]
#: Runs jobs side by side, and returns the answers of their hosts.
RunJobs = Callable[[Sequence[Sequence[Role]]], list[list[Answer]]]


def test_all(hosts: Hosts, fabric: FabricRun, states: Mapping[str, NodeState], meet: Meet, run: RunJobs) -> None:
    """Test the pairs round by round, then each port by itself, then all hosts at once, as far as that was asked for.

    Then, if the search names a host, each port of that one by itself.
    """

    def there() -> dict[str, NodeState]:
        return {each: states[each] for each, result in hosts.results.items() if result.outcome == "ok"}

    try:
        for meetings in _rounds(hosts, fabric, states):
            meet(meetings)
    finally:  # also of what was measured before an interrupt
        fabric.named = named(fabric.findings)
    _advise(hosts, fabric, states)
    if loopback.TEST.name in fabric.wanted.tests:
        _loopback(hosts, fabric, there(), meet)
    for name, test in (("train", _train), ("collective", _collective)):
        together = there()
        if name in fabric.wanted.tests and len(together) > 1:
            fabric.met.update(together)
            test(hosts, fabric, together, run)
    search = fabric.search
    if search and search.named and not search.gpus and fabric.fault != "wrong":  # it compares no data
        bad = {name: state for name, state in there().items() if name in search.named}
        if loopback.TEST.name not in fabric.wanted.tests:
            _loopback(hosts, fabric, {name: each for name, each in bad.items() if _loops(hosts, name, each)}, meet)
        found = [each for each in fabric.of(loopback.TEST.name) if each.client.host in bad]
        fabric.search = replace(search, summary=f"{search.summary}{loopback.summary(found)}")


def _loops(hosts: Hosts, name: str, state: NodeState) -> list[Link]:
    return loops(name, choose(state, hosts.entries[name].spec.nccl))


def _loopback(hosts: Hosts, fabric: FabricRun, states: Mapping[str, NodeState], meet: Meet) -> None:
    """Test each port of these hosts by itself: the hosts at once, the ports of a host one after another."""
    fabric.met.update(states)
    meetings = []
    for name, state in states.items():
        found = _loops(hosts, name, state)
        most = sum(commands(loopback.TEST, *link.ends, fabric.wanted.seconds)[1].limit for link in found)
        hosts.progress(name, f"loopback of {count(len(found), 'port')}: at most {most} s")
        if found:
            meetings.append(Meeting((name, name), 1, 1, tuple(((loopback.TEST.name,), link) for link in found), ()))
        else:
            fabric.add(loopback.nothing(name))
    try:
        meet(meetings)
    finally:  # what was measured before an interrupt is compared, too
        shares = {name: entry.spec.verify.thresholds.write_bw for name, entry in hosts.entries.items()}
        mine = loopback.compared(fabric.of(loopback.TEST.name), shares)
        fabric.findings = [*(each for each in fabric.findings if each.test != loopback.TEST.name), *mine]


def _advise(hosts: Hosts, fabric: FabricRun, states: Mapping[str, NodeState]) -> None:
    """Note for each host on TCP how many sockets NCCL needs for what tcp_bw measured, unless they are set."""
    specs = _specs(hosts, states)
    for name in without_rdma(states, specs):
        mine = [each for each in fabric.of("tcp_bw") if each.client.host == name and each.status in ("pass", "warn")]
        best = max(mine, key=lambda each: each.value or 0, default=None)
        network = states[name].network
        decided = not of_jobs(specs[name], states[name]).keys().isdisjoint(SOCKETS)
        if best is None or decided or not isinstance(network, Network):
            continue
        driver = network.devices.get(best.client.netdev, NetDevice()).driver
        if found := more_sockets(best.value or 0, best.more, driver):
            extra = ", ".join(f"{key}: {count}" for key, count in zip(SOCKETS, found, strict=True))
            hosts.results[name].notes.append(
                f"TCP to {best.server.host} moves {best.value:.3g} Gbit/s with eight sockets, but "
                f"{best.more['one_stream']:.3g} with one, and NCCL opens one for a connection: set nccl: {{extra: "
                f"{{{extra}}}}}, and compare gpuready fabric --tests collective"
            )


def _specs(hosts: Hosts, names: Iterable[str]) -> dict[str, NodeSpec]:
    return {name: hosts.entries[name].spec for name in names}


def _train(hosts: Hosts, fabric: FabricRun, states: Mapping[str, NodeState], run: RunJobs) -> None:
    began, seconds = time.monotonic(), fabric.wanted.seconds
    roles, findings = planned(
        training.TEST, lambda _: training.arguments(seconds), seconds, states, _specs(hosts, states)
    )
    if roles:
        findings = training.judged(roles, *run([roles]))
    for each in findings:
        fabric.add(replace(each, seconds=time.monotonic() - began))


def _collective(hosts: Hosts, fabric: FabricRun, states: Mapping[str, NodeState], run: RunJobs) -> None:
    """Run the collectives on all hosts; if they fail, on parts of them until the bad host is named."""
    began, seconds, specs = time.monotonic(), fabric.wanted.seconds, _specs(hosts, states)
    limits = specs[next(iter(specs))].verify.thresholds
    gloo = all(spec.hardware.without_gpus for spec in specs.values())

    def plan(scope: collective.Scope, names: Iterable[str], gpus: Sequence[int]) -> tuple[list[Role], list[Finding]]:
        some = {name: states[name] for name in names}
        arguments, most = partial(scope.arguments, seconds, gloo), len(scope.collectives) * seconds
        return planned(collective.TEST, arguments, most, some, {name: specs[name] for name in some}, gpus)

    roles, findings = plan(collective.Scope(), states, ())
    if not roles:
        for each in findings:
            fabric.add(each)
        return
    prove = collective.counted
    if fabric.wanted.mpirun and (silent := [role.end for role in roles if "." not in role.end.address]):
        for role in roles:
            why = f"mpirun needs an IPv4 address of each host: {', '.join(map(str, silent))} has none"
            fabric.add(skipped(collective.TEST, role.end, role.end, why))
        return
    if fabric.wanted.mpirun:
        ((answer,),) = run([[mpirun.role(roles, seconds)]])
        answers, prove = [answer] * len(roles), mpirun.proof
        first = mpirun.judged(roles, answer, limits)
    else:
        (answers,) = run([roles])
        first = collective.judged(roles, answers, limits)
    fabric.measured, fabric.fault = first.measured, first.fault

    def trials(groups: Sequence[tuple[Sequence[str], Sequence[int]]]) -> list[collective.Outcome]:
        made = [plan(first.scope, names, gpus)[0] for names, gpus in groups]
        known = not fabric.wanted.mpirun  # the first job has found torch
        jobs = [[replace(role, command=replace(role.command, known=known)) for role in job] for job in made]
        answers = iter(run([job for job in jobs if job]))
        return [collective.judged(job, next(answers) if job else [], limits) for job in jobs]

    if first.fault:
        took, most = time.monotonic() - began, bound(len(states))
        for name in states:
            hosts.progress(name, f"search for the bad host: at most {most} rounds of about {took:.0f} s")
        gpus = {role.end.host: 0 if gloo else role.ranks for role in roles}
        spread = {name: hosts.entries[name].spread for name in states}
        racks = {name: place[1] for name, place in spread.items() if place}
        fabric.search = collective.find(tuple(states), gpus, trials, racks)
    for each in collective.findings(roles, answers, first, fabric.search, prove):
        fabric.add(replace(each, seconds=time.monotonic() - began))


def ready(hosts: Hosts, fabric: FabricRun, pair: Pair) -> bool:
    """Tell whether both hosts can be tested, and keep why not."""
    gone = [name for name in pair if hosts.results[name].outcome != "ok"]
    if gone:
        fabric.not_attempted.append((*pair, f"{gone[0]}: {hosts.results[gone[0]].outcome}"))
    return not gone


def _rounds(hosts: Hosts, fabric: FabricRun, states: Mapping[str, NodeState]) -> Iterator[list[Meeting]]:
    """Give what is tested in each round, with the hosts that are still there when it begins."""
    specs = {name: hosts.entries[name].spec for name in states}
    choices = {name: choose(state, specs[name].nccl) for name, state in states.items()}
    wires = choose_wires(states, {name: spec.nccl for name, spec in specs.items()})
    rdma = not states or len(without_rdma(states, specs)) < len(states)
    fabric.wanted = wanted = fabric.wanted.for_hosts(WITH_RDMA if rdma else WITHOUT_RDMA)
    for name, chosen in choices.items():
        hosts.results[name].notes += at_work(states[name]) if wanted.only_tcp else remarks(states[name], chosen)
    names = [name for name in wanted.tests if TESTS[name].of_pairs]
    nccl_over_tcp = not rdma or wanted.only_tcp
    over_tcp = tuple(name for name in names if TESTS[name].tcp or (TESTS[name].gpu and nccl_over_tcp))
    over_rdma = tuple(name for name in names if name not in over_tcp)
    rounds = () if wanted.without_pairs else wanted.pairing.rounds(list(hosts.entries))
    fabric.rounds = len(rounds)
    for number, pairs in enumerate(rounds, 1):
        meetings = []
        for server, client in pairs:
            if not ready(hosts, fabric, (server, client)):
                continue
            legs = []
            if over_rdma:
                found, alone = links(server, choices[server], client, choices[client])
                fabric.unpaired += [each for each in alone if each not in fabric.unpaired]
                legs += [(over_rdma, link) for link in found]
            if over_tcp:
                legs += [(over_tcp, link) for link in tcp_links(server, wires[server], client, wires[client])]
            bare = tuple(name for name in (server, client) if not has_gpu(states[name]))
            meetings.append(Meeting((server, client), number, fabric.rounds, tuple(legs), bare))
        yield meetings
