"""The graph of groups and hosts, with Ansible's precedence of variables.

The deeper group wins; its depth is the length of its longest path from ``all``. At equal depth the higher
``ansible_group_priority`` wins, then the later name. Source: Ansible's documentation, "How variables are merged"; the
tests compare with ansible-core.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from gpuready.base.errors import SpecError, Where
from gpuready.inventory.source_values import Located, Shown, merge

Vars = dict[object, Located]
#: How to choose a host; in the syntax of YAML, if the file has no entry in :attr:`Graph.choose`.
CHOOSE = "add `gpuready: {}` to a host, to a group's vars or to all's vars; or name the host, with a comma: `-i gpu01,`"
#: What to do about an inventory without hosts.
ADD_HOSTS = (
    "add hosts below `hosts:` of a group such as all (YAML), or one on each line (INI); "
    "`gpuready init - --host gpu01` prints an example"
)


@dataclass(eq=False)
class Group:
    """A group; :meth:`Graph.reconcile` sets ``depth``."""

    name: str
    where: Where
    vars: Vars = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, Where] = field(default_factory=dict)
    parents: dict[str, None] = field(default_factory=dict)
    priority: int = 1
    depth: int = 0


@dataclass(eq=False)
class Host:
    """A host, and the place that names it first."""

    name: str
    where: Where
    vars: Vars = field(default_factory=dict)


class Graph:
    """All groups and hosts of one or more inventory sources."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.hosts: dict[str, Host] = {}
        self.named: set[str] = set()
        """The hosts that the command line itself names."""
        self.choose: dict[str, str] = {}
        """How to choose a host in the syntax of a file, if that is not YAML's."""
        self.aliases: dict[str, str] = {}
        """Other names of hosts, which ``--limit`` takes."""
        self.notes: list[str] = []
        self._closures: dict[frozenset[str], tuple[Group, ...]] = {}
        self._direct: dict[str, list[str]] | None = None
        nowhere = Where("<built in>")
        self.add_child(self.add_group("all", nowhere), self.add_group("ungrouped", nowhere), nowhere)

    def add_group(self, name: str, where: Where) -> Group:
        """The group of that name; created if it is missing."""
        return self.groups.setdefault(name, Group(name, where))

    def add_child(self, parent: Group, child: Group, where: Where) -> None:
        parent.children.setdefault(child.name, where)
        child.parents.setdefault(parent.name)

    def add_host(self, name: str, group: Group, where: Where, port: int | None = None) -> Host:
        """Add the host of that name to ``group``; created if it is missing, and only then with ``port``."""
        if name not in self.hosts:
            self.hosts[name] = Host(name, where)
            if port:
                self.hosts[name].vars["ansible_port"] = Located(port, where)
        group.hosts.setdefault(name)
        return self.hosts[name]

    def set_variable(self, name: str, key: object, value: Located) -> None:
        """Set a variable of a group or host; as in Ansible, a group hides a host of the same name."""
        owner: Group | Host = self.groups[name] if name in self.groups else self.hosts[name]
        if isinstance(owner, Group) and key == "ansible_group_priority":
            owner.priority = _priority(value)
            return
        owner.vars[key] = merge(owner.vars.get(key), value) if key == "gpuready" else value

    def reconcile(self) -> None:
        """Complete ``all`` and ``ungrouped``, and set depths, after the last source; SpecError for a cycle."""
        everything, ungrouped = self.groups["all"], self.groups["ungrouped"]
        for group in self.groups.values():
            if group is not everything and not group.parents:
                self.add_child(everything, group, group.where)
        self._set_depths()
        for name, host in self.hosts.items():
            others = {group.name for group in self.groups_of(name)} - {"ungrouped"}
            if others:
                ungrouped.hosts.pop(name, None)
            elif name in self.groups:  # Ansible takes the group here, too
                self.add_child(ungrouped, self.groups[name], host.where)
            else:
                ungrouped.hosts.setdefault(name)
        self._direct = None
        self._closures.clear()
        self._set_depths()

    def groups_of(self, host: str) -> tuple[Group, ...]:
        """All groups of a host except ``all``, in the order of precedence: the last one wins."""
        if self._direct is None:
            self._direct = {}
            for group in self.groups.values():
                for member in group.hosts:
                    self._direct.setdefault(member, []).append(group.name)
        direct = frozenset(self._direct.get(host, ()))
        if direct not in self._closures:
            found = self._with_ancestors(direct) - {"all"}
            order = sorted(
                (self.groups[name] for name in found), key=lambda group: (group.depth, group.priority, group.name)
            )
            self._closures[direct] = tuple(order)
        return self._closures[direct]

    def hosts_of(self, group: str) -> list[str]:
        """The hosts of a group: its own, then those of its children, level by level."""
        seen, queue, found = {group}, deque([group]), dict[str, None]()
        while queue:
            here = self.groups[queue.popleft()]
            found.update(here.hosts)
            for child in here.children:
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
        return list(found)

    def _with_ancestors(self, names: frozenset[str]) -> set[str]:
        found, todo = set(names), list(names)
        while todo:
            for parent in self.groups[todo.pop()].parents:
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return found

    def _set_depths(self) -> None:
        """Set the depth of parents before children; a group that never becomes ready is on a cycle or below one."""
        waiting = {name: len(group.parents) for name, group in self.groups.items()}
        ready = deque(name for name, count in waiting.items() if not count)
        while ready:
            name = ready.popleft()
            del waiting[name]
            for child in self.groups[name].children:
                self.groups[child].depth = max(self.groups[child].depth, self.groups[name].depth + 1)
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if waiting:
            raise self._cycle(waiting)

    def _cycle(self, waiting: dict[str, int]) -> SpecError:
        """Follow waiting parents upwards until a group repeats."""
        path = [next(iter(waiting))]
        while path[-1] not in path[:-1]:
            path.append(next(p for p in self.groups[path[-1]].parents if p in waiting))
        ring = path[path.index(path[-1]) :][::-1]
        edges = [self.groups[parent].children[child] for parent, child in pairwise(ring)]
        where = max(edges, key=lambda where: (where.file, where.line))
        return SpecError(
            "a group is inside itself", where=where, given=" > ".join(ring), allowed="groups without a cycle"
        )


def _priority(value: Located) -> int:
    number = value.value
    if isinstance(number, str) and number.strip().lstrip("+-").isdecimal():
        number = int(number.strip()[:18])
    if isinstance(number, int):
        return int(number)
    given = Shown(number)
    raise SpecError("ansible_group_priority: not accepted", where=value.where, given=given, allowed="a whole number")
