"""Read a YAML or JSON file into values with places, as Ansible reads it, or refuse it at file and line.

Ansible takes a file that is JSON for JSON and everything else for YAML 1.1, so ``off`` is false and ``0755``
octal. Unlike Ansible, a duplicate key is an error, and there are bounds. Source: yaml.org/spec/1.1, PyYAML.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import yaml
from yaml.constructor import SafeConstructor
from yaml.reader import Reader
from yaml.resolver import Resolver

from gpuready.core.errors import InventoryError, SpecError, Where
from gpuready.core.files import read_file, reason
from gpuready.spec.source_values import VAULT, Composer, Located, surprising

MAX_BYTES = 5_000_000
_MOST_DIGITS = 1_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one where PyYAML was built with it
_YAML = "tag:yaml.org,2002:"
_SCALARS = {_YAML + name for name in ("null", "bool", "int", "float", "timestamp", "str", "binary")}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?\.(inf|nan|[0-9]+)", re.IGNORECASE)
_TOKEN = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+')
_NUMBERS = {_YAML + "int", _YAML + "float"}
_TAGS = "plain YAML, !vault and !unsafe"


def read_text(path: str) -> str:
    """The text of a file; InventoryError if it cannot be read, SpecError if it is no text."""
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
    return _load_json(text, file) if is_json(text) else _load_yaml(text, file)


def is_json(text: str) -> bool:
    """Whether the text as a whole is JSON."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _load_json(text: str, file: str) -> Located | None:
    """Known to be valid: tokens suffice, commas and colons say nothing more."""
    composer, line, at = Composer(file), 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        token = match[0]
        if token in "{[":
            composer.open({} if token == "{" else [], line)
        elif token in "}]":
            composer.close()
        else:
            composer.scalar(json.loads(token), line)
    return composer.root


def _load_yaml(text: str, file: str) -> Located | None:
    reader = _YamlReader(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
    except yaml.MarkedYAMLError as e:
        raise _syntax_error(e, text, file) from None
    except yaml.YAMLError as e:
        raise SpecError(f"not YAML: {e}", where=Where(file)) from None
    return reader.composer.root


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> SpecError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    lines = text.split("\n")
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())] or (mark and here[mark.column : mark.column + 1] == "\t"):
        return SpecError("a tab indents this line", where=Where(file, line), given="\t", allowed="spaces")
    words = ", ".join(part for part in (error.context, error.problem) if part)
    return SpecError(f"not YAML: {words}", where=Where(file, line), allowed="key: value, indented by spaces")


class _YamlReader:
    """Turns the events of one YAML stream into those of a :class:`Composer`."""

    def __init__(self, file: str) -> None:
        self.composer = Composer(file)
        self._file = file
        self._resolver: Any = Resolver()
        self._constructor = SafeConstructor()
        self._scalars: dict[tuple[str | None, str, tuple[bool, bool]], tuple[object, bool]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """One event more; SpecError if it cannot be."""
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            value, merge = self._scalar(event, line)
            self.composer.scalar(value, line, event.anchor, merge=merge)
        elif isinstance(event, yaml.AliasEvent):
            self.composer.alias(str(event.anchor), line)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            name = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
            if event.tag not in (None, "!", "!unsafe", _YAML + name):
                self._refuse_tag(event.tag, line)
            self.composer.open({} if name == "map" else [], line, event.anchor)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.composer.close()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise SpecError("a second document begins", where=Where(self._file, line), allowed="one")

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> tuple[object, bool]:
        key = (event.tag, event.value, event.implicit)
        if key not in self._scalars:
            self._scalars[key] = self._resolve(event, line)
        return self._scalars[key]

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
            where = Where(self._file, line)
            raise SpecError(f"no valid {kind}", where=where, given=event.value, allowed="quoted text") from None

    def _refuse_tag(self, tag: str | None, line: int) -> NoReturn:
        shown = str(tag).replace(_YAML, "!!")
        raise SpecError("unknown YAML tag", where=Where(self._file, line), given=shown, allowed=_TAGS)
