"""Which members of a group are bad, if tests can only tell whether a whole group works. Pure.

Half of the suspects is tested beside the other half. A half of one is tested with a member that is known to be good.
So a fault of one member among N is found within 2 * log2(N) rounds. It is named only if it fails again: a test other
than the first one failed, and all other members of that test are good.

A member alone proves little, since nothing goes over the network: it can fail, but if it passes, it is not good yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Group = tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """A test of some members together. Without a result, it proves nothing."""

    members: Group
    passed: bool | None


def bound(members: int) -> int:
    """Return the number of rounds that are enough: twice the halvings of so many members, rounded up."""
    return 2 * (members - 1).bit_length()


def good(trials: Sequence[Trial]) -> set[str]:
    """Return the members of all tests that passed, except for those that were alone."""
    return {member for each in trials if each.passed and len(each.members) > 1 for member in each.members}


def named(trials: Sequence[Trial]) -> Group:
    """Return the bad members. The first trial is the one that began the search."""
    fine = good(trials)
    left = [[member for member in each.members if member not in fine] for each in trials[1:] if each.passed is False]
    return tuple(dict.fromkeys(each[0] for each in left if len(each) == 1))


def suspects(trials: Sequence[Trial]) -> list[Group]:
    """Return the smallest groups of which at least one member must be bad."""
    fine = good(trials)
    left = {tuple(m for m in each.members if m not in fine) for each in trials if each.passed is False}
    sets = sorted((each for each in left if each), key=lambda each: (len(each), trials[0].members.index(each[0])))
    return [each for each in sets if not any(set(other) < set(each) for other in sets)]


def in_order(members: Group, places: Mapping[str, str]) -> Group:
    """Return the members with those of one place, such as a rack, beside each other."""
    first = {place: number for number, place in reversed(list(enumerate(places.get(each, "") for each in members)))}
    return tuple(sorted(members, key=lambda each: first[places.get(each, "")]))


def _cut(group: Group, places: Mapping[str, str]) -> int:
    """Return where to cut a group in two: between two places if that is within a sixth of the middle, else there.

    What connects two places, such as the uplink of a rack, is then tested by no half. A cut that is farther from the
    middle could take more rounds than :func:`bound` promises.
    """
    size = len(group)
    between = [at for at in range(1, size) if places.get(group[at - 1]) != places.get(group[at])]
    near = [at for at in between if 3 * abs(2 * at - size) <= size]
    return min(near, key=lambda at: abs(2 * at - size), default=(size + 1) // 2)


def next_round(trials: Sequence[Trial], places: Mapping[str, str] | None = None) -> list[Group]:
    """Return the groups to test side by side, no member in two of them; none: there is nothing more to find.

    ``places``: where a member is, such as its rack; the members of the first trial are :func:`in_order` of them.
    """
    places = places or {}
    known, fine, tried = named(trials), good(trials), {frozenset(each.members) for each in trials[1:]}
    pending = [each for each in suspects(trials) if not set(each) & set(known)]
    free = [member for member in trials[0].members if member in fine]
    groups: list[Group] = []
    taken: set[str] = set()
    for each in pending:
        if taken & set(each):
            continue
        middle = _cut(each, places)
        for half in (each[:middle], each[middle:]):
            if len(half) == 1:
                # A good one of the same place, so that what connects two places is not tested here, either.
                free.sort(key=lambda member: places.get(member) != places.get(half[0]))
                half = (*half, *free[:1])
                free = free[1:]
            if len(half) > 1 and len(half) < len(trials[0].members) and frozenset(half) not in tried:
                groups.append(half)
                taken |= set(half)
    if groups or known or not pending:
        return groups
    # Nobody is known to be good: suspects meet in other pairs, and at last each is alone.
    among = [member for member in trials[0].members if member not in fine]
    for size in (2, 1):
        for pair in combinations(among, size):
            if not taken & set(pair) and frozenset(pair) not in tried and size < len(trials[0].members):
                groups.append(pair)
                taken |= set(pair)
        if groups:
            break
    return groups
