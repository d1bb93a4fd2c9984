"""The two forms of an inventory: Ansible's YAML, and the JSON of ``ansible-inventory --list --export``.

Ansible warns about an unexpected key, or a list instead of a mapping, and continues without it. Here both are errors:
a host that silently lacks its settings is worse than no run. Sources: as in :mod:`gpuready.inventory.sources`.
"""

import difflib

from gpuready.base.errors import SpecError, Where
from gpuready.base.words import count
from gpuready.inventory.connection import PASSWORDS
from gpuready.inventory.groups import Graph, Group
from gpuready.inventory.host_names import (
    MAX_HOSTS,
    NAME_ALLOWED,
    RANGE_ALLOWED,
    expand,
    is_host,
    range_meant,
    split_port,
)
from gpuready.inventory.source_values import Located, Private, Shown

MAX_ASSIGNED = 5_000_000
_SECTIONS = ("hosts", "vars", "children")


class Source:
    """Base of all forms: checks names and collects errors."""

    def __init__(self, graph: Graph, errors: list[SpecError]) -> None:
        self.graph = graph
        self.errors = errors
        self._assigned = 0
        self._first_error = len(errors)
        self._like_an_inventory = False

    def summarize(self) -> None:
        """Leave one error, if nothing in the file is as in an inventory: it is probably another kind of file."""
        found = self.errors[self._first_error :]
        if self._like_an_inventory or len(found) < 2:
            return
        first = found[0]
        self.errors[self._first_error :] = [
            SpecError(
                f"not an inventory; the first of {count(len(found), 'error')}: {first.message}",
                where=first.where, given=first.given, allowed=first.allowed, near=first.near,
            )
        ]  # fmt: skip

    def refuse(self, problem: str, where: Where, given: object, allowed: str, near: str = "") -> None:
        """Add an error; the reader continues."""
        shown = Shown(given) if not isinstance(given, str) else given
        self.errors.append(SpecError(problem, where=where, given=shown, allowed=allowed, near=near))

    def add_group(self, name: object, where: Where) -> Group | None:
        """The group, or None if ``name`` is not a group name."""
        if isinstance(name, str) and name.strip() and name.isprintable() and "/" not in name:
            return self.graph.add_group(name, where)
        self.refuse("not a group name", where, name, "printable text without /, numbers in quotes")
        return None

    def add_hosts(self, pattern: object, group: Group, where: Where) -> list[str]:
        """Add all hosts of a pattern to ``group``."""
        if not isinstance(pattern, str):
            self.refuse("not a host name", where, pattern, f"{NAME_ALLOWED}, numbers in quotes")
            return []
        text, port = split_port(pattern)
        try:
            names = expand(text)
        except ValueError as e:
            self.refuse(str(e), where, pattern, RANGE_ALLOWED, range_meant(pattern))
            return []
        for name in names:
            if not is_host(name):
                allowed = f"{NAME_ALLOWED}; the login is the variable ansible_user" if "@" in name else NAME_ALLOWED
                self.refuse("not a host name", where, name, allowed, range_meant(pattern))
                return []
        if port is not None and not 1 <= port <= 65535:
            self.refuse("not a port", where, pattern, "1 to 65535")
        if len(self.graph.hosts) + len(names) > MAX_HOSTS:
            raise SpecError("too many hosts", where=where, given=pattern, allowed=f"at most {MAX_HOSTS}")
        for name in names:
            self.graph.add_host(name, group, where, port)
        self._like_an_inventory = True
        return names

    def add_child(self, parent: Group, child: Group, where: Where) -> None:
        """Make ``child`` a group below ``parent``; ``ungrouped`` has no children, and no parent but ``all``."""
        if parent.name == "ungrouped" or (child.name == "ungrouped" and parent.name != "all"):
            self.refuse("ungrouped cannot contain groups or belong to one", where, child.name, "hosts and vars only")
        else:
            self.graph.add_child(parent, child, where)

    def set_variables(self, owner: str, variables: object, where: Where, what: str) -> None:
        """Set every variable of a mapping; null is an empty mapping."""
        if isinstance(variables, dict):
            self._assigned += len(variables)  # of a range with variables, each host has its own
            if self._assigned > MAX_ASSIGNED:
                raise SpecError("too many variables", where=where, allowed=f"at most {MAX_ASSIGNED} for all hosts")
            for key, value in variables.items():
                try:
                    self.graph.set_variable(owner, key, value)
                except SpecError as e:
                    self.errors.append(e)
        elif variables is not None:
            self.refuse(f"{what} is not a mapping", where, variables, "variables as key: value")


