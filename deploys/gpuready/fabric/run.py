"""The data of one run of ``gpuready fabric``: the request, the findings, and what was not tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpuready.fabric.collective import Measured, Search
from gpuready.fabric.commands import TESTS
from gpuready.fabric.named import Named
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.verdict import Answer, Finding
from gpuready.network.links import Unpaired


@dataclass(frozen=True)
class Wanted:
    """The request: how to make pairs, the tests in order, and for how many seconds the throughput is measured.

    ``automatic``: the user named no tests, so the hosts decide. ``mpirun``: nccl-tests measure the collectives.
    """

    pairing: Pairing
    tests: tuple[str, ...]
    seconds: int
    automatic: bool = False
    mpirun: bool = False

    def for_hosts(self, tests: tuple[str, ...]) -> Wanted:
        """Return the request with these tests if the user named none."""
        return replace(self, tests=tests) if self.automatic else self

    @property
    def only_tcp(self) -> bool:
        """Whether the request tests TCP and no RDMA; nccl fits both."""
        tests = [TESTS[name] for name in self.tests]
        return any(test.tcp for test in tests) and all(test.tcp or test.gpu for test in tests)

    @property
    def without_pairs(self) -> bool:
        """Whether the request tests no pairs."""
        return not any(TESTS[name].of_pairs for name in self.tests)

    @property
    def of_several(self) -> tuple[str, ...]:
        """The tests that need more than one host."""
        return tuple(name for name in self.tests if not TESTS[name].itself)


@dataclass
class FabricRun:
    """The run. ``rounds``: the planned number of rounds. ``findings``: in the order of the tests."""

    wanted: Wanted
    rounds: int = 0
    findings: list[Finding] = field(default_factory=list)
    unpaired: list[Unpaired] = field(default_factory=list)
    not_attempted: list[tuple[str, str, str]] = field(default_factory=list)
    """Pairs that were not tested, and why: (server, client, reason)."""
    met: set[str] = field(default_factory=set)
    """The hosts with at least one pair of which both hosts were there."""
    named: tuple[Named, ...] = ()
    """The ports that the bad links share."""
    measured: tuple[Measured, ...] = ()
    """The collectives by size, over all hosts."""
    search: Search | None = None
    """The search for the host that is bad."""
    fault: str = ""
    """What it looked for (collective.Outcome)."""
    answers: list[list[Answer]] = field(default_factory=list)
    """What the hosts of each job answered that a part of the run was handed."""

    def add(self, finding: Finding) -> None:
        """Add a finding. If a tool is missing for a test that the user named, the test is unknown, not skipped."""
        named = not self.wanted.automatic and finding.tool_missing
        self.findings.append(replace(finding, status="unknown") if named else finding)

    def join(self, other: FabricRun) -> None:
        """Add what a part of the run found."""
        self.findings += other.findings
        self.not_attempted += other.not_attempted
        self.met |= other.met
        self.answers += other.answers

    def of(self, test: str) -> list[Finding]:
        """Return the findings of one test."""
        return [each for each in self.findings if each.test == test]

    def touching(self, host: str, test: str) -> list[Finding]:
        """Return the findings of one test in which this host took part."""
        return [each for each in self.of(test) if host in (each.server.host, each.client.host)]


def write_bw(findings: Sequence[Finding]) -> float | None:
    """Return the bandwidth of a link in Gbit/s: the lower one of both directions; None if it was not measured."""
    return min((each.value for each in findings if each.test == "write_bw" and each.value is not None), default=None)
