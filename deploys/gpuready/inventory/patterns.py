"""``--limit``: select hosts of the inventory with Ansible's patterns.

A pattern is a name, a group, a glob or a ``~regex``; ``!`` excludes, ``&`` intersects, ``GROUP[0]`` and ``GROUP[1:3]``
select by position, ``,`` or ``:`` separate patterns, and ``@FILE`` holds one pattern a line. Source: Ansible's
documentation, "Patterns: targeting hosts and groups". A pattern without a match is a note; in Ansible it is a warning.
An exclusion without a match is an error, because the host that it means would be changed; an empty group is a note.
Unlike Ansible, a range of host names is a pattern, too: ``gpu[03:04]``, or ``gpu[01-03,07]`` as reports print it. Also
unlike Ansible, a pattern that names nothing is refused: an empty shell variable must not choose every host.
"""

import contextlib
import difflib
import re
from collections.abc import Sequence

from gpuready.base.errors import GpureadyError, InventoryError, UsageError
from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.groups import ADD_HOSTS, Graph
from gpuready.inventory.host_names import glob, is_address_pattern, split_port
from gpuready.inventory.yaml_positions import read_text

#: So many groups, and hosts, are shown if a pattern is like none of them.
_SHOWN = 8
_ALL = "leave --limit out, or write --limit all, to choose all hosts"
_RANGES = "a range is gpu[01:16] or gpu[01-03,07]; [abc] is a set of characters"
_LISTED = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_PARTS = re.compile(r"(?:[^\s:\[\]]|\[[^\]]*\])+")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_CLOSED = re.compile(r"(?:[^\[\]]|\[[^\[\]]*\])*")
_SUBSCRIPT = re.compile(r"(.+)\[(?:(-?[0-9]{1,9})|([0-9]{1,9})[:-]([0-9]{0,9}))\]")


def select(graph: Graph, limit: Sequence[str], notes: list[str]) -> list[str]:
    """The names of the selected hosts in inventory order; InventoryError if there are none.

    UsageError for a pattern that names nothing, or that is not one.
    """
    patterns = [pattern for text in limit for pattern in _patterns(text)]
    everything = graph.hosts_of("all")
    if not everything:
        files = dict.fromkeys(group.where.file for group in graph.groups.values() if group.where.line)
        raise InventoryError(": ".join([*files, "the inventory has no hosts"]), remedy=ADD_HOSTS)
    if not patterns:
        return everything
    wanted = _evaluate(graph, patterns, notes)
    chosen = [name for name in everything if name in wanted]
    if not chosen:
        hint = _near(graph, patterns) or _there_are(graph)
        raise InventoryError(f"--limit {','.join(patterns)}: no host matches{hint}")
    return chosen


def _patterns(text: str) -> list[str]:
    """The single patterns of one ``--limit``, including those from files; UsageError if one names nothing."""
    found: list[str] = []
    for part in _split(text):
        found += _from_file(part[1:]) if part.startswith("@") and part != LOCAL else [part]
    if not found:
        raise _empty(text)
    outside = _BRACKETS.sub("-", text)
    parts = outside.split("," if "," in outside else ":")
    if not all(map(str.strip, parts)) and all(pattern[0] in "!&" for pattern in found):
        raise UsageError(f"--limit {text}: a part beside the separator is empty", remedy=_ALL)
    for pattern in found:
        if not pattern.lstrip("!&"):
            raise UsageError(f"--limit {text}: no name follows {pattern}", remedy=_ALL)
        if pattern[0] in "!&" and pattern[1] == "@" and pattern[1:] != LOCAL:
            raise UsageError(f"--limit {pattern}: not possible with a file", remedy="write ! before each of its lines")
    return found


def _empty(text: str) -> UsageError:
    return UsageError(f"--limit {text}".strip() + " is empty", remedy=_ALL)


def _split(text: str) -> list[str]:
    _refuse_unclosed(text)
    if "," in _BRACKETS.sub("", text):
        parts = _LISTED.findall(text)
    elif is_address_pattern(text) or split_port(text)[1] is not None:
        parts = [text]  # the colons of an IPv6 address or a range do not separate patterns
    else:
        parts = _PARTS.findall(text)
    return [part.strip() for part in parts if part.strip()]


def _refuse_unclosed(text: str) -> None:
    if not _CLOSED.fullmatch(text):
        problem = "[ is not closed" if text.count("[") >= text.count("]") else "] has no [ before it"
        raise UsageError(f"--limit {text}: {problem}", remedy=_RANGES)


def _from_file(path: str) -> list[str]:
    """The lines of a file, without the empty ones; UsageError if there are no others."""
    try:
        lines = [line.strip() for line in read_text(path).split("\n") if line.strip()]
    except GpureadyError as e:
        raise InventoryError(f"--limit @{e}") from None
    for line in lines:
        _refuse_unclosed(line)
    if not lines:
        raise _empty(f"@{path}")
    return lines