class YamlSource(Source):
    """``GROUP: {hosts: {...}, vars: {...}, children: {...}}``, in the file's order, groups within groups."""

    def read(self, top: dict[object, Located]) -> None:
        """Read the groups at the top level."""
        for name, group in top.items():
            self._group(name, group)
        self.summarize()

    def _group(self, name: object, data: Located) -> Group | None:
        group = self.add_group(name, data.where)
        if group is None or data.value is None:
            return group
        if name in _SECTIONS and not isinstance(data.value, dict):
            self._unknown(group, name, data.where)
            return group
        if isinstance(data.value, str):  # perhaps a password, if this is a file of variables
            allowed = "a mapping with hosts, vars, children"
            self.errors.append(SpecError(f"group {name}: text is not accepted", where=data.where, allowed=allowed))
            return group
        if not isinstance(data.value, dict):
            self.refuse(f"group {name}: not accepted", data.where, data.value, "a mapping with hosts, vars, children")
            return group
        for key, section in data.value.items():
            if key in _SECTIONS:
                self._section(group, str(key), section)
            else:
                self._unknown(group, key, section.where)
        return group

    def _section(self, group: Group, key: str, section: Located) -> None:
        self._like_an_inventory = True
        entries = section.value
        if isinstance(entries, str):  # Ansible reads one bare word as a mapping with that key and no value
            entries = {entries: Located(None, section.where)}
        if entries is None:
            return
        if not isinstance(entries, dict):
            form = "VARIABLE: value" if key == "vars" else "NAME: (a colon after each name, not a dash before it)"
            self.refuse(f"{key} of group {group.name}: not accepted", section.where, entries, f"a mapping, {form}")
        elif key == "vars":
            self.set_variables(group.name, entries, section.where, "vars")
        elif key == "children":
            for name, data in entries.items():
                child = self._group(name, data)
                if child is not None:
                    self.add_child(group, child, data.where)
        else:
            for pattern, data in entries.items():
                is_variable = str(pattern).startswith("ansible_") and not isinstance(data.value, (dict, type(None)))
                if str(pattern) == "gpuready" or is_variable:
                    self.refuse(
                        "a variable among the hosts", data.where, pattern, "indented below a host, or below vars"
                    )
                    continue
                for host in self.add_hosts(pattern, group, data.where):
                    self.set_variables(host, data.value, data.where, f"host {host}")

    def _unknown(self, group: Group, key: object, where: Where) -> None:
        if "gpuready" in (key, group.name):
            self.refuse("gpuready is a variable, not a part of a group", where, key, "below vars, or below a host")
            return
        if group.name in _SECTIONS:
            self.refuse("not below a group", group.where, group.name, f"all: {{{group.name}: ...}}")
            return
        near = difflib.get_close_matches(str(key), _SECTIONS, 1)
        problem = f"unknown key in group {group.name}"
        allowed = "hosts, vars, children" if near else "hosts, vars, children; a host stands below hosts"
        self.refuse(problem, where, key, allowed, near[0] if near else "")


