"""``--limit``: select hosts of the inventory with Ansible's patterns.

A pattern is a name, a group, a glob or a ``~regex``; ``!`` excludes, ``&`` intersects, ``GROUP[0]`` and ``GROUP[1:3]``
select by position, ``,`` or ``:`` separate patterns, and ``@FILE`` holds one pattern a line. Source: Ansible's
documentation, "Patterns: targeting hosts and groups". A pattern without a match is a note; in Ansible it is a warning.
Unlike Ansible, a range of host names is a pattern, too: ``gpu[03:04]``, or ``gpu[01-03,07]`` as reports print it.
"""

import difflib
import fnmatch
import re
from collections.abc import Sequence

from gpuready.core.errors import GpureadyError, InventoryError
from gpuready.core.host_list import hostlist
from gpuready.inventory.groups import ADD_HOSTS, Graph
from gpuready.inventory.host_names import expand_any, is_address_pattern, split_port
from gpuready.inventory.yaml_positions import read_text

#: So many groups, and hosts, are shown if a pattern is like none of them.
_SHOWN = 8
_LISTED = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")
_PARTS = re.compile(r"(?:[^\s:\[\]]|\[[^\]]*\])+")
_SUBSCRIPT = re.compile(r"(.+)\[(?:(-?[0-9]{1,9})|([0-9]{1,9})[:-]([0-9]{0,9}))\]")


def select(graph: Graph, limit: Sequence[str], notes: list[str]) -> list[str]:
    """The names of the selected hosts in inventory order; InventoryError if there are none."""
    everything = graph.hosts_of("all")
    if not everything:
        files = dict.fromkeys(group.where.file for group in graph.groups.values() if group.where.line)
        raise InventoryError(": ".join([*files, "the inventory has no hosts"]), remedy=ADD_HOSTS)
    patterns = [pattern for text in limit for pattern in _patterns(text) if pattern]
    if not patterns:
        return everything
    wanted = _evaluate(graph, patterns, notes)
    chosen = [name for name in everything if name in wanted]
    if not chosen:
        hint = _near(graph, patterns) or _there_are(graph)
        raise InventoryError(f"--limit {','.join(patterns)}: no host matches{hint}")
    return chosen


def _patterns(text: str) -> list[str]:
    """The single patterns of one ``--limit``, including those from files."""
    found: list[str] = []
    for part in _split(text):
        found += _from_file(part[1:]) if part.startswith("@") else [part]
    return found


def _split(text: str) -> list[str]:
    if "," in text:
        parts = _LISTED.findall(text) if text.count("[") == text.count("]") else text.split(",")
    elif is_address_pattern(text) or split_port(text)[1] is not None:
        parts = [text]  # the colons of an IPv6 address or a range do not separate patterns
    else:
        parts = _PARTS.findall(text)
    return [part.strip() for part in parts if part.strip()]


def _from_file(path: str) -> list[str]:
    try:
        return [line.strip() for line in read_text(path).split("\n")]
    except GpureadyError as e:
        raise InventoryError(f"--limit @{e}") from None


def _evaluate(graph: Graph, patterns: list[str], notes: list[str]) -> set[str]:
    """Plain patterns first, then ``&``, then ``!``; without a plain pattern, start with all hosts."""
    plain = [p for p in patterns if p[0] not in "!&"] or ["all"]
    wanted: set[str] = set()
    for pattern in plain:
        found = [pattern] if pattern in graph.hosts else _match(graph, pattern)
        if not found:
            notes.append(f"--limit {pattern} matches no host{_near(graph, [pattern])}")
        wanted.update(found)
    notes += [note for pattern in patterns if (note := _like_a_range(graph, pattern.lstrip("!&")))]
    for pattern in (p[1:] for p in patterns if p[0] == "&"):
        wanted &= set(_match(graph, pattern))
    for pattern in (p[1:] for p in patterns if p[0] == "!"):
        wanted -= set(_match(graph, pattern))
    return wanted


def _match(graph: Graph, pattern: str) -> list[str]:
    """The hosts of one pattern, given without its sign; a group wins over hosts of the same name or range."""
    if not pattern:
        return []
    subscript = None if pattern.startswith("~") else _SUBSCRIPT.fullmatch(pattern)
    found = _hosts_like(graph, subscript[1] if subscript else pattern)
    if not found:
        return _in_range(graph, pattern)
    if not subscript:
        return found
    index, first, last = subscript[2], subscript[3], subscript[4]
    if index is None:
        return found[int(first) : int(last) + 1 if last else None]
    try:
        return [found[int(index)]]
    except IndexError:
        raise InventoryError(f"--limit {pattern}: there are only {len(found)} hosts") from None


def _like_a_range(graph: Graph, pattern: str) -> str:
    """A note if a subscript of a group would also be a range of its hosts' names: gpu[03:04] is not gpu03 and gpu04."""
    subscript = _SUBSCRIPT.fullmatch(pattern)
    if subscript is None or subscript[1] not in graph.groups or not subscript[4]:
        return ""
    first, last = f"{subscript[1]}{subscript[3]}", f"{subscript[1]}{subscript[4]}"
    found = _match(graph, pattern)
    if {first, last} & set(graph.hosts) and [*found[:1], *found[-1:]] != [first, last]:
        return f"--limit {pattern}: by position in the group {subscript[1]}, from 0, as in Ansible: {hostlist(found)}"
    return ""


def _in_range(graph: Graph, pattern: str) -> list[str]:
    """The hosts in a range of names; none if the pattern is no range."""
    try:
        return [name for name in expand_any(pattern) if name in graph.hosts] if {*"[{"} & {*pattern} else []
    except ValueError:
        return []


def _hosts_like(graph: Graph, pattern: str) -> list[str]:
    """All hosts of matching groups; also matching hosts, if no group matches or the pattern is a glob or regex."""
    try:
        regex = re.compile(pattern[1:] if pattern.startswith("~") else fnmatch.translate(pattern))
    except (re.error, OverflowError, RecursionError) as e:
        raise InventoryError(f"--limit {pattern}: not a regular expression: {e}") from None
    groups = [name for name in graph.groups if regex.match(name)]
    found = [host for group in groups for host in graph.hosts_of(group)]
    if not groups or pattern.startswith("~") or any(special in pattern for special in ".?*["):
        found += [host for host in graph.hosts if regex.match(host)]
    return found


def _near(graph: Graph, patterns: Sequence[str]) -> str:
    names = [*_groups(graph), *graph.hosts][:10_000]  # an incomplete hint is better than a slow one
    words = [word for pattern in patterns if (word := pattern.lstrip("!&~")) not in names][:3]
    near = dict.fromkeys(name for word in words for name in difflib.get_close_matches(word, names, 2, 0.5))
    return f"; did you mean {', '.join(near)}?" if near else ""


def _there_are(graph: Graph) -> str:
    """What a pattern could name, for the end of a message."""
    kinds = [("groups", _groups(graph)), ("hosts", list(graph.hosts))]
    return "".join(
        f"; {kind}: {', '.join(names[:_SHOWN])}{f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''}"
        for kind, names in kinds
        if names
    )


def _groups(graph: Graph) -> list[str]:
    """The groups that the inventory itself names."""
    return [name for name in graph.groups if name not in ("all", "ungrouped")]
