"""Print many host names briefly, as clush and Slurm do: ``gpu[01-16]``."""

import re
from collections.abc import Iterable

_ADDRESS = re.compile(r"((?:\d{1,3}\.){3})(\d{1,3})()")
_NUMBERED = re.compile(r"([^.]*?)(\d+)(\D*?(?:\..*)?)")
_MOST = 12


def hostlist(names: Iterable[str], *, whole: bool = False) -> str:
    """Fold runs of numbers in the names and keep their order.

    A very long list ends with the number of names left, unless ``whole``: then it is a pattern for ``--limit``.
    """
    return ",".join(folded(names, whole=whole))


def folded(names: Iterable[str], *, whole: bool = False) -> list[str]:
    """Return the parts of :func:`hostlist`."""
    series: dict[tuple[str, str, int], list[str]] = {}
    for name in dict.fromkeys(names):
        series.setdefault(_key(name), []).append(name)
    _join_padded(series)
    if whole or len(series) <= _MOST + 1:
        return [_fold(key, members) for key, members in series.items()]
    shown = list(series.items())[:_MOST]
    more = sum(len(members) for members in series.values()) - sum(len(members) for _, members in shown)
    parts = [_fold(key, members) for key, members in shown]
    return [*parts[:-1], f"{parts[-1]} and {more} more"]


def _split(name: str) -> tuple[str, str, str]:
    match = _ADDRESS.fullmatch(name) or _NUMBERED.fullmatch(name)
    return (match[1], match[2], match[3]) if match and len(match[2]) <= 9 else (name, "", "")


def _key(name: str) -> tuple[str, str, int]:
    """Return prefix, suffix, and the width if the number begins with a zero, else 0."""
    prefix, number, suffix = _split(name)
    return prefix, suffix, len(number) if number.startswith("0") and len(number) > 1 else 0


def _join_padded(series: dict[tuple[str, str, int], list[str]]) -> None:
    """Join numbers to the padded ones of the same width: ``09`` and ``10`` belong together."""
    for prefix, suffix, width in [key for key in series if key[2]]:
        loose = series.get((prefix, suffix, 0), [])
        joining = [name for name in loose if len(_split(name)[1]) == width]
        series[prefix, suffix, width] += joining
        left = [name for name in loose if name not in joining]
        if left:
            series[prefix, suffix, 0] = left
        else:
            series.pop((prefix, suffix, 0), None)


def _fold(key: tuple[str, str, int], members: list[str]) -> str:
    if len(members) == 1:
        return members[0]
    prefix, suffix, width = key
    numbers = sorted(int(_split(name)[1]) for name in members)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs]
    return f"{prefix}[{','.join(shown)}]{suffix}"
