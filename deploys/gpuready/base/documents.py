"""Parsers for untrusted documents from a node, an image or a mirror: JSON, YAML, TOML, XML.

Each parser limits the size of the text first, runs in linear time, and raises :class:`DocumentError` for a text that it
does not accept. The libraries alone do not: PyYAML expands aliases and merge keys, and is quadratic in nested brackets;
tomlkit is quadratic in the number of tables and elements; expat expands entities; json uses 20 bytes of memory for each
byte of empty lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gpuready.base.syntax import encoding_problem, toml_problem

if TYPE_CHECKING:  # each parser is imported where it is used: the texts of checks need none
    import xml.etree.ElementTree as ET

    import tomlkit
    import yaml


T = TypeVar("T")
#: Characters of one document. All files in a probe have 2 MB together. A value may use 70 times the memory of its text.
MOST_JSON = 1_000_000
MOST_XML = 2_000_000
MOST_YAML = 1_000_000
MOST_TOML = 250_000
#: Characters that begin a TOML value or table. The longest dump of containerd's defaults has 270 of them.
MOST_TOML_VALUES = 3_000
MOST_DEPTH = 64
#: What libyaml says of a text that is too deep for itself, before it gives the event at our limit (PyYAML 6.0.4).
TOO_DEEP = "exceeded maximum nesting depth"


class DocumentError(ValueError):
    """The text is not accepted. The message is one phrase that says why, with the line if it is known."""


def _bounded(text: str | bytes, most: int) -> None:
    if len(text) > most:
        raise DocumentError(f"it has {len(text)} characters, and at most {most} are read")


def read_json(text: str | bytes, most: int = MOST_JSON, **hooks: Callable[..., Any]) -> Any:
    """Parse JSON. ``hooks`` are passed to :func:`json.loads`. Raises its JSONDecodeError, or :class:`DocumentError`."""
    _bounded(text, most)
    try:
        return json.loads(text, **cast(Any, hooks))
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None


def copied(value: Any) -> Any:
    """Copy the mappings of a document, so that keys can be set. Lists and other values are shared."""
    return {key: copied(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def drop(document: Any, path: Sequence[str]) -> None:
    """Remove a key, and each enclosing mapping that becomes empty."""
    inner = document.get(path[0])
    if len(path) > 1 and isinstance(inner, dict):
        drop(inner, path[1:])
    if len(path) == 1 or inner == {}:
        document.pop(path[0], None)


def read_yaml(text: str) -> Any:
    """Parse one YAML document into mappings, lists, None, and text as it is written (``0x10`` stays text).

    Anchors, aliases and merge keys are refused: a short text could expand to a very large value.
    """
    import yaml

    _bounded(text, MOST_YAML)
    reader = _YamlReader()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
            reader.take(event)
    except yaml.MarkedYAMLError as e:
        where = f"line {e.problem_mark.line + 1}: " if e.problem_mark else ""
        problem = f"more than {MOST_DEPTH} levels" if e.problem == TOO_DEEP else e.problem
        raise DocumentError(f"{where}{problem or 'it is not YAML'}") from None
    except (yaml.YAMLError, UnicodeError) as e:
        raise DocumentError(f"it is not YAML ({' '.join(str(e).split())[:100]})") from None
    return reader.root


class _YamlReader:
    """Build one document from its events, without recursion."""

    def __init__(self) -> None:
        self.root: Any = None
        self._stack: list[tuple[Any, list[Any]]] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """Process the next event."""
        import yaml

        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _at(event, "anchors and aliases are not accepted")
        if isinstance(event, yaml.ScalarEvent):
            if event.value == "<<" and event.implicit[0]:
                raise _at(event, "the merge key << is not accepted")
            none = event.implicit[0] and event.value in ("", "~", "null")
            self._put(None if none else event.value, event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(self._stack) >= MOST_DEPTH:
                raise _at(event, f"more than {MOST_DEPTH} levels")
            self._stack.append(({} if isinstance(event, yaml.MappingStartEvent) else [], []))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._put(self._stack.pop()[0], event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _at(event, "a second document begins")

    def _put(self, value: Any, event: yaml.Event) -> None:
        if not self._stack:
            self.root = value
            return
        holder, key = self._stack[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif key:
            holder[key.pop()] = value
        elif isinstance(value, (dict, list)):
            raise _at(event, "a key is a mapping or a list")
        else:
            key.append(value)


def _at(event: yaml.Event, problem: str) -> DocumentError:
    mark = event.start_mark
    return DocumentError(f"line {mark.line + 1}: {problem}" if mark else problem)


def read_toml(text: str) -> tomlkit.TOMLDocument:
    """Parse TOML and keep comments and order; ten times slower than :func:`toml_values`."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    return _toml(text, tomlkit.parse, TOMLKitError)


def toml_values(text: str) -> dict[str, Any]:
    """Parse TOML into plain values."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return _toml(text, tomllib.loads)


def _toml(text: str, parse: Callable[[str], T], *more: type[Exception]) -> T:
    _bounded(text, MOST_TOML)
    refused: tuple[type[Exception], ...] = (*more, ValueError, TypeError, KeyError, AttributeError)
    values = sum(map(text.count, "[,={"))
    if values > MOST_TOML_VALUES:
        raise DocumentError(f"it has about {values} values, and at most {MOST_TOML_VALUES} are read")
    if why := encoding_problem(text.encode("utf-8", "surrogateescape")):
        raise DocumentError(why)
    try:
        return parse(text)
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    except refused as e:
        raise DocumentError(toml_problem(text, " ".join(str(e).split())) or type(e).__name__) from None


def read_xml(text: str, most: int = MOST_XML) -> ET.Element:
    """Parse XML and return its root. Declarations of entities and attributes are refused: they can expand."""
    import xml.etree.ElementTree as ET

    _bounded(text, most)
    if "<!ENTITY" in text or "<!ATTLIST" in text:
        raise DocumentError("it declares entities or attributes")
    try:
        return ET.fromstring(text)
    except (ET.ParseError, ValueError, RecursionError) as e:
        raise DocumentError(f"it is not XML ({str(e)[:100]})") from None
