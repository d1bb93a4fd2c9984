"""Divide the hosts into batches, put them in order, and decide when to stop. Pure: names in, batches out.

Hosts without disruption go first, all at once. Of the others, one goes first, then a quarter of them at a time, unless
the spec's ``maintenance.batch`` or ``--batch`` sets other sizes. The smaller of the two counts.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuready.base.host_list import hostlist

#: ``--max-fail``.
MAX_FAIL = re.compile(r"[0-9]{1,6}|[0-9]{1,2}%|100%")
CAUTIOUS = "1,25%"

Batch = tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """A host to change. ``disturbed``: the permitted changes are of class recreate or above.

    ``sizes``: ``maintenance.batch`` of its spec. ``spread``: a host variable and its value; no two hosts of a batch
    have the same ``spread``.
    """

    name: str
    disturbed: bool = False
    sizes: str = ""
    spread: tuple[str, str] | None = None


def batches(members: Iterable[Member], given: str = "") -> Generator[Batch, bool | None, None]:
    """Yield the hosts in batches, each host once. ``given`` is ``--batch``.

    ``send(False)`` means that the batch proved nothing, because none of its hosts changed. The next is then no larger.
    """
    sequences: dict[tuple[str, ...], list[Member]] = {}
    for member in members:
        sequences.setdefault(_wishes(member, given), []).append(member)
    for wishes in sorted(sequences, key=len):  # first the hosts without any wish: nothing is disturbed there
        yield from _sequence(sequences[wishes], wishes)


def _wishes(member: Member, given: str) -> tuple[str, ...]:
    wishes = [wish for wish in (given, member.sizes if member.disturbed else "") if wish]
    return tuple(wishes) or ((CAUTIOUS,) if member.disturbed else ())


def _sequence(members: Sequence[Member], wishes: tuple[str, ...]) -> Generator[Batch, bool | None, None]:
    rest, stage = list(members), 0
    while rest:
        size = min((_size(wish, stage, len(members)) for wish in wishes), default=len(rest))
        batch, rest = _take(rest, size, apart=bool(wishes))
        proved = yield batch
        stage += proved is not False


def _size(wish: str, stage: int, total: int) -> int:
    words = wish.split(",")
    return _count(words[min(stage, len(words) - 1)], total) or 1


def _count(word: str, total: int) -> int:
    return total * int(word[:-1]) // 100 if word.endswith("%") else int(word)


def _take(members: Sequence[Member], size: int, *, apart: bool) -> tuple[Batch, list[Member]]:
    """Return the first ``size`` hosts and the rest. ``apart``: take no two hosts with the same ``spread``."""
    taken, rest, places = list[str](), list[Member](), set[tuple[str, str]]()
    for member in members:
        if len(taken) == size or (apart and member.spread in places):
            rest.append(member)
        else:
            taken.append(member.name)
            places |= {member.spread} if member.spread else set()
    return tuple(taken), rest


class Rollout:
    """Iterate over the batches until more hosts fail than ``--max-fail`` allows.

    ``left``: the hosts that were not started. A percentage in ``max_fail`` is of all hosts to change.
    """

    def __init__(self, members: Sequence[Member], given: str = "", max_fail: str = "0") -> None:
        self.left = [member.name for member in members]
        self._max_fail, self._most = max_fail, _count(max_fail, len(members))
        self._batches = batches(members, given)
        self._proved: bool | None = None
        self._wrong: list[str] = []

    def __iter__(self) -> Iterator[Batch]:
        while self.left and len(self._wrong) <= self._most:
            batch = self._batches.send(self._proved)
            begun = set(batch)
            self.left = [name for name in self.left if name not in begun]
            yield batch

    def record(self, *, wrong: Sequence[str], proved: bool) -> None:
        """Record the result of the last batch: which hosts went wrong, and whether any host changed."""
        self._wrong += wrong
        self._proved = proved

    @property
    def why(self) -> str:
        if len(self._wrong) <= self._most:
            return "interrupted"
        return f"{hostlist(self._wrong)} failed, and --max-fail is {self._max_fail}"