class ExportSource(Source):
    """``GROUP: {hosts: [...], vars: {...}, children: [...]}`` and ``_meta: {hostvars: {...}}``."""

    def read(self, top: dict[object, Located]) -> None:
        """Read the groups, then the variables of the hosts in them."""
        named: dict[str, Where] = {}
        for name, data in top.items():
            group = None if name == "_meta" else self.add_group(name, data.where)
            if group is not None:
                named.update(self._group(group, data))
        meta = top["_meta"].value if "_meta" in top else None
        hostvars = meta.get("hostvars") if isinstance(meta, dict) else None
        if hostvars is None or not isinstance(hostvars.value, dict):
            where = top["_meta"].where if "_meta" in top else next(iter(top.values())).where
            allowed = '"_meta": {"hostvars": {}}, or the output of ansible-inventory --list --export'
            self.refuse("_meta.hostvars is missing", where, None, allowed)
            return
        self._note_without_groups(hostvars)
        for host in named:
            if host in hostvars.value:
                variables: Located = hostvars.value[host]
                self.set_variables(host, variables.value, variables.where, f"host {host}")

    def set_variables(self, owner: str, variables: object, where: Where, what: str) -> None:
        """As for other sources, without Ansible's marks."""
        if isinstance(variables, dict):
            variables = {key: _without_mark(value) for key, value in variables.items()}
        super().set_variables(owner, variables, where, what)

    def _note_without_groups(self, hostvars: Located) -> None:
        assert isinstance(hostvars.value, dict)
        with_spec = [v for v in hostvars.value.values() if isinstance(v.value, dict) and "gpuready" in v.value]
        if len(with_spec) > 1 and not any(group.vars for group in self.graph.groups.values()):
            self.graph.notes.append(
                f"{hostvars.where.file}: no group has variables; if it was made without --export, "
                "the values of outer groups are missing"
            )

    def _group(self, group: Group, data: Located) -> dict[str, Where]:
        content = data.value
        if isinstance(content, list):  # the short form that old scripts print
            content = {"hosts": data}
        if not isinstance(content, dict) or not set(content) <= set(_SECTIONS):
            self.refuse(
                f"group {group.name}: not accepted", data.where, data.value, "a mapping with hosts, vars, children"
            )
            return {}
        if "vars" in content:
            self.set_variables(group.name, content["vars"].value, content["vars"].where, "vars")
        for entry in self._list(content, "children", group):
            child = self.add_group(entry.value, entry.where)
            if child is not None:
                self.add_child(group, child, entry.where)
        hosts: dict[str, Where] = {}
        for entry in self._list(content, "hosts", group):
            if isinstance(entry.value, str) and is_host(entry.value):  # without ranges and ports
                hosts[self.graph.add_host(entry.value, group, entry.where).name] = entry.where
            else:
                self.refuse("not a host name", entry.where, entry.value, NAME_ALLOWED)
        return hosts

    def _list(self, content: dict[object, Located], key: str, group: Group) -> list[Located]:
        section = content.get(key)
        if section is None or section.value is None:
            return []
        if isinstance(section.value, list):
            return section.value
        self.refuse(f"{key} of group {group.name}: not accepted", section.where, section.value, "a list of names")
        return []


class AnsibleSource(ExportSource):
    """The output of ansible-inventory: complete, and decrypted."""

    def set_variables(self, owner: str, variables: object, where: Where, what: str) -> None:
        """As for other sources, but a password may be in clear text: its file may have been encrypted."""
        if isinstance(variables, dict):
            variables = {key: _private(value) if key in PASSWORDS else value for key, value in variables.items()}
        super().set_variables(owner, variables, where, what)

    def _note_without_groups(self, hostvars: Located) -> None:
        pass


def _private(value: Located) -> Located:
    text = _without_mark(value).value
    return Located(Private(text), value.where) if isinstance(text, str) else value


def _without_mark(value: Located) -> Located:
    """Ansible marks text that it would not evaluate: ``{"__ansible_unsafe": TEXT}``."""
    inside = value.value
    if isinstance(inside, dict):
        if inside.keys() == {"__ansible_unsafe"}:
            return Located(inside["__ansible_unsafe"].value, value.where)
        return Located({key: _without_mark(each) for key, each in inside.items()}, value.where)
    return Located(list(map(_without_mark, inside)), value.where) if isinstance(inside, list) else value
