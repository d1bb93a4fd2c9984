"""What ``gpuready fabric`` does: probe all hosts, test pairs of them in rounds, then all at once (``train``).

The pairs of a round run in parallel, and no host is in two of them. The links of a pair run one after another. So each
test measures one link alone. The lock of each node is held, so that no other run changes or measures it.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial

from pyinfra.api.host import Host

from gpuready.base.errors import UnreachableError
from gpuready.contract.check import has_gpu
from gpuready.fabric import training
from gpuready.fabric.checks import judge_host
from gpuready.fabric.commands import TESTS, WITH_RDMA, WITHOUT_RDMA, Test, program
from gpuready.fabric.run import FabricRun, Wanted, write_bw
from gpuready.fabric.schedule import Pair
from gpuready.fabric.verdict import Finding, blocked, skipped
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.links import Link, at_work, links, remarks, tcp_links
from gpuready.network.nccl_settings import without_rdma
from gpuready.network.rdma_choice import choose
from gpuready.network.tcp_choice import choose_wires
from gpuready.operations import lock
from gpuready.operations.context import context
from gpuready.operations.node_state import settled_state
from gpuready.operations.transport import is_up
from gpuready.result.model import CheckResult, Error, Run
from gpuready.run.fleet import Fleet
from gpuready.verbs.fabric.pair import run_test
from gpuready.verbs.fabric.part import Fabric
from gpuready.verbs.fabric.training_run import run_training


def run_tests(wanted: Wanted, fleet: Fleet) -> Run:
    """Probe, pair, test, judge. Nothing on a node changes, and no process stays behind."""
    fabric = FabricRun(wanted)
    fleet.keeps = lambda result: result.outcome == "ok"

    def work(run: Run) -> None:
        try:
            fleet.each(partial(_see, fleet))
            tests = _Tests(fleet, fabric)
            tests.of_pairs()
            tests.of_all()
        finally:  # what was found before an interrupt
            run.parts["fabric"] = Fabric.of(fabric)

    try:
        return fleet.work("fabric", work)
    finally:
        _settle(fleet, fabric)


def _see(fleet: Fleet, host: Host) -> None:
    result = fleet.results[host.name]
    fleet.connect(host)
    lock.hold(host)
    fleet.progress(host.name, "probe")
    result.saw(settled_state(host), context(host).spec)
    result.outcome = "ok"


def _settle(fleet: Fleet, fabric: FabricRun) -> None:
    """Derive each host's checks from its findings, unless no other host could be reached from it."""
    for name, result in fleet.results.items():
        result.execs = context(fleet.host(name)).execs
        if result.outcome == "ok" and name in fabric.met:
            judged = judge_host(fabric, name, fleet.entries[name].spec, date.today())
            result.checks = list(map(CheckResult.of, judged))
        elif result.outcome == "ok":
            result.leave_out("none of its pairs could be tested")


def _again(test: Test, first: Finding) -> bool:
    """Whether to run the test in the other direction, too."""
    if not test.both_ways or first.blocked or first.status == "skip":
        return False
    return test.alone or first.status in ("pass", "warn")


