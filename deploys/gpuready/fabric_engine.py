"""Run ``gpuready fabric``: probe all hosts, then test pairs of hosts in rounds, then all of them at once (``train``).

The pairs of a round run in parallel, and no host is in two of them. The links of a pair run one after another. So each
test measures one link alone. The engine holds the lock of each node, so that no other run changes or measures it.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial

from pyinfra.api.host import Host

from gpuready.base.errors import UnreachableError
from gpuready.contract.check import has_gpu
from gpuready.engine import Engine
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.discovery import Choices, choose
from gpuready.network.links import Link, at_work, links, remarks, tcp_links
from gpuready.network.nccl_settings import without_rdma
from gpuready.network.tcp import Wires, choose_wires
from gpuready.operations import lock
from gpuready.operations.node_state import settled_state
from gpuready.operations.pair import run_test
from gpuready.operations.training import run_training
from gpuready.operations.transport import EXECS, is_up
from gpuready.report.run import HostRun, Run
from gpuready.tools.fabric import training
from gpuready.tools.fabric.checks import judge_host
from gpuready.tools.fabric.commands import TESTS, WITH_RDMA, WITHOUT_RDMA, Test, program
from gpuready.tools.fabric.run import FabricRun, Wanted, write_bw
from gpuready.tools.fabric.schedule import Pair
from gpuready.tools.fabric.verdict import Finding, blocked, skipped


def _again(test: Test, first: Finding) -> bool:
    """Whether to run the test in the other direction, too."""
    if not test.both_ways or first.blocked or first.status == "skip":
        return False
    return test.alone or first.status in ("pass", "warn")


class FabricEngine(Engine):
    """The engine of ``gpuready fabric``."""

    _fabric: FabricRun
    _states: Mapping[str, NodeState]
    _specs: Mapping[str, NodeSpec]
    _choices: Mapping[str, Choices]
    _wires: Mapping[str, Wires]
    _nccl_over_tcp: bool

    def tests(self, wanted: Wanted) -> Run:
        """Probe, pair, test, judge. Nothing on a node changes, and no process stays behind."""
        self._fabric = self.run.fabric = FabricRun(wanted)
        try:
            return self._timed(self._tests)
        finally:
            self._settle()

    def _tests(self) -> None:
        fabric = self._fabric
        self._each(self._see, self._hosts(self.entries))
        rounds = () if fabric.wanted.only_together else fabric.wanted.pairing.rounds(list(self.entries))
        fabric.rounds = len(rounds)
        states = self._states = {run.name: run.state for run in self.run.hosts if run.state is not None}
        specs = self._specs = {name: self.entries[name].spec for name in states}
        self._choices = {name: choose(state, specs[name].nccl) for name, state in states.items()}
        rdma = not states or len(without_rdma(states, specs)) < len(states)
        fabric.wanted = fabric.wanted.for_hosts(WITH_RDMA if rdma else WITHOUT_RDMA)
        self._nccl_over_tcp = not rdma or fabric.wanted.only_tcp
        self._wires = choose_wires(states, {name: spec.nccl for name, spec in specs.items()})
        for name, found in self._choices.items():
            over_tcp = fabric.wanted.only_tcp
            self._runs[name].notes += at_work(states[name]) if over_tcp else remarks(states[name], found)
        for number, pairs in enumerate(rounds, 1):
            met = {server: client for server, client in pairs if self._ready((server, client))}
            self._each(partial(self._meet, number, met), self._hosts(met))
        together = [name for name, run in self._runs.items() if run.outcome == "ok"]
        if "train" in fabric.wanted.tests and len(together) > 1:
            self._each(partial(self._train, self._hosts(together)), self._hosts(together[:1]))

    def _stays_open(self, run: HostRun) -> bool:
        return run.outcome == "ok"

    def _see(self, host: Host) -> None:
        run = self._runs[host.name]
        self._connect(host)
        lock.hold(host)
        self.progress(host.name, "probe")
        run.saw(settled_state(host), self.entries[host.name].spec)
        run.outcome = "ok"

    def _ready(self, pair: Pair) -> bool:
        gone = [name for name in pair if self._runs[name].outcome != "ok"]
        if gone:
            self._fabric.not_attempted.append((*pair, f"{gone[0]}: {self._runs[gone[0]].outcome}"))
        return not gone

    def _meet(self, number: int, met: Mapping[str, str], host: Host) -> None:
        fabric, client = self._fabric, met[host.name]
        hosts = host, self.state.inventory.get_host(client)
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
        self.progress(client, "ok")

    def _train(self, hosts: list[Host], _: Host) -> None:
        """Train on all hosts at once."""
        began = time.monotonic()
        states = {host.name: self._states[host.name] for host in hosts}
        parts, findings = training.planned(states, self._specs, self._fabric.wanted.seconds)
        self._fabric.met.update(states)
        if parts:
            for host in hosts:
                self.progress(host.name, "train")
            findings = training.judged(parts, run_training(parts, hosts))
        seconds = time.monotonic() - began
        for finding in findings:
            self._fabric.add(replace(finding, seconds=seconds))
        for host in hosts:
            self.progress(host.name, "ok" if self._is_there(host) else "unreachable")

    def _test(self, names: tuple[str, ...], link: Link, hosts: tuple[Host, Host], number: int) -> None:
        """Run these tests over one link. If one direction of a costly test fails, the other is not tested."""
        fabric, done = self._fabric, list[Finding]()
        for name in names:
            test = TESTS[name]
            for ends, nodes in ((link.ends, hosts), (link.ends[::-1], hosts[::-1])):
                if nodes[0] is hosts[1] and not _again(test, done[-1]):
                    continue
                for node in nodes:
                    self.progress(node.name, f"{name}, round {number} of {fabric.rounds}")
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

    def _is_there(self, host: Host) -> bool:
        if is_up(host):
            return True
        run = self._runs[host.name]
        run.outcome, run.error = "unreachable", run.error or UnreachableError("the connection was lost during a test")
        return False

    def _settle(self) -> None:
        """Derive each host's checks from its findings, unless no other host could be reached from it."""
        for run in self.run.hosts:
            run.execs = self.state.inventory.get_host(run.name).connector_data.get(EXECS, run.execs)
            if run.outcome == "ok" and run.name in self._fabric.met:
                run.checks = judge_host(self._fabric, run.name, self.entries[run.name].spec, date.today())
            elif run.outcome == "ok":
                run.leave_out("none of its pairs could be tested")
