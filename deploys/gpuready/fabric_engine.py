"""Run ``gpuready fabric``: probe all hosts, then test pairs of hosts in rounds.

The pairs of a round run in parallel, and no host is in two of them. The links of a pair run one after another. So each
test measures one link alone. The engine holds the lock of each node, so that no other run changes or measures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial

from pyinfra.api.host import Host

from gpuready.core.check import has_gpu
from gpuready.core.errors import UnreachableError
from gpuready.engine import Engine
from gpuready.network.discovery import Choices, choose
from gpuready.network.links import Link, links, remarks
from gpuready.operations import lock
from gpuready.operations.node_state import node_state
from gpuready.operations.pair import run_test
from gpuready.operations.transport import EXECS, is_up
from gpuready.report.run import HostRun, Run
from gpuready.tools.fabric.checks import judge_host
from gpuready.tools.fabric.commands import TESTS
from gpuready.tools.fabric.run import FabricRun, Wanted, write_bw
from gpuready.tools.fabric.schedule import Pair
from gpuready.tools.fabric.verdict import Finding, blocked, skipped


class FabricEngine(Engine):
    """The engine of ``gpuready fabric``."""

    def tests(self, wanted: Wanted) -> Run:
        """Probe, pair, test, judge. Nothing on a node changes, and no process stays behind."""
        fabric = self.run.fabric = FabricRun(wanted)
        try:
            return self._timed(lambda: self._tests(fabric))
        finally:
            self._settle(fabric)

    def _tests(self, fabric: FabricRun) -> None:
        self._each(self._see, self._hosts(self.entries))
        rounds = fabric.wanted.pairing.rounds(list(self.entries))
        fabric.rounds = len(rounds)
        chosen = {
            run.name: choose(run.state, self.entries[run.name].spec.nccl)
            for run in self.run.hosts
            if run.state is not None
        }
        for name, found in chosen.items():
            self._runs[name].notes += remarks(self._runs[name].state, found)
        for number, pairs in enumerate(rounds, 1):
            met = {server: client for server, client in pairs if self._ready(fabric, (server, client))}
            self._each(partial(self._meet, fabric, number, met, chosen), self._hosts(met))

    def _stays_open(self, run: HostRun) -> bool:
        return run.outcome == "ok"

    def _see(self, host: Host) -> None:
        run = self._runs[host.name]
        self._connect(host)
        lock.hold(host)
        self.progress(host.name, "probe")
        run.saw(node_state(host), self.entries[host.name].spec)
        run.outcome = "ok"

    def _ready(self, fabric: FabricRun, pair: Pair) -> bool:
        gone = [name for name in pair if self._runs[name].outcome != "ok"]
        if gone:
            fabric.not_attempted.append((*pair, f"{gone[0]}: {self._runs[gone[0]].outcome}"))
        return not gone

    def _meet(
        self, fabric: FabricRun, number: int, met: Mapping[str, str], chosen: Mapping[str, Choices], host: Host
    ) -> None:
        client = met[host.name]
        hosts = host, self.state.inventory.get_host(client)
        found, alone = links(host.name, chosen[host.name], client, chosen[client])
        fabric.unpaired += [each for each in alone if each not in fabric.unpaired]
        for link in found:
            self._test(fabric, link, hosts, number)
        self.progress(client, "ok")

    def _test(self, fabric: FabricRun, link: Link, hosts: tuple[Host, Host], number: int) -> None:
        """Run all tests over one link. If one direction fails, the other is not tested."""
        done: list[Finding] = []
        for name in fabric.wanted.tests:
            test = TESTS[name]
            for ends, nodes in ((link.ends, hosts), (link.ends[::-1], hosts[::-1])):
                if nodes[0] is hosts[1] and not (test.both_ways and done[-1].status == "pass"):
                    continue
                for node in nodes:
                    self.progress(node.name, f"{name}, round {number} of {fabric.rounds}")
                without_gpu = [node.name for node in nodes if not self._has_gpu(node)] if test.gpu else []
                if link.obstacle:
                    finding = blocked(test, *ends, link.obstacle)
                elif without_gpu:
                    finding = skipped(test, *ends, f"{', '.join(without_gpu)}: no GPU")
                else:
                    limits = self.entries[ends[0].host].spec.verify.thresholds
                    finding = run_test(test, ends, nodes, limits, fabric.wanted.seconds, write_bw(done))
                done.append(finding)
                fabric.findings.append(replace(finding, round=number))
                if not all(map(self._is_there, nodes)):
                    return

    def _has_gpu(self, host: Host) -> bool:
        state = self._runs[host.name].state
        return state is not None and has_gpu(state)

    def _is_there(self, host: Host) -> bool:
        if is_up(host):
            return True
        run = self._runs[host.name]
        run.outcome, run.error = "unreachable", run.error or UnreachableError("the connection was lost during a test")
        return False

    def _settle(self, fabric: FabricRun) -> None:
        """Derive each host's checks from its findings."""
        for run in self.run.hosts:
            run.execs = self.state.inventory.get_host(run.name).connector_data.get(EXECS, run.execs)
            if run.outcome == "ok":
                run.checks = judge_host(fabric, run.name, self.entries[run.name].spec, date.today())
                if not any(fabric.touching(run.name, test) for test in fabric.wanted.tests):
                    run.checks = []
                    run.leave_out("none of its pairs could be tested")
