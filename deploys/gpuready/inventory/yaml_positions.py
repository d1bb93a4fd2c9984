"""Read a YAML or JSON file, as Ansible does, into values that know their file and line.

Ansible reads valid JSON as JSON and everything else as YAML 1.1, where ``off`` is false and ``0755`` is octal. Unlike
Ansible, gpuready refuses duplicate keys, and bounds the size, the depth and the number of values, with every alias
counted as often as it is used. ``yaml.compose`` cannot do this: PyYAML's C loader recurses without a bound and crashes
the process on deep nesting. Sources: yaml.org/spec/1.1, yaml.org/type/merge.html, PyYAML.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import yaml
from yaml.constructor import SafeConstructor
from yaml.reader import Reader
from yaml.resolver import Resolver

from gpuready.base.documents import MOST_DEPTH, TOO_DEEP
from gpuready.base.errors import InventoryError, SpecError, Where
from gpuready.base.files import read_file, reason
from gpuready.inventory.source_values import VAULT, Located, Shown, label, surprising

MAX_BYTES = 5_000_000
MAX_VALUES = 500_000
_MOST_DIGITS = 1_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one where PyYAML was built with it
_YAML = "tag:yaml.org,2002:"
_SCALARS = {_YAML + name for name in ("null", "bool", "int", "float", "timestamp", "str", "binary")}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?\.(inf|nan|[0-9]+)", re.IGNORECASE)
_TOKEN = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+')
_NUMBERS = {_YAML + "int", _YAML + "float"}
_TAGS = "plain YAML, !vault and !unsafe"


def read_text(path: str) -> str:
    """The text of a file; InventoryError if it cannot be read, SpecError if it is not text."""
    try:
        data = read_file(path, MAX_BYTES)
    except (OSError, ValueError) as e:
        raise InventoryError(f"{path}: cannot be read: {reason(e)}") from None
    return decode(data, path)


def decode(data: bytes, file: str) -> str:
    """UTF-8 text without control characters, or :class:`SpecError`."""
    if len(data) > MAX_BYTES:
        limit = f"at most {MAX_BYTES // 1_000_000} MB"
        raise SpecError("too large for an inventory", where=Where(file), allowed=limit)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        byte = f"byte 0x{data[e.start]:02x}"
        raise SpecError("not a text file", where=Where(file, line), given=byte, allowed="UTF-8") from None
    bad = Reader.NON_PRINTABLE.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        raise SpecError("control character", where=Where(file, line), given=bad[0], allowed="UTF-8 text")
    return text


def load_text(text: str, file: str) -> Located | None:
    """The one document in ``text``, None if there is none; :class:`SpecError` with ``file`` and line."""
    if is_json(text):
        return _Composer(_json_events(text), file).document()
    try:
        return _Composer(yaml.parse(text, Loader=_LOADER), file).document()
    except yaml.MarkedYAMLError as e:
        raise _syntax_error(e, text, file) from None
    except yaml.YAMLError as e:
        raise SpecError(f"not YAML: {e}", where=Where(file)) from None


def is_json(text: str) -> bool:
    """Whether the text as a whole is JSON."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> SpecError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    if error.problem == TOO_DEEP:
        return SpecError("nested too deeply", where=Where(file, line), allowed=f"at most {MOST_DEPTH} levels")
    lines = text.split("\n")
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())] or (mark and here[mark.column : mark.column + 1] == "\t"):
        return SpecError("a tab indents this line", where=Where(file, line), allowed="spaces")
    words = ", ".join(part for part in (error.context, error.problem) if part)
    allowed = "key: value, indented by spaces"
    if "flow mapping" in words and "[" in here:
        allowed += "; quotes around a range inside { }: {'gpu[01:16]': }"
    return SpecError(f"not YAML: {words}", where=Where(file, line), allowed=allowed)


class _JsonScalar(yaml.ScalarEvent):
    """A scalar of a JSON file; ``value`` is its token."""


class _Node(NamedTuple):
    """A value; ``weight`` is the number of values in it, ``merge`` whether it is the merge key ``<<``."""

    value: object
    line: int
    weight: int = 1
    merge: bool = False