def _evaluate(graph: Graph, patterns: list[str], notes: list[str]) -> set[str]:
    """Plain patterns first, then ``&``, then ``!``; without a plain pattern, start with all hosts."""
    plain = [p for p in patterns if p[0] not in "!&"] or ["all"]
    wanted: set[str] = set()
    for pattern in plain:
        wanted |= _noted(graph, pattern, notes)
    notes += [note for pattern in patterns if (note := _like_a_range(graph, pattern.lstrip("!&")))]
    for pattern in (p for p in patterns if p[0] == "&"):
        wanted &= _noted(graph, pattern, notes)
    for pattern in (p for p in patterns if p[0] == "!"):
        wanted -= _noted(graph, pattern, notes)
    return wanted


def _noted(graph: Graph, pattern: str, notes: list[str]) -> set[str]:
    """The hosts of one pattern; a note if there are none; InventoryError for ``!`` and no group of this name."""
    name = pattern[1:] if pattern[0] in "!&" else pattern
    found = [pattern] if pattern in graph.hosts else _match(graph, name)
    if not found and pattern[0] == "!" and name not in graph.groups:
        hint = _near(graph, [pattern]) or _there_are(graph)
        raise InventoryError(f"--limit {pattern}: no host matches, so none is left out{hint}")
    if not found:
        notes.append(f"--limit {pattern} matches no host{_near(graph, [pattern])}")
    return set(found)


def _match(graph: Graph, pattern: str) -> list[str]:
    """The hosts of one pattern, given without its sign; a group wins over hosts of the same name or range."""
    if pattern in graph.aliases:
        return [graph.aliases[pattern]]
    subscript = None if pattern.startswith("~") else _SUBSCRIPT.fullmatch(pattern)
    found = _hosts_like(graph, subscript[1] if subscript else pattern)
    if not subscript:
        return found
    index, first, last = subscript[2], subscript[3], subscript[4]
    if not found:
        return _hosts_like(graph, pattern) if last else []
    if index is None:
        return found[int(first) : int(last) + 1 if last else None]
    try:
        return [found[int(index)]]
    except IndexError:
        raise InventoryError(f"--limit {pattern}: the pattern matches only {count(len(found), 'host')}") from None


def _like_a_range(graph: Graph, pattern: str) -> str:
    """A note if a subscript would also be a range of names: gpu[03:04] of a group gpu is not gpu03 and gpu04."""
    subscript = _SUBSCRIPT.fullmatch(pattern)
    if subscript is None or not subscript[4]:
        return ""
    found, named = _match(graph, pattern), set[str]()
    with contextlib.suppress(UsageError):  # it is a subscript only
        named.update(_hosts_like(graph, pattern))
    if not named or named == set(found):
        return ""
    return f"--limit {pattern}: by position in {subscript[1]}, from 0, as in Ansible: {hostlist(found) or 'no host'}"


def _hosts_like(graph: Graph, pattern: str) -> list[str]:
    """All hosts of matching groups; also matching hosts, if no group matches or the pattern is a glob or regex."""
    regex = _regex(pattern)
    if regex.match("") and any((match := regex.match(host)) and not match[0] for host in graph.hosts):
        problem = "matches the empty text, and so hosts that it does not name"
        raise UsageError(f"--limit {pattern}: {problem}", remedy="remove an empty alternative, or add .* to the end")
    groups = [name for name in graph.groups if regex.match(name)]
    found = [host for group in groups for host in graph.hosts_of(group)]
    if not groups or pattern.startswith("~") or any(special in pattern for special in ".?*["):
        found += [host for host in graph.hosts if regex.match(host)]
    return found


def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern[1:] if pattern.startswith("~") else glob(pattern))
    except (re.error, OverflowError, RecursionError) as e:
        raise UsageError(f"--limit {pattern}: not a regular expression: {e}") from None
    except ValueError as e:
        raise UsageError(f"--limit {pattern}: {e}", remedy=_RANGES) from None


def _near(graph: Graph, patterns: Sequence[str]) -> str:
    names = [*_groups(graph), *graph.hosts][:10_000]  # an incomplete hint is better than a slow one
    words = [word for pattern in patterns if (word := pattern.lstrip("!&~")) not in names][:3]
    near = [full for word in words for full in _with_domain(graph, word)]
    near = near or [name for word in words for name in difflib.get_close_matches(word, names, 2, 0.5)]
    return f"; did you mean {', '.join(dict.fromkeys(near))}?" if near else ""


def _with_domain(graph: Graph, pattern: str) -> list[str]:
    """The pattern with the domain of the hosts that it then matches; with several domains, a star for them."""
    with contextlib.suppress(UsageError):
        longer = _regex(f"{pattern}.*")
        domains = {host.split(".", pattern.count(".") + 1)[-1] for host in graph.hosts if longer.match(host)}
        full = f"{pattern}.{domains.pop() if len(domains) == 1 else '*'}"
        return [full] if any(map(_regex(full).match, graph.hosts)) else []
    return []


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