class _Tests:
    """The tests between the hosts whose state is known. Findings go to ``fabric``."""

    def __init__(self, fleet: Fleet, fabric: FabricRun) -> None:
        self._fleet, self._fabric = fleet, fabric
        self._states: Mapping[str, NodeState] = {
            name: result.state for name, result in fleet.results.items() if result.state is not None
        }
        self._specs: Mapping[str, NodeSpec] = {name: fleet.entries[name].spec for name in self._states}
        self._choices = {name: choose(state, self._specs[name].nccl) for name, state in self._states.items()}
        self._wires = choose_wires(self._states, {name: spec.nccl for name, spec in self._specs.items()})
        rdma = not self._states or len(without_rdma(self._states, self._specs)) < len(self._states)
        fabric.wanted = fabric.wanted.for_hosts(WITH_RDMA if rdma else WITHOUT_RDMA)
        self._nccl_over_tcp = not rdma or fabric.wanted.only_tcp
        for name, choices in self._choices.items():
            state = self._states[name]
            fleet.results[name].notes += at_work(state) if fabric.wanted.only_tcp else remarks(state, choices)

    def of_pairs(self) -> None:
        """Test the pairs, round by round."""
        wanted = self._fabric.wanted
        rounds = () if wanted.only_together else wanted.pairing.rounds(list(self._fleet.entries))
        self._fabric.rounds = len(rounds)
        for number, pairs in enumerate(rounds, 1):
            met = {server: client for server, client in pairs if self._ready((server, client))}
            self._fleet.each(partial(self._meet, number, met), met)

    def of_all(self) -> None:
        """Train on all hosts at once, if that was asked for and more than one is left."""
        together = [name for name, result in self._fleet.results.items() if result.outcome == "ok"]
        if "train" in self._fabric.wanted.tests and len(together) > 1:
            self._fleet.each(partial(self._train, [self._fleet.host(name) for name in together]), together[:1])

    def _ready(self, pair: Pair) -> bool:
        gone = [name for name in pair if self._fleet.results[name].outcome != "ok"]
        if gone:
            self._fabric.not_attempted.append((*pair, f"{gone[0]}: {self._fleet.results[gone[0]].outcome}"))
        return not gone

    def _meet(self, number: int, met: Mapping[str, str], host: Host) -> None:
        fabric, client = self._fabric, met[host.name]
        hosts = host, self._fleet.host(client)
        fabric.met |= {host.name, client}
        names = [name for name in fabric.wanted.tests if not TESTS[name].together]
        over_tcp = tuple(name for name in names if TESTS[name].tcp or (TESTS[name].gpu and self._nccl_over_tcp))
        over_rdma = tuple(name for name in names if name not in over_tcp)
        if over_rdma:
            found, alone = links(host.name, self._choices[host.name], client, self._choices[client])
            fabric.unpaired += [each for each in alone if each not in fabric.unpaired]
            for link in found:
                self._test(over_rdma, link, hosts, number)
        if over_tcp:
            for link in tcp_links(host.name, self._wires[host.name], client, self._wires[client]):
                self._test(over_tcp, link, hosts, number)
        self._fleet.progress(client, "ok")

    def _test(self, names: tuple[str, ...], link: Link, hosts: tuple[Host, Host], number: int) -> None:
        """Run these tests over one link. If one direction of a costly test fails, the other is not tested."""
        fabric, done = self._fabric, list[Finding]()
        for name in names:
            test = TESTS[name]
            for ends, nodes in ((link.ends, hosts), (link.ends[::-1], hosts[::-1])):
                if nodes[0] is hosts[1] and not _again(test, done[-1]):
                    continue
                for node in nodes:
                    self._fleet.progress(node.name, f"{name}, round {number} of {fabric.rounds}")
                without_gpu = [node.name for node in nodes if test.gpu and not has_gpu(self._states[node.name])]
                if link.obstacle:
                    finding = blocked(test, *ends, link.obstacle)
                elif without_gpu:
                    finding = skipped(test, *ends, f"{', '.join(without_gpu)}: no GPU")
                else:
                    specs = [self._specs[end.host] for end in ends]
                    tools = program(test, specs[0]), program(test, specs[1])
                    limits = specs[0].verify.thresholds
                    finding = run_test(test, ends, nodes, tools, limits, fabric.wanted.seconds, write_bw(done))
                done.append(finding)
                fabric.add(replace(finding, round=number))
                if not all(map(self._is_there, nodes)):
                    return

    def _train(self, hosts: list[Host], _: Host) -> None:
        """Train on all hosts at once."""
        began = time.monotonic()
        states = {host.name: self._states[host.name] for host in hosts}
        parts, findings = training.planned(states, self._specs, self._fabric.wanted.seconds)
        self._fabric.met.update(states)
        if parts:
            for host in hosts:
                self._fleet.progress(host.name, "train")
            findings = training.judged(parts, run_training(parts, hosts))
        seconds = time.monotonic() - began
        for finding in findings:
            self._fabric.add(replace(finding, seconds=seconds))
        for host in hosts:
            self._fleet.progress(host.name, "ok" if self._is_there(host) else "unreachable")

    def _is_there(self, host: Host) -> bool:
        if is_up(host):
            return True
        result = self._fleet.results[host.name]
        result.outcome = "unreachable"
        result.error = result.error or Error.of(UnreachableError("the connection was lost during a test"))
        return False
