"""Values that know the file and line they came from, and the bounded machine that builds them.

YAML and JSON both feed :class:`Composer` with the same few events. It is a stack, not a recursion, and counts
what aliases expand to, so that no input can exhaust memory or Python's stack. Source: the YAML 1.1 merge key
(yaml.org/type/merge.html) as PyYAML and Ansible read it: own keys win, of several sources the first.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NoReturn

from gpuready.core.errors import SpecError, Where

MAX_DEPTH = 64
MAX_VALUES = 500_000


class Vault:
    """Stands for a value that only Ansible can decrypt."""

    def __repr__(self) -> str:
        return "!vault"


VAULT = Vault()


class OddInt(int):
    """A whole number that is not what its digits say: YAML 1.1 reads 010 as 8, 1:30 as 90. ``text`` is as written."""

    text: str


class OddFloat(float):
    """As :class:`OddInt`: 1:30.5 is 90.5."""

    text: str


def surprising(value: int | float, text: str) -> OddInt | OddFloat:
    """The number that ``text`` stands for, which knows how it was written."""
    odd: OddInt | OddFloat = OddInt(value) if isinstance(value, int) else OddFloat(value)
    odd.text = text
    return odd


@dataclass(frozen=True, eq=False)
class Located:
    """A scalar, a ``dict[key, Located]`` or a ``list[Located]``.

    ``where`` is the line of the key that names it; of a list's entry, its own first line.
    """

    value: object
    where: Where


def label(name: object) -> str:
    """A key or name within a message: as it is if that is harmless on a terminal, else escaped and cut."""
    text = str(name)
    return text if text.isprintable() and len(text) <= 80 else ascii(text[:80])


class Shown:
    """A value in an error message, as YAML would write it; text keeps Python's quotes."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        value = self._value
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, dict):
            return f"a mapping of {', '.join(map(label, value))}" if value else "an empty mapping"
        if isinstance(value, (list, tuple)):
            return f"a list of {len(value)}"
        return repr(value) if isinstance(value, (str, bytes)) else str(value)


@dataclass
class _Frame:
    """A mapping or list that is not closed yet."""

    value: dict[Hashable, Located] | list[Located]
    line: int
    anchor: str | None
    key: Hashable = None
    key_line: int = 0
    merging: bool = False
    merged: dict[Hashable, Located] = field(default_factory=dict)
    weight: int = 1


class Composer:
    """Builds one document; raises :class:`SpecError` at the first thing that cannot be."""

    def __init__(self, file: str) -> None:
        self.root: Located | None = None
        self._file = file
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[object, int]] = {}

    def open(self, value: dict[Hashable, Located] | list[Located], line: int, anchor: str | None = None) -> None:
        """A mapping or list begins."""
        if self._wants_key():
            self.refuse("a key is itself a mapping or list", line, "a plain word")
        if len(self._stack) >= MAX_DEPTH:
            self.refuse("nested too deeply", line, f"at most {MAX_DEPTH} levels")
        self._stack.append(_Frame(value, line, anchor))

    def scalar(self, value: object, line: int, anchor: str | None = None, *, merge: bool = False) -> None:
        """A plain value or key; ``merge``: it is the merge key ``<<``."""
        if anchor:
            self._anchors[anchor] = (value, 1)
        if self._wants_key():
            self._begin_entry(value, line, merge)
        else:
            self._attach(value, line, 1)

    def alias(self, anchor: str, line: int) -> None:
        """The value of an anchor, once more."""
        if any(frame.anchor == anchor for frame in self._stack):
            self.refuse(f"the alias *{label(anchor)} stands inside its own anchor", line)
        if anchor not in self._anchors:
            self.refuse(f"the alias *{label(anchor)} has no anchor before it", line)
        value, weight = self._anchors[anchor]
        if self._wants_key():
            self._begin_entry(value, line, merge=False)
        else:
            self._attach(value, line, weight)

    def close(self) -> None:
        """The innermost mapping or list ends."""
        frame = self._stack.pop()
        if isinstance(frame.value, dict) and frame.merged:
            own = dict(frame.value)
            frame.value.clear()
            frame.value.update(frame.merged)
            frame.value.update(own)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.weight)
        self._attach(frame.value, frame.line, frame.weight)

    def _wants_key(self) -> bool:
        frame = self._stack[-1] if self._stack else None
        return frame is not None and isinstance(frame.value, dict) and not frame.key_line

    def _begin_entry(self, key: object, line: int, merge: bool) -> None:
        frame = self._stack[-1]
        assert isinstance(frame.value, dict)
        if isinstance(key, (dict, list)) or not isinstance(key, Hashable):
            self.refuse("a key is itself a mapping or list", line, "a plain word")
        first = None if merge else frame.value.get(key)
        if first is not None:
            self.refuse(f"duplicate key {Shown(key)!r}, first at {first.where}", line, "each key once")
        frame.key, frame.key_line, frame.merging = key, line, merge
        frame.weight += 1

    def _attach(self, value: object, line: int, weight: int) -> None:
        if not self._stack:
            self.root = Located(value, Where(self._file, line))
            return
        frame = self._stack[-1]
        frame.weight += weight
        if frame.weight > MAX_VALUES:
            self.refuse("too many values, aliases counted each time", line, f"at most {MAX_VALUES}")
        if isinstance(frame.value, list):
            frame.value.append(Located(value, Where(self._file, line)))
            return
        if frame.merging:
            self._merge(frame, value, line)
        else:
            frame.value[frame.key] = Located(value, Where(self._file, frame.key_line))
        frame.key, frame.key_line, frame.merging = None, 0, False

    def _merge(self, frame: _Frame, value: object, line: int) -> None:
        sources = [entry.value for entry in reversed(value)] if isinstance(value, list) else [value]
        for source in sources:
            if not isinstance(source, dict):
                self.refuse("<< takes a mapping or a list of mappings", line, "an alias of a mapping")
            frame.merged.update(source)

    def refuse(self, problem: str, line: int, allowed: str = "") -> NoReturn:
        raise SpecError(problem, where=Where(self._file, line), allowed=allowed)


def merge(below: Located | None, above: Located) -> Located:
    """``above`` laid over ``below``: mappings key by key, all else replaces; null leaves a mapping be."""
    if below is None or not isinstance(below.value, dict):
        return above
    if above.value is None:
        return below
    if not isinstance(above.value, dict):
        return above
    merged = dict(below.value)
    for key, value in above.value.items():
        merged[key] = merge(merged.get(key), value)
    return Located(merged, above.where)


def plain(located: Located) -> object:
    """The value without places; lists become tuples."""
    if isinstance(located.value, dict):
        return {key: plain(value) for key, value in located.value.items()}
    if isinstance(located.value, list):
        return tuple(plain(entry) for entry in located.value)
    return located.value


def refuse(name: str, value: Located, allowed: str, problem: str = "", *, secret: bool = False) -> NoReturn:
    text = f"{name}: {problem or 'not accepted'}"
    given = None if secret else Shown(value.value)
    raise SpecError(text, where=value.where, given=given, allowed=allowed)


def refuse_templates(name: str, value: Located) -> None:
    """A value that only Ansible could evaluate or decrypt; SpecError."""
    if value.value is VAULT or (isinstance(value.value, dict) and "__ansible_vault" in value.value):
        refuse(name, value, "a plain value, or a secret by env:, file: or cmd:", "gpuready has no vault", secret=True)
    if isinstance(value.value, str) and any(mark in value.value for mark in ("{{", "{%", "{#")):
        refuse(name, value, "a plain value", "gpuready evaluates no templates")
