"""Who is tested against whom, and when: in rounds, because two tests at once on a host would halve each other.

``all`` is a round robin tournament by the circle method; ``random:N`` is N rounds of the tournament of a shuffled
field, so that each host meets N others, none of them twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuready.core.errors import UsageError

Pair = tuple[str, str]
Round = tuple[Pair, ...]
_RANDOM = re.compile(r"random:([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Pairing:
    """``kind`` is ring, all or random; ``count`` and ``seed`` belong to random alone."""

    kind: str
    count: int = 0
    seed: int | None = None

    def __str__(self) -> str:
        return f"random:{self.count}" if self.kind == "random" else self.kind

    def rounds(self, hosts: Sequence[str]) -> tuple[Round, ...]:
        """The rounds for these hosts (distinct names), in inventory order; none for fewer than two."""
        if self.kind == "ring":
            return ring(hosts)
        if self.kind == "all":
            return tournament(hosts)
        import random  # some milliseconds, which only this needs

        shuffled = list(hosts)
        random.Random(self.seed).shuffle(shuffled)
        return tournament(shuffled)[: self.count]


def pairing(text: str, seed: int) -> Pairing:
    """``ring``, ``all`` or ``random:N`` as on the command line; UsageError for anything else."""
    if text in ("ring", "all"):
        return Pairing(text)
    if match := _RANDOM.fullmatch(text):
        return Pairing("random", int(match[1]), seed)
    raise UsageError(
        f"--pairs {text}: no way to make pairs",
        remedy="ring (each with the next), all (each with each), or random:N (each with N others)",
    )


def ring(hosts: Sequence[str]) -> tuple[Round, ...]:
    """Each host with the next one, the last with the first: two rounds, three for an odd number of hosts."""
    edges = [(host, hosts[(i + 1) % len(hosts)]) for i, host in enumerate(hosts)]
    if len(hosts) < 3:  # of two, each is the other's next
        edges = edges[:1] if len(hosts) == 2 else []
    last = edges[-1:] if len(edges) % 2 else []
    even = edges[: len(edges) - len(last)]
    return tuple(tuple(found) for found in (even[::2], even[1::2], last) if found)


def tournament(hosts: Sequence[str]) -> tuple[Round, ...]:
    """Each host with each other one, once; of an odd number one pauses in each round."""
    field: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    rounds = []
    for _ in range(len(field) - 1):
        half = len(field) // 2
        facing = zip(field[:half], reversed(field[half:]), strict=True)
        rounds.append(tuple((a, b) for a, b in facing if a is not None and b is not None))
        field = [field[0], field[-1], *field[1:-1]]
    return tuple(found for found in rounds if found)