class _Composer:
    """Builds the value of a document from its events, by recursion to at most MOST_DEPTH levels."""

    def __init__(self, events: Iterator[yaml.Event], file: str) -> None:
        self._events = events
        self._file = file
        self._resolver: Any = Resolver()
        self._constructor = SafeConstructor()
        self._scalars: dict[tuple[str | None, str, tuple[bool, bool]], tuple[object, bool]] = {}
        self._anchors: dict[str, _Node | None] = {}
        """None: the anchored mapping or list is not complete yet."""

    def document(self) -> Located | None:
        """The value; SpecError for the first thing that is wrong, including a second document."""
        root = None
        for event in self._events:
            if root is not None and isinstance(event, yaml.DocumentStartEvent):
                self._refuse("a second document begins", _line(event), "one document")
            if isinstance(event, yaml.NodeEvent):
                root = self._node(event, 0)
        return None if root is None else self._located(root.value, root.line)

    def _node(self, event: yaml.Event, depth: int) -> _Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), line)
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, line)
        elif depth == MOST_DEPTH:
            self._refuse("nested too deeply", line, f"at most {MOST_DEPTH} levels")
        elif isinstance(event, yaml.MappingStartEvent):
            self._refuse_other_tags(event.tag, "map", line)
            node = self._mapping(line, depth + 1)
        else:
            assert isinstance(event, yaml.SequenceStartEvent)
            self._refuse_other_tags(event.tag, "seq", line)
            node = self._list(line, depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, line: int) -> _Node:
        if anchor not in self._anchors:
            self._refuse(f"the alias *{label(anchor)} has no anchor before it", line)
        node = self._anchors[anchor]
        if node is None:
            self._refuse(f"the alias *{label(anchor)} is inside its own anchor", line)
        return _Node(node.value, line, node.weight)

    def _list(self, line: int, depth: int) -> _Node:
        entries: list[Located] = []
        weight = 1
        while isinstance(event := next(self._events), yaml.NodeEvent):
            entry = self._node(event, depth)
            weight = self._sum(weight, entry)
            entries.append(self._located(entry.value, entry.line))
        return _Node(entries, line, weight)

    def _mapping(self, line: int, depth: int) -> _Node:
        """Its own keys win over merged ones; of several merged mappings, the first wins."""
        own: dict[object, Located] = {}
        merged: dict[object, Located] = {}
        weight = 1
        while isinstance(event := next(self._events), yaml.NodeEvent):
            key = self._node(event, depth)
            if isinstance(key.value, (dict, list)):
                self._refuse("the key is a mapping or list", key.line, "a plain word")
            if not key.merge and key.value in own:
                first = own[key.value].where
                self._refuse(f"duplicate key {Shown(key.value)!r}, first at {first}", key.line, "each key once")
            value = self._node(next(self._events), depth)
            weight = self._sum(weight + 1, value)
            if key.merge:
                merged.update(self._merged(value))
            else:
                own[key.value] = self._located(value.value, key.line)
        return _Node({**merged, **own}, line, weight)

    def _merged(self, node: _Node) -> dict[object, Located]:
        sources = [entry.value for entry in reversed(node.value)] if isinstance(node.value, list) else [node.value]
        found: dict[object, Located] = {}
        for source in sources:
            if not isinstance(source, dict):
                self._refuse("<< needs a mapping or a list of mappings", node.line, "an alias of a mapping")
            found.update(source)
        return found

    def _sum(self, weight: int, node: _Node) -> int:
        if weight + node.weight > MAX_VALUES:
            self._refuse("too many values (each use of an alias counts)", node.line, f"at most {MAX_VALUES}")
        return weight + node.weight

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> _Node:
        if isinstance(event, _JsonScalar):
            return _Node(json.loads(event.value), line)
        key = (event.tag, event.value, event.implicit)
        if key not in self._scalars:
            self._scalars[key] = self._resolve(event, line)
        value, merge = self._scalars[key]
        return _Node(value, line, merge=merge)

    def _resolve(self, event: yaml.ScalarEvent, line: int) -> tuple[object, bool]:
        tag, implicit = event.tag, event.implicit
        if tag in ("!vault", "!vault-encrypted"):
            return VAULT, False
        if tag == "!unsafe":  # Ansible resolves such a value anew, quoted or not
            tag, implicit = None, (True, False)
        if tag in (None, "!"):
            tag = self._resolver.resolve(yaml.ScalarNode, event.value, implicit)
        if tag == _YAML + "merge":
            return event.value, True
        if tag not in _SCALARS:
            self._refuse_tag(tag, line)
        node = yaml.ScalarNode(tag, event.value)
        try:
            if tag == _YAML + "int" and len(event.value) > _MOST_DIGITS:
                raise ValueError  # in base 60, which YAML 1.1 has, the time is quadratic in the digits
            value = self._constructor.yaml_constructors[tag](self._constructor, node)
            odd = tag in _NUMBERS and not _DECIMAL.fullmatch(event.value)
            return (surprising(value, event.value) if odd else value), False
        except (ValueError, LookupError, AttributeError, ArithmeticError, TypeError, yaml.YAMLError):
            kind = str(tag).removeprefix(_YAML)
            self._refuse(f"not a valid {kind}", line, "quoted text", event.value)

    def _refuse_tag(self, tag: str | None, line: int) -> NoReturn:
        self._refuse("unknown YAML tag", line, _TAGS, str(tag).replace(_YAML, "!!"))

    def _refuse_other_tags(self, tag: str | None, name: str, line: int) -> None:
        if tag not in (None, "!", "!unsafe", _YAML + name):
            self._refuse_tag(tag, line)

    def _located(self, value: object, line: int) -> Located:
        return Located(value, Where(self._file, line))

    def _refuse(self, problem: str, line: int, allowed: str = "", given: str | None = None) -> NoReturn:
        raise SpecError(problem, where=Where(self._file, line), given=given, allowed=allowed) from None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _json_events(text: str) -> Iterator[yaml.Event]:
    """The events of text that is known to be valid JSON, so commas and colons carry no information."""
    line, at = 0, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        token, mark = match[0], yaml.Mark("", 0, line, 0, None, 0)
        if token == "{":
            yield yaml.MappingStartEvent(None, None, True, mark)
        elif token == "[":
            yield yaml.SequenceStartEvent(None, None, True, mark)
        elif token in "}]":
            yield yaml.CollectionEndEvent(mark)
        else:
            yield _JsonScalar(None, None, (False, False), token, mark)
