"""Ansible's INI inventory, read line by line: sections of hosts, variables and child groups.

Values are typed as Ansible does it: a Python literal is that value, everything else is text. Thus ``gpuready={}`` and
``{'hardware': {'gpus': 8}}`` are mappings, and JSON's ``true`` is not a value. Unlike Ansible, gpuready stops at a
line that it cannot read. Source: ansible-core, the ``ini`` inventory plugin; the tests compare with it.
"""

import ast
import difflib
import re
import shlex
import warnings
from collections.abc import Iterator

from gpuready.base.documents import MOST_DEPTH
from gpuready.base.errors import InventoryError, SpecError, Where
from gpuready.inventory.ansible import Source
from gpuready.inventory.groups import ADD_HOSTS, Graph, Group
from gpuready.inventory.host_names import is_host
from gpuready.inventory.source_values import Located, Refused, label
from gpuready.inventory.yaml_positions import MAX_VALUES

#: A group's name ends at a blank, a colon or a bracket; only ``#`` starts a comment after it.
_SECTION = re.compile(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?")
_LIKE_SECTION = re.compile(r"\[[ \t]*[^:\]\s,]+(?::\w+)?(?:[ \t]*\])?[ \t]*(?:#.*)?")
_SECTION_WITH_TEXT = re.compile(r"(\[[^:\]\s]+(?::(?:hosts|vars|children))?\])[ \t].*")
_CHILD = re.compile(r"([^:\]\s]+)\s*(?:#.*)?")
_HOST_WITH_VARIABLE = re.compile(r"(\S+)[ \t]+[A-Za-z_]\w*=.*")
_RANGE_OR_PORT = re.compile(r"\[[^\[\]]*\]|:[0-9]+$")
_LONGEST = 1_000
#: So many names are compared for a hint: an incomplete hint is better than a slow error.
_COMPARED = 100
_COMMENTS = ("#", ";")
#: What is certainly not a Python literal, and the simple ones: most values, and parsing is slow.
_TEXT = re.compile(r"(?!(?:True|False|None)$)[A-Za-z_/~][A-Za-z0-9_./:@=~-]*|[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_QUOTED = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_MOST_CHARACTERS = 100_000
_MOST_BITS = 1_000
_QUOTING = re.compile(r"[\"'\\#]")
_CHOOSE = (
    "add `gpuready={}` to a host's line, or below [GROUP:vars] or [all:vars]; "
    "or name the host: `-i gpu01,` (with a comma)"
)
_SECTIONS = "[GROUP], [GROUP:vars] or [GROUP:children]"
_SPEC = "gpuready={} or gpuready={'hardware': {'gpus': 8}}"
_SPEC_OF_HOST = "gpuready={} or, with double quotes on a host's line, gpuready=\"{'hardware': {'gpus': 8}}\""
_VARIABLE = "one host a line, then NAME=VALUE without blanks around =; quotes around a value with blanks"
_JSON = {"true": "True", "false": "False", "null": "None"}
_JSON_WORD = re.compile(r"\b(?:true|false|null)\b")


def is_ini(text: str) -> bool:
    """Whether the first line that is not a comment is a section, or a host with variables: neither is YAML."""
    _, first = next(_lines(text), (0, ""))
    host = _HOST_WITH_VARIABLE.fullmatch(first)
    return bool(_SECTION.fullmatch(first)) or (host is not None and _is_host_pattern(host[1]))


def has_section(text: str) -> bool:
    return any(_SECTION.fullmatch(line) or _LIKE_SECTION.fullmatch(line) for _, line in _lines(text))


def begins_with_host(text: str) -> bool:
    """Whether the first line that is not a comment begins with the name of a host."""
    _, first = next(_lines(text), (0, ""))
    return _is_host_pattern(re.split(r"[ \t]", first, maxsplit=1)[0])


def _is_host_pattern(word: str) -> bool:
    return len(word) < _LONGEST and is_host(_RANGE_OR_PORT.sub("1", word))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and content of each line that is neither empty nor a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith(_COMMENTS):
            yield number, stripped


class IniSource(Source):
    """``[GROUP]``, ``[GROUP:vars]`` and ``[GROUP:children]``; hosts before the first section are ungrouped.

    Only ``[GROUP]`` and ``[GROUP:children]`` declare a group, before or after it is used.
    """

    def __init__(self, graph: Graph, errors: list[SpecError], file: str) -> None:
        super().__init__(graph, errors)
        self._file = file
        graph.choose[file] = _CHOOSE
        self._values = 0
        self._with_vars: dict[str, Where] = {}
        """Groups that have variables and no section of their own yet."""
        self._parents: dict[str, list[tuple[Group, Where]]] = {}
        """Children that have no section yet, and the groups that name them."""

    def read(self, text: str) -> None:
        """Read all lines; a line with a problem is left out. InventoryError if there is nothing to read."""
        group: Group | None = self.graph.groups["ungrouped"]
        kind = ""
        before = len(self.errors)
        for number, line in _lines(text):
            where = Where(self._file, number)
            if header := _SECTION.fullmatch(line):
                kind = header[2] or "hosts"
                group = self._section(header[1], kind, where)
            elif self._is_wrong_section(line, where):
                group = None
            elif group is not None:
                kind = kind or "hosts"
                self._line(group, kind, line, where)
        if not kind and len(self.errors) == before:
            raise InventoryError(f"{self._file}: the inventory is empty", remedy=ADD_HOSTS)
        self._refuse_undeclared(self._with_vars | {name: parents[-1][1] for name, parents in self._parents.items()})
        self.summarize()

    def _is_wrong_section(self, line: str, where: Where) -> bool:
        """Whether the line is meant as a section, and is none; then the error is added."""
        if not line.startswith("["):
            return False
        with_text = _SECTION_WITH_TEXT.fullmatch(line)
        if line.endswith("]"):
            self.refuse("not a section", where, line, _SECTIONS)
        elif "]" not in line:
            self.refuse("the section has no closing ]", where, line, _SECTIONS)
        elif with_text:
            self.refuse("text after the section", where, with_text[1], "a comment with #")
        return line.endswith("]") or "]" not in line or with_text is not None

    def _refuse_undeclared(self, undeclared: dict[str, Where]) -> None:
        declared = [name for name in self.graph.groups if name not in undeclared and name != "ungrouped"][:_COMPARED]
        for number, (name, where) in enumerate(undeclared.items()):
            if name in self.graph.hosts:
                self.refuse("a host, not a group", where, name, "a host's variables on its line, and hosts in [GROUP]")
                continue
            near = difflib.get_close_matches(name, declared, 1, 0.75) if number < _COMPARED else []
            allowed = f"a group with a section: [{label(name)}], here or in a file that an earlier -i names"
            self.refuse("no such group", where, name, allowed, near[0] if near else "")

    def _hide(self, problem: str, where: Where, allowed: str) -> None:
        """Add an error without the text of the line, which may be a part of a password."""
        self.errors.append(SpecError(problem, where=where, allowed=allowed))

    def _section(self, name: str, kind: str, where: Where) -> Group | None:
        if kind not in ("hosts", "vars", "children"):
            self._hide(f"section [{label(name)}:{label(kind)}]: not accepted", where, _SECTIONS)
            return None
        self._like_an_inventory |= kind != "hosts"
        known = name in self.graph.groups
        group = self.add_group(name, where)
        if group is None:
            return None
        if kind != "vars":
            self._with_vars.pop(name, None)
            for parent, line in self._parents.pop(name, ()):
                self.add_child(parent, group, line)
        elif not known and name not in self._parents:
            self._with_vars[name] = where
        return group

    def _line(self, group: Group, kind: str, line: str, where: Where) -> None:
        if kind == "children":
            self._child(group, line, where)
        elif kind == "hosts":
            self._host(group, line, where)
        elif "=" not in line:
            self._hide(f"[{label(group.name)}:vars]: not a variable", where, "NAME=VALUE")
        else:
            key, _, text = line.partition("=")
            self._set(group.name, {key.strip(): text.strip()}, where, _SPEC)

    def _child(self, group: Group, line: str, where: Where) -> None:
        match = _CHILD.fullmatch(line)
        if match is None:
            self.refuse(f"[{label(group.name)}:children]: not a group name", where, line, "one group a line")
        elif match[1] in self.graph.groups:
            self.add_child(group, self.graph.groups[match[1]], where)
        else:
            self._parents.setdefault(match[1], []).append((group, where))

    def _host(self, group: Group, line: str, where: Where) -> None:
        """``NAME KEY=VALUE...``; words end at blanks, as in a shell."""
        try:
            words = shlex.split(line, comments=True) if _QUOTING.search(line) else re.split(r"[ \t]+", line)
        except ValueError as e:
            self._hide(f"the line of a host: {str(e).lower()}", where, _VARIABLE)
            return
        wrong = next((number for number, word in enumerate(words) if number and "=" not in word), 0)
        values = [word.partition("=")[2] for word in words[1:wrong] if word.startswith("gpuready={")]
        if any(isinstance(_typed(value), str) for value in values):
            self._hide(f"host {label(words[0])}: gpuready has blanks, and no quotes around it", where, _SPEC_OF_HOST)
            return
        if wrong:
            self._hide(f"host {label(words[0])}: word {wrong + 1} is not a variable", where, _VARIABLE)
            return
        variables = {key: text for key, _, text in (word.partition("=") for word in words[1:])}
        for host in self.add_hosts(words[0], group, where):
            self._set(host, variables, where, _SPEC_OF_HOST)

    def _set(self, owner: str, variables: dict[str, str], where: Where, spec: str) -> None:
        """Set variables of a group or host; ``spec`` says how ``gpuready`` is written there."""
        values: dict[object, Located] = {}
        for key, text in variables.items():
            try:
                value = _typed(text)
                if key == "gpuready" and isinstance(value, str) and "{{" not in value:
                    self._hide(_why_text(value), where, spec)
                    continue
                values[key] = self._located(value, where)
            except (TypeError, RecursionError, MemoryError, Refused) as e:  # {[]: 1} or ((((1
                self._hide(f"{label(key)}: {str(e) or 'nested too deeply'}", where, "a Python literal, or text")
        self.set_variables(owner, values, where, owner)

    def _located(self, value: object, where: Where, depth: int = 1) -> Located:
        self._values += 1
        if self._values > MAX_VALUES:
            raise SpecError("too many values", where=where, allowed=f"at most {MAX_VALUES}")
        if depth > MOST_DEPTH:
            raise Refused(f"nested more than {MOST_DEPTH} levels deep")
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:  # Python would not print it
            raise Refused("the number is too large")
        if isinstance(value, dict):
            return Located({key: self._located(entry, where, depth + 1) for key, entry in value.items()}, where)
        if isinstance(value, (set, frozenset)):
            value = sorted(value, key=repr)
        if isinstance(value, (list, tuple)):
            return Located([self._located(entry, where, depth + 1) for entry in value], where)
        if isinstance(value, bytes):
            return Located(value.decode("utf-8", "surrogateescape"), where)
        return Located("..." if value is ... else str(value) if isinstance(value, complex) else value, where)


def _typed(text: str) -> object:
    """The value of a Python literal; other text as it is. TypeError, RecursionError or MemoryError as in Ansible."""
    if _TEXT.fullmatch(text):
        return text
    if _QUOTED.fullmatch(text):
        return text[1:-1]
    if _NUMBER.fullmatch(text):
        return int(text)
    if len(text) > _MOST_CHARACTERS:
        raise Refused(f"longer than {_MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _why_text(text: str) -> str:
    """What is wrong with a value of ``gpuready`` that is text and should be a mapping; no part of it may be shown."""
    if not text:
        return "gpuready is empty"
    if isinstance(_typed(text), dict):
        return "gpuready: the quotes around it make it text"
    if text.startswith("{") and text.endswith("}") and not _QUOTING.search(text):
        return "gpuready: its keys need quotes"
    words = dict.fromkeys(_JSON_WORD.findall(text))
    if words and isinstance(_typed(_JSON_WORD.sub(lambda word: _JSON[word[0]], text)), (dict, bool, type(None))):
        python = ", ".join(f"{_JSON[word]}, not {word}" for word in words)
        return f"gpuready: not a Python literal: write {python}"
    return "gpuready: not a Python literal"
