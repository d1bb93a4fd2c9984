"""A whole run of the fabric's tests, as data: how pairs were made, what was found, what stayed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuready.network.links import Unpaired
from gpuready.tools.fabric.schedule import Pairing
from gpuready.tools.fabric.verdict import Finding


@dataclass(frozen=True)
class Wanted:
    """What to do: how pairs are made, the tests in order, and for how many seconds write_bw measures."""

    pairing: Pairing
    tests: tuple[str, ...]
    seconds: int


@dataclass
class FabricRun:
    """``rounds`` is how many there were to be; ``findings`` in the order in which they came."""

    wanted: Wanted
    rounds: int = 0
    findings: list[Finding] = field(default_factory=list)
    unpaired: list[Unpaired] = field(default_factory=list)
    not_attempted: list[tuple[str, str, str]] = field(default_factory=list)
    """Pairs whose turn never came, and why."""

    def of(self, test: str) -> list[Finding]:
        """The findings of one test."""
        return [each for each in self.findings if each.test == test]

    def touching(self, host: str, test: str) -> list[Finding]:
        """The findings of one test in which this host took part."""
        return [each for each in self.of(test) if host in (each.server.host, each.client.host)]


def write_bw(findings: Sequence[Finding]) -> float | None:
    """What these findings say about the bandwidth of their link: the lesser of both directions, in Gbit/s."""
    return min((each.value for each in findings if each.test == "write_bw" and each.value is not None), default=None)
