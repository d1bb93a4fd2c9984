"""Schedule the pairs in rounds: two tests at the same time on one host would slow each other down.

``all`` is a round-robin tournament by the circle method. ``random:N`` is N rounds of the tournament of the shuffled
hosts, so that each host meets N different ones.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuready.base.errors import UsageError

Pair = tuple[str, str]
Round = tuple[Pair, ...]
_RANDOM = re.compile(r"random:([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Pairing:
    """How to make pairs. ``kind`` is ring, all or random; ``count`` and ``seed`` are for random only."""

    kind: str
    count: int = 0
    seed: int | None = None

    def __str__(self) -> str:
        return f"random:{self.count}" if self.kind == "random" else self.kind

    def rounds(self, hosts: Sequence[str]) -> tuple[Round, ...]:
        """Return the rounds for these hosts (distinct names, in inventory order); none for fewer than two."""
        if self.kind == "ring":
            return ring(hosts)
        if self.kind == "all":
            return tournament(hosts)
        import random  # takes some milliseconds, and only this needs it

        shuffled = list(hosts)
        random.Random(self.seed).shuffle(shuffled)
        return tournament(shuffled)[: self.count]


def pairing(text: str, seed: int) -> Pairing:
    """Parse ``ring``, ``all`` or ``random:N`` from the command line; raises UsageError for anything else."""
    if text in ("ring", "all"):
        return Pairing(text)
    if match := _RANDOM.fullmatch(text):
        return Pairing("random", int(match[1]), seed)
    raise UsageError(
        f"--pairs {text}: unknown pairing",
        remedy="ring (each with the next), all (each with each), or random:N (each with N others)",
    )


def ring(hosts: Sequence[str]) -> tuple[Round, ...]:
    """Pair each host with the next one, the last with the first: two rounds, three for an odd number of hosts."""
    edges = [(host, hosts[(i + 1) % len(hosts)]) for i, host in enumerate(hosts)]
    if len(hosts) < 3:  # two hosts are one pair
        edges = edges[:1] if len(hosts) == 2 else []
    last = edges[-1:] if len(edges) % 2 else []
    even = edges[: len(edges) - len(last)]
    return tuple(tuple(found) for found in (even[::2], even[1::2], last) if found)


def tournament(hosts: Sequence[str]) -> tuple[Round, ...]:
    """Pair each host with each other one, once. With an odd number, one host pauses in each round."""
    field: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    rounds = []
    for _ in range(len(field) - 1):
        half = len(field) // 2
        facing = zip(field[:half], reversed(field[half:]), strict=True)
        rounds.append(tuple((a, b) for a, b in facing if a is not None and b is not None))
        field = [field[0], field[-1], *field[1:-1]]
    return tuple(found for found in rounds if found)
