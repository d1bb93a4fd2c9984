"""Divide the hosts into batches, put them in order, and decide when to stop. Pure: names in, batches out.

Hosts without disruption go first, all at once. Of the others, one goes first, then a quarter of them at a time, unless
the spec's ``maintenance.batch`` or ``--batch`` sets other sizes. The smaller of the two counts. The shards of a run
divide these sizes, because they run at the same time.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuready.base.host_list import hostlist

#: ``--max-fail``.
MAX_FAIL = re.compile(r"[0-9]{1,6}|[0-9]{1,2}%|100%")
CAUTIOUS = "1,25%"
_BY_DEFAULT = (
    "of hosts whose changes are of class recreate or above, one goes first, then a quarter at a time; "
    "--batch or maintenance.batch sets other sizes"
)
NO_SHARE = (
    "this shard may change no host at a time: its part of the batch size is less than one host (a percentage counts "
    "the hosts to change, rounded down). Run these hosts without --shard, with fewer shards, or with larger batches"
)

Batch = tuple[str, ...]


@dataclass(frozen=True)
class Share:
    """The part of a budget, such as ``--batch``, that one of several runs may use. The parts never exceed the budget.

    ``rank``: the number of this run, from 0. ``of``: how many runs there are.
    """

    rank: int = 0
    of: int = 1

    def size(self, word: str, total: int) -> int:
        """Return this run's part of a number, or of a percentage of its ``total`` hosts."""
        if word.endswith("%"):
            return total * int(word[:-1]) // 100
        return int(word) // self.of + (self.rank < int(word) % self.of)

    def of_budget(self, text: str) -> str:
        """Return the part of a budget in its own form: ``2,25%`` of ``4,25%``."""
        return ",".join(word if word.endswith("%") else str(self.size(word, 0)) for word in text.split(","))


WHOLE = Share()


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


def batches(members: Iterable[Member], given: str = "", share: Share = WHOLE) -> Generator[Batch, bool | None, None]:
    """Yield the hosts in batches, each host once. ``given`` is ``--batch``.

    ``send(False)`` means that the batch proved nothing, because none of its hosts changed. The next is then no larger.
    A host is in no batch if the share of its sizes is less than one host.
    """
    sequences: dict[tuple[tuple[str, ...], Share], list[Member]] = {}
    for member in members:
        sequences.setdefault(_wishes(member, given, share), []).append(member)
    # First the hosts without any wish: nothing is disturbed there.
    for (wishes, part), mine in sorted(sequences.items(), key=lambda item: len(item[0][0])):
        yield from _sequence(mine, wishes, part)


def reasons(members: Sequence[Member], given: str = "") -> list[str]:
    """Say why the hosts are divided as they are; see :func:`batches`."""
    found = [f"--batch {given}"] if given else []
    disturbed = [member for member in members if member.disturbed]
    found += dict.fromkeys(f"maintenance.batch {member.sizes}" for member in disturbed if member.sizes)
    if not given and any(not member.sizes for member in disturbed):
        found.append(_BY_DEFAULT)
    apart = members if given else disturbed
    variables = dict.fromkeys(member.spread[0] for member in apart if member.spread)
    return [*found, *(f"maintenance.spread_by: never two hosts of one {variable}" for variable in variables)]


def _wishes(member: Member, given: str, share: Share) -> tuple[tuple[str, ...], Share]:
    """Return the sizes that hold for a host. Each shard has the default sizes for itself: nobody set a budget."""
    wishes = tuple(wish for wish in (given, member.sizes if member.disturbed else "") if wish)
    return ((CAUTIOUS,), WHOLE) if member.disturbed and not wishes else (wishes, share)


def _sequence(members: Sequence[Member], wishes: Sequence[str], share: Share) -> Generator[Batch, bool | None, None]:
    rest, stage = list(members), 0
    while rest:
        size = min((_size(wish, stage, len(members), share) for wish in wishes), default=len(rest))
        if not size:
            return
        batch, rest = _take(rest, size, apart=bool(wishes))
        proved = yield batch
        stage += proved is not False


def _size(wish: str, stage: int, total: int, share: Share) -> int:
    words = wish.split(",")
    return share.size(words[min(stage, len(words) - 1)], total) or int(share.of == 1)


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

    def __init__(self, members: Sequence[Member], given: str = "", max_fail: str = "0", share: Share = WHOLE) -> None:
        self.left = [member.name for member in members]
        self._most = share.size(max_fail, len(members))
        self._max_fail = max_fail if share.of == 1 else f"{max_fail} in all shards, {self._most} in this one"
        self._batches = batches(members, given, share)
        self._proved: bool | None = None
        self._ended = False
        self._wrong: list[str] = []
        self._stopped = ""

    def __iter__(self) -> Iterator[Batch]:
        while self.left and not self.stopped:
            try:
                batch = self._batches.send(self._proved)
            except StopIteration:
                self._ended = True
                return
            begun = set(batch)
            self.left = [name for name in self.left if name not in begun]
            yield batch

    def record(self, *, wrong: Sequence[str], proved: bool) -> None:
        """Record the result of the last batch: which hosts went wrong, and whether any host changed."""
        self._wrong += wrong
        self._proved = proved

    def stop(self, why: str, unbegun: Sequence[str] = ()) -> None:
        """Begin no other batch. ``unbegun``: the hosts of the last one that were not started, either."""
        self._stopped, self.left = why, [*unbegun, *self.left]

    @property
    def stopped(self) -> bool:
        return bool(self._stopped) or len(self._wrong) > self._most

    @property
    def why(self) -> str:
        if self._ended:
            return NO_SHARE
        if len(self._wrong) <= self._most:
            return self._stopped or "interrupted"
        return f"{hostlist(self._wrong)} failed, and --max-fail is {self._max_fail}"
